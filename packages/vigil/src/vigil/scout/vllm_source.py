"""vLLM's flags, read from its source: `add_argument` calls whose keywords come from the fields of its configuration classes.

`get_kwargs(Class)` in `engine/arg_utils.py` turns annotations into keywords; the same is done here (vLLM 0.9 to 0.33).
"""

import ast
from typing import Dict, Iterator, List, Optional, Set

from .literals import (
    UNKNOWN,
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

# Their numbers may be written as 1k, 2M; which of them do differs between versions, so that all are let pass.
SIZES = frozenset({
    "max_model_len", "max_num_batched_tokens", "max_num_scheduled_tokens", "kv_cache_memory_bytes", "max_num_queued_tokens",
    "safetensors_prefetch_block_size",
})  # fmt: skip
_CHANGES = frozenset({"remove", "append", "extend", "insert", "pop"})
_COLLECTIONS = ("tuple", "Tuple", "list", "List", "set", "Set", "Sequence")
_WRAPPERS = ("Annotated", "SkipValidation", "Optional", "Union", "ClassVar", "Required")


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
    return Source(flags, unread)


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
            self._seen[told] = _all_fields(told, self._names)
        return self._seen[told]

    def _of_field(self, words: List[str], told: str, name: str, said: Dict[str, ast.expr]) -> Flag:
        found = self._fields_of(told).get(name)
        changed = {**self._touched.get(name, {}), **said}
        if found is None:
            return {"names": words, "nargs": "~"}
        flag = (
            flag_of(words, said, self._names)
            if "action" in said
            else _of_hints(words, name, found.annotation, self._names)
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


def _all_fields(told: str, names: Names, depth: int = 0) -> Dict[str, ast.AnnAssign]:
    """Return the fields of a class and of its bases, by name."""
    node = names.classes.get(told)
    found: Dict[str, ast.AnnAssign] = {}
    if node is None or depth > 5:  # noqa: PLR2004 - no class of vLLM stands that deep
        return found
    for base in node.bases:
        found.update(_all_fields(ast.unparse(base), names, depth + 1))
    for one in node.body:
        field = isinstance(one, ast.AnnAssign) and not ast.unparse(one.annotation).startswith(("ClassVar", "InitVar"))
        if field and isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found[one.target.id] = one
    return found


def _of_hints(words: List[str], name: str, annotation: ast.expr, names: Names) -> Flag:
    """Return the flag of a field with this annotation, by the rules of `get_kwargs`."""
    flag: Flag = {"names": words, "nargs": "1"}
    hints = list(_hints(annotation, names))
    heads = {_head(one) for one in hints}
    collection = next((one for one in hints if _head(one) in _COLLECTIONS), None)
    if any(_is_dataclass(one, names) for one in hints):
        return flag
    if heads == {"bool", "str", "None"}:
        flag["nargs"] = "?"
    elif "bool" in heads:
        flag["nargs"] = "0"
        flag["names"] = words + ["--no-" + word[2:] for word in words if word.startswith("--")]
    elif "Literal" in heads:
        _literal(flag, [one for one in hints if _head(one) == "Literal"], heads, names)
    elif isinstance(collection, ast.Subscript):
        _collection(flag, collection, names)
    elif "int" in heads:
        flag["type"] = "size" if name in SIZES else "int"
    elif "float" in heads:
        flag["type"] = "float"
    elif "dict" in heads and heads <= {"dict", "None"}:
        flag["type"] = "json"
    return flag


def _hints(node: ast.expr, names: Names, depth: int = 0) -> Iterator[ast.expr]:
    """Yield the kinds that an annotation allows, its unions and aliases taken apart."""
    if depth > 8:  # noqa: PLR2004 - an alias of itself
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _hints(node.left, names, depth + 1)
        yield from _hints(node.right, names, depth + 1)
    elif isinstance(node, ast.Subscript) and _head(node) in _WRAPPERS:
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for one in inside if _head(node) == "Union" else inside[:1]:
            yield from _hints(one, names, depth + 1)
        if _head(node) == "Optional":
            yield ast.Constant(None)
    elif isinstance(node, ast.Name) and node.id in names.values:
        yield from _hints(names.values[node.id], names, depth + 1)
    else:
        yield node


def _head(node: ast.expr) -> str:
    """Return the name of a kind: `list` of `list[int]`."""
    text = ast.unparse(node.value if isinstance(node, ast.Subscript) else node)
    return text.rpartition(".")[2]


def _is_dataclass(node: ast.expr, names: Names) -> bool:
    told = names.classes.get(node.id) if isinstance(node, ast.Name) else None
    marks = (
        {_head(one.func if isinstance(one, ast.Call) else one) for one in told.decorator_list}
        if told is not None
        else set()
    )
    return bool(marks & {"config", "dataclass"})


def _literal(flag: Flag, hints: List[ast.expr], heads: Set[str], names: Names) -> None:
    free, none = "str" in heads, "None" in heads
    words = [one for hint in hints if isinstance(hint, ast.Subscript) for one in _inside(hint)]
    values = [value_of(one, names) for one in words]
    if values and type(values[0]) is int:
        flag["type"] = "int"
    if not free and UNKNOWN not in values:
        put(flag, "choices", choices_of([*values, *(["None"] if none else [])]))


def _inside(node: ast.Subscript) -> List[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _collection(flag: Flag, node: ast.Subscript, names: Names) -> None:
    """Give a flag that takes many words its form: `list[int]`, `tuple[int, int]`, `list[Literal[...]]`."""
    inside = _inside(node)
    fixed = _head(node) in {"tuple", "Tuple"} and not any(ast.unparse(one) == "..." for one in inside)
    flag["nargs"] = str(len(inside)) if fixed else "+"
    hints = list(_hints(inside[0], names))
    kind = ast.unparse(hints[0]) if len(hints) == 1 else ""
    put(flag, "type", kind if kind in {"int", "float"} else None)
    if len(hints) == 1 and _head(hints[0]) == "Literal":
        _literal(flag, hints, set(), names)
