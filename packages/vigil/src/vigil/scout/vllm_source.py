"""vLLM's flags, read from its source: `add_argument` calls whose keywords come from the fields of its configuration classes.

`get_kwargs(Class)` in `engine/arg_utils.py` turns annotations into keywords; the same is done here (vLLM 0.9 to 0.33).
"""

import ast
from typing import Dict, Iterator, List, Optional

from .literals import (
    Flag,
    Names,
    calls,
    choices_of,
    default_of,
    flag_of,
    nargs_of,
    put,
    type_of,
    value_of,
    words_of,
)
from .parser_place import VLLM_FRONTENDS as FRONTENDS
from .parser_place import VLLM_MAIN as MAIN
from .sglang_source import Source
from .vllm_annotations import all_fields, of_hints
from .vllm_configs import read as read_configs

_CHANGES = frozenset({"remove", "append", "extend", "insert", "pop"})


def read(trees: Dict[str, ast.Module]) -> Source:
    """Return the flags of vLLM. `trees`: its files by their path below `vllm/`."""
    names = Names()
    frontend = next((path for path in FRONTENDS if path in trees), None)
    for path in (MAIN, frontend, *trees):
        if path is not None:
            names.learn(trees[path])
    flags: List[Flag] = []
    unread: List[str] = []
    for path in (frontend, MAIN):
        if path is None:
            unread.append("no cli_args.py")
            continue
        reader = _File(path, trees[path], names)
        flags += reader.flags
        unread += reader.unread
    return Source(flags, unread, read_configs(names, trees, [one["config"] for one in flags if "config" in one]))


class _File:
    """One file that adds arguments. Invariant: `kwargs` maps a variable to the class whose fields it holds as keywords."""

    def __init__(self, path: str, tree: ast.Module, names: Names) -> None:
        self.flags: List[Flag] = []
        self.unread: List[str] = []
        self._path, self._names = path, names
        self._touched = _touched(tree)
        self._aliases: Dict[str, ast.expr] = {}
        self._seen: Dict[str, Dict[str, ast.AnnAssign]] = {}
        for function, owner in _functions(tree):
            self._kwargs = dict(_kwargs_of(function, owner))
            self._aliases = _aliases(function)
            looped = _looped(function)
            for call in calls(function):
                words = looped.get(call, [])
                for word in words:
                    self._put({"names": [word], "nargs": "1"}, call.lineno)
                if not words:
                    self._add(call)

    def _add(self, call: ast.Call) -> None:
        words = words_of(call)
        said = {one.arg: one.value for one in call.keywords if one.arg}
        spread = [one.value for one in call.keywords if not one.arg]
        if len(spread) == 1 and isinstance(spread[0], ast.Dict):  # **{**kwargs["x"], "default": None}
            pairs = list(zip(spread[0].keys, spread[0].values))  # noqa: B905 - Python 3.9
            said.update({str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)})
            spread = [value for key, value in pairs if key is None]
        if any(isinstance(one, ast.JoinedStr) for one in call.args) and spread:
            self._add_all(call)
        elif len(words) != len(call.args) or len(spread) > 1 or not words:
            self.unread.append("%s:%d" % (self._path, call.lineno))
        elif not spread:
            self._put(flag_of(words, said, self._names), call.lineno)
        else:
            told = self._class_and_field(spread[0])
            if told is None:
                self._put({"names": words, "nargs": "~"}, call.lineno)
            else:
                self._put(self._of_field(words, told[0], told[1], said), call.lineno)

    def _put(self, flag: Flag, line: int) -> None:
        if flag["names"][0].startswith("-"):
            self.flags.append({**flag, "line": line, "file": self._path})

    def _add_all(self, call: ast.Call) -> None:
        """Add a flag for each field of the class that a loop goes over."""
        told = [one for one in self._kwargs.values() if one in self._names.classes]
        if not told and "FrontendArgs" in self._names.classes:
            told = ["FrontendArgs"]
        elif told and told[0] == "BaseFrontendArgs":
            told = ["FrontendArgs"]  # it is called for its subclass
        if not told:
            self.unread.append("%s:%d" % (self._path, call.lineno))
            return
        for name in self._fields_of(told[0]):
            changed = self._touched.get(name, {})
            extra = value_of(changed.get("flags"), self._names)
            words = [*(extra if isinstance(extra, list) else []), "--" + name.replace("_", "-")]
            self._put(self._of_field(words, told[0], name, {}), call.lineno)

    def _class_and_field(self, node: ast.expr) -> "Optional[tuple[str, str]]":
        """Return (class, field) of `model_kwargs["seed"]`, or of a variable that was set to it."""
        if isinstance(node, ast.Name):
            node = self._aliases.get(node.id, node)
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and isinstance(node.slice, ast.Constant)
        ):
            told = self._kwargs.get(node.value.id)
            return (told, str(node.slice.value)) if told is not None else None
        return None

    def _fields_of(self, told: str) -> Dict[str, ast.AnnAssign]:
        if told not in self._seen:
            self._seen[told] = all_fields(told, self._names)
        return self._seen[told]

    def _of_field(self, words: List[str], told: str, name: str, said: Dict[str, ast.expr]) -> Flag:
        found = self._fields_of(told).get(name)
        changed = {**self._touched.get(name, {}), **said}
        if found is None:
            return {"names": words, "nargs": "~"}
        flag = (
            flag_of(words, said, self._names)
            if "action" in said
            else of_hints(words, name, found.annotation, self._names)
        )
        put(flag, "default", default_of(value_of(found.value, self._names)))
        for key, node in changed.items():
            _change(flag, key, node, self._names)
        if _own_type(changed.get("type")):
            flag.pop("choices", None)  # they are compared with what that type makes of the word
        return flag


