"""What a field of one of vLLM's classes allows, by its annotation, and the flag that `get_kwargs` makes of it.

The rules are those of `engine/arg_utils.py` (vLLM 0.9 to 0.33).
"""

import ast
from typing import Dict, Iterator, List, Set

from .literals import UNKNOWN, Flag, Names, choices_of, put, value_of

# Their numbers may be written as 1k, 2M; which of them do differs between versions, so that all are let pass.
SIZES = frozenset({
    "max_model_len", "max_num_batched_tokens", "max_num_scheduled_tokens", "kv_cache_memory_bytes", "max_num_queued_tokens",
    "safetensors_prefetch_block_size",
})  # fmt: skip
_COLLECTIONS = ("tuple", "Tuple", "list", "List", "set", "Set", "Sequence")
_WRAPPERS = ("Annotated", "SkipValidation", "Optional", "Union", "ClassVar", "Required")


def all_fields(told: str, names: Names, depth: int = 0, *, inits: bool = False) -> Dict[str, ast.AnnAssign]:
    """Return the fields of a class and of its bases, by name; with `inits` what only its making takes, too."""
    others = ("ClassVar",) if inits else ("ClassVar", "InitVar")
    node = names.classes.get(told)
    found: Dict[str, ast.AnnAssign] = {}
    if node is None or depth > 5:  # noqa: PLR2004 - no class of vLLM stands that deep
        return found
    for base in node.bases:
        found.update(all_fields(ast.unparse(base), names, depth + 1, inits=inits))
    for one in node.body:
        field = isinstance(one, ast.AnnAssign) and not ast.unparse(one.annotation).startswith(others)
        if field and isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found[one.target.id] = one
    return found


def of_hints(words: List[str], name: str, annotation: ast.expr, names: Names) -> Flag:
    """Return the flag of a field with this annotation, by the rules of `get_kwargs`."""
    flag: Flag = {"names": words, "nargs": "1"}
    hints = list(hints_of(annotation, names))
    heads = {head(one) for one in hints}
    collection = next((one for one in hints if head(one) in _COLLECTIONS), None)
    config = next((one for one in hints if is_dataclass(one, names)), None)
    if config is not None:
        return {**flag, "config": ast.unparse(config)}
    if heads == {"bool", "str", "None"}:
        flag["nargs"] = "?"
    elif "bool" in heads:
        flag["nargs"] = "0"
        flag["names"] = words + ["--no-" + word[2:] for word in words if word.startswith("--")]
    elif "Literal" in heads:
        _literal(flag, [one for one in hints if head(one) == "Literal"], heads, names)
    elif isinstance(collection, ast.Subscript):
        _collection(flag, collection, names)
    elif "int" in heads:
        flag["type"] = "size" if name in SIZES else "int"
    elif "float" in heads:
        flag["type"] = "float"
    elif "dict" in heads and heads <= {"dict", "None"}:
        flag["type"] = "json"
    return flag


def hints_of(node: ast.expr, names: Names, depth: int = 0) -> Iterator[ast.expr]:
    """Yield the kinds that an annotation allows, its unions and aliases taken apart."""
    if depth > 8:  # noqa: PLR2004 - an alias of itself
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from hints_of(node.left, names, depth + 1)
        yield from hints_of(node.right, names, depth + 1)
    elif isinstance(node, ast.Subscript) and head(node) in _WRAPPERS:
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for one in inside if head(node) == "Union" else inside[:1]:
            yield from hints_of(one, names, depth + 1)
        if head(node) == "Optional":
            yield ast.Constant(None)
    elif isinstance(node, ast.Name) and node.id in names.values:
        yield from hints_of(names.values[node.id], names, depth + 1)
    else:
        yield node


def head(node: ast.expr) -> str:
    """Return the name of a kind: `list` of `list[int]`."""
    text = ast.unparse(node.value if isinstance(node, ast.Subscript) else node)
    return text.rpartition(".")[2]


def is_dataclass(node: ast.expr, names: Names) -> bool:
    """Tell whether a kind is a class of the engine's that is made from JSON."""
    told = names.classes.get(node.id) if isinstance(node, ast.Name) else None
    marks = (
        {head(one.func if isinstance(one, ast.Call) else one) for one in told.decorator_list}
        if told is not None
        else set()
    )
    return bool(marks & {"config", "dataclass"})


def _literal(flag: Flag, hints: List[ast.expr], heads: Set[str], names: Names) -> None:
    free, none = "str" in heads, "None" in heads
    words = [one for hint in hints if isinstance(hint, ast.Subscript) for one in within(hint)]
    values = [value_of(one, names) for one in words]
    if values and type(values[0]) is int:
        flag["type"] = "int"
    if not free and UNKNOWN not in values:
        put(flag, "choices", choices_of([*values, *(["None"] if none else [])]))


def within(node: ast.Subscript) -> List[ast.expr]:
    """Return the kinds in the brackets of another: int and str of `dict[int, str]`."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _collection(flag: Flag, node: ast.Subscript, names: Names) -> None:
    """Give a flag that takes many words its form: `list[int]`, `tuple[int, int]`, `list[Literal[...]]`."""
    inside = within(node)
    fixed = head(node) in {"tuple", "Tuple"} and not any(ast.unparse(one) == "..." for one in inside)
    flag["nargs"] = str(len(inside)) if fixed else "+"
    hints = list(hints_of(inside[0], names))
    kind = ast.unparse(hints[0]) if len(hints) == 1 else ""
    put(flag, "type", kind if kind in {"int", "float"} else None)
    if len(hints) == 1 and head(hints[0]) == "Literal":
        _literal(flag, hints, set(), names)
