"""SGLang's flags, read from its source: `add_argument` calls (to 0.5.12) and annotated fields (from 0.5.13 on).

From 0.5.20 on the fields stand in `arg_groups/fields/`, one file a namespace.
"""

import ast
from typing import Any, Dict, List, NamedTuple, Optional

from .literals import Flag, Names, calls, choices_of, default_of, flag_of, put, value_of, words_of
from .parser_place import SGLANG_MAIN as MAIN
from .parser_place import SGLANG_PARSERS as PARSERS

_PLAIN = {"int": "int", "float": "float"}


class Source(NamedTuple):
    """What was read. `flags` in their order; `unread`: places that could not be understood, so that flags may be missing.

    `configs`: the classes that flags take as JSON, by name (see `vllm_configs`).
    """

    flags: List[Flag]
    unread: List[str]
    configs: Optional[Dict[str, Dict[str, Any]]] = None


def read(trees: Dict[str, ast.Module]) -> Source:
    """Return the flags of SGLang. `trees`: its files by their path below `sglang/`."""
    names = Names()
    flags: List[Flag] = []
    unread: List[str] = []
    for path in sorted(trees, key=lambda one: one in PARSERS):
        names.learn(trees[path])
    for node in ast.walk(trees[MAIN]):
        if isinstance(node, ast.FunctionDef) and node.name == "add_cli_args":
            names.learn_within(node)
    for path, tree in trees.items():
        for told in tree.body:
            if isinstance(told, ast.ClassDef):
                flags += _fields(told, names, path)
    for call in calls(trees[MAIN]):
        words = words_of(call)
        said = {one.arg: one.value for one in call.keywords if one.arg}
        if len(words) == len(call.args) and len(said) == len(call.keywords) and words:
            flags.append({**flag_of(words, said, names), "line": call.lineno, "file": MAIN})
        else:
            unread.append("%s:%d" % (MAIN, call.lineno))
    return Source(flags, unread)


def _fields(told: ast.ClassDef, names: Names, path: str) -> List[Flag]:
    found = []
    for node in told.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            inner, described = _annotated(node.annotation)
            flag = _field(node.target.id, inner, described, node.value, names) if described is not None else None
            if flag is not None:
                found.append({**flag, "line": node.lineno, "file": path})
    return found


def _annotated(node: ast.expr) -> "tuple[ast.expr, Optional[ast.expr]]":
    """Return (T, its description) of `A[T, "help"]` and `A[T, Arg(...)]`."""
    if not isinstance(node, ast.Subscript) or ast.unparse(node.value) not in {"A", "Annotated"}:
        return node, None
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    for one in inside[1:]:
        if isinstance(one, (ast.Constant, ast.JoinedStr, ast.BinOp)) or _is_arg(one):
            return inside[0], one
    return node, None


def _is_arg(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "Arg"


def _field(name: str, inner: ast.expr, told: ast.expr, default: Optional[ast.expr], names: Names) -> Optional[Flag]:
    """Return the flag of an annotated field, as `add_cli_args_from_dataclass` makes it; None where it has none."""
    said = {one.arg: one.value for one in told.keywords if one.arg} if isinstance(told, ast.Call) else {}
    if value_of(said.get("no_cli"), names) is True:
        return None
    cli_name = value_of(said.get("cli_name"), names) if "cli_name" in said else "--" + name.replace("_", "-")
    aliases = value_of(said.get("aliases"), names) if "aliases" in said else []
    words = [one for one in [cli_name, *(aliases if isinstance(aliases, list) else [])] if isinstance(one, str)]
    said["type"] = said.pop("type_parser", ast.Constant(None))
    said["default"] = default if default is not None else ast.Constant(None)
    if "action" in said:
        said.update(_extra(said.get("action_kwargs")))
        del said["type"]
        return flag_of(words, said, names)
    flag = flag_of(words, said, names)
    _shape(flag, _stripped(inner), said, names)
    if default is None and flag["nargs"] == "1" and value_of(said.get("required"), names) is not False:
        flag["required"] = True
    put(flag, "default", default_of(value_of(default, names)))
    return flag


def _shape(flag: Flag, kind: ast.expr, said: Dict[str, ast.expr], names: Names) -> None:
    """Give a flag the form that its type asks for."""
    text = ast.unparse(kind)
    own_type = not (isinstance(said["type"], ast.Constant) and said["type"].value is None)
    outer = ast.unparse(kind.value) if isinstance(kind, ast.Subscript) else ""
    if outer == "Literal" and isinstance(kind, ast.Subscript):
        inside = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        if "choices" not in said:
            put(flag, "choices", choices_of([value_of(one, names) for one in inside]))
    elif outer in {"List", "list"} and not own_type and isinstance(kind, ast.Subscript):
        flag["nargs"] = flag["nargs"] if "nargs" in said else "+"
        put(flag, "type", _PLAIN.get(ast.unparse(kind.slice)))
    elif text == "bool":
        flag["nargs"] = "0"
    elif not own_type:
        put(flag, "type", _PLAIN.get(text))


def _extra(node: Optional[ast.expr]) -> Dict[str, ast.expr]:
    """Return the entries of `action_kwargs`, a dictionary or `dict(...)`."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values)  # noqa: B905 - Python 3.9
        return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    return {one.arg: one.value for one in node.keywords if one.arg} if isinstance(node, ast.Call) else {}


def _stripped(node: ast.expr) -> ast.expr:
    """Return T of `Optional[T]` and `T | None`."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in {"Optional", "typing.Optional"}:
        return node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [one for one in (node.left, node.right) if ast.unparse(one) != "None"]
        return sides[0] if len(sides) == 1 else node
    return node