def _change(flag: Flag, key: str, node: ast.expr, names: Names) -> None:
    """Make a later change of a keyword: `kwargs["x"]["type"] = ...`."""
    if key in {"type", "choices"}:
        flag.pop(key, None)
        put(flag, key, type_of(node) if key == "type" else choices_of(value_of(node, names)))
    elif key == "nargs":
        flag["nargs"] = nargs_of(value_of(node, names))
    elif key == "deprecated" and value_of(node, names) is True:
        flag["instead"] = ""


def _own_type(node: Optional[ast.expr]) -> bool:
    return node is not None and ast.unparse(node) not in {"str", "int", "float"}


def _functions(tree: ast.Module) -> "Iterator[tuple[ast.FunctionDef, str]]":
    """Yield the functions that add arguments, with the class that each stands in."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, ""
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield inner, node.name


def _kwargs_of(function: ast.FunctionDef, owner: str) -> "Iterator[tuple[str, str]]":
    """Yield (variable, class) of each `variable = get_kwargs(Class)`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            called = ast.unparse(node.value.func) == "get_kwargs" and node.value.args
            told = ast.unparse(node.value.args[0]) if called else ""
            if told:
                yield node.targets[0].id, owner if told == "cls" else told


def _looped(function: ast.FunctionDef) -> Dict[ast.Call, List[str]]:
    """Return the names that a loop over a written list gives its one call: `for arg, type in [("--x", str), ...]` (0.11)."""
    found: Dict[ast.Call, List[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.For) and isinstance(node.iter, (ast.List, ast.Tuple)):
            told = [one for one in calls(node) if one.args and isinstance(one.args[0], ast.Name)]
            firsts = [one.elts[0] if isinstance(one, ast.Tuple) and one.elts else one for one in node.iter.elts]
            words = [one.value for one in firsts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(told) == 1 and len(words) == len(firsts):
                found[told[0]] = words
    return found


def _touched(tree: ast.Module) -> Dict[str, Dict[str, ast.expr]]:
    """Return what is changed later of the keywords of a field: {field: {keyword: expression}}."""
    found: Dict[str, Dict[str, ast.expr]] = {}
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.Delete):
            target, value = node.targets[0], ast.Constant(None)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            target, value = node.func.value, ast.Name("changed")
        else:
            continue
        if not isinstance(target, ast.Subscript):
            continue
        inner = aliases.get(target.value.id) if isinstance(target.value, ast.Name) else target.value
        if isinstance(inner, ast.Subscript):
            field, key = value_of(inner.slice, Names()), value_of(target.slice, Names())
            if isinstance(field, str) and isinstance(key, str):
                found.setdefault(field, {})[key] = value
    return found


def _aliases(tree: ast.AST) -> Dict[str, ast.expr]:
    """Return the variables that are set to the keywords of one field: `x = kernel_kwargs["moe_backend"]`."""
    return {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
        and ast.unparse(node.value.value).endswith("kwargs")
    }
