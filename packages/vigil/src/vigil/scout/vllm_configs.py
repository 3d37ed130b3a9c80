"""The classes that vLLM's flags take as JSON: their fields, what each takes, and whether a field that there is not is refused.

pydantic checks such an object by its class (`TypeAdapter(cls).validate_json` in `engine/arg_utils.py`). What a validator of the
class may turn into something else before that is not judged.
"""

import ast
from typing import Any, Dict, Iterable, Iterator, List, Set

from .literals import UNKNOWN, Names, value_of
from .vllm_annotations import all_fields, head, hints_of, is_dataclass, within

# How a field is told: `type` is "bool", "int", "float", "str", "list", "dict", or "enum" (the names of its members, in any case);
# `choices` the words and numbers that it takes, `config` the class that it is. None of them: anything.
Field = Dict[str, Any]
_KINDS = {
    "bool": "bool", "int": "int", "float": "float", "str": "str", "list": "list", "tuple": "list", "set": "list", "dict": "dict",
    "List": "list", "Dict": "dict",
}  # fmt: skip
_EARLY = frozenset({"before", "wrap", "plain"})
_OWN = frozenset({"__init__", "__new__"})


def read(names: Names, trees: Dict[str, ast.Module], wanted: Iterable[str]) -> Dict[str, Dict[str, Any]]:
    """Return {class: {"closed": ..., "fields": ...}} of the wanted classes and of those that their fields are."""
    forbids = any(_extra(node) == "forbid" for node in _calls(trees.get("config/utils.py")))
    found: Dict[str, Dict[str, Any]] = {}
    left = list(wanted)
    while left:
        name = left.pop()
        told = names.classes.get(name)
        if name in found or told is None or _makes_itself(told):
            continue
        early, nodes = _validated_early(told), all_fields(name, names, inits=True)
        fields = {one: _field(node.annotation, names, early=bool({one, "*"} & early)) for one, node in nodes.items()}
        found[name] = {"closed": _closed(told, forbids=forbids), "fields": fields}
        if any(isinstance(node, ast.FunctionDef) and node.name == "from_cli" for node in told.body):
            found[name]["free"] = True  # vllm 0.10 and before: CompilationConfig.from_cli takes a level alone
        left += [one["config"] for one in fields.values() if "config" in one]
    return found


def _closed(told: ast.ClassDef, *, forbids: bool) -> bool:
    """Tell whether fields that the class does not have are refused: as its decorator says, else as `@config` does by itself."""
    for node in told.decorator_list:
        said = [one for one in map(_extra, _calls(node)) if one]
        if said:
            return said[0] == "forbid"
    return forbids and "config" in {head(getattr(one, "func", one)) for one in told.decorator_list}


def _extra(call: ast.Call) -> str:
    """Return what `ConfigDict(extra=...)` says, "" where it says nothing."""
    said = [one.value for one in call.keywords if one.arg == "extra"] if head(call.func) == "ConfigDict" else []
    return str(value_of(said[0], Names())) if said else ""


def _calls(tree: "ast.AST | None") -> List[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []


def _makes_itself(told: ast.ClassDef) -> bool:
    """Tell whether a class reads what it is given in a way of its own, before its fields are looked at."""
    for node in told.body:
        if isinstance(node, ast.FunctionDef):
            marks = [one for one in _calls_on(node) if head(one.func) == "model_validator"]
            if node.name in _OWN or any(_mode(one) in _EARLY for one in marks):
                return True
    return False


def _validated_early(told: ast.ClassDef) -> Set[str]:
    """Return the fields whose value a validator may change before its type is looked at; "*" stands for all."""
    marks = [one for node in told.body if isinstance(node, ast.FunctionDef) for one in _calls_on(node)]
    early = [one for one in marks if head(one.func) == "field_validator" and _mode(one) in _EARLY]
    return {str(word.value) for one in early for word in one.args if isinstance(word, ast.Constant)}


def _calls_on(function: ast.FunctionDef) -> List[ast.Call]:
    return [one for one in function.decorator_list if isinstance(one, ast.Call)]


def _mode(call: ast.Call) -> str:
    said = [one.value for one in call.keywords if one.arg == "mode"]
    return str(value_of(said[0], Names())) if said else "after"


def _field(annotation: ast.expr, names: Names, *, early: bool) -> Field:
    if "Validator" in ast.unparse(annotation):
        return {}
    hints = [one for one in hints_of(annotation, names) if head(one) != "None"]
    heads = {head(one) for one in hints}
    config = next((one for one in hints if is_dataclass(one, names)), None)
    if isinstance(config, ast.Name):
        return {"config": config.id} if len(hints) == 1 else {}
    members = _members(hints[0], names) if len(hints) == 1 else []
    if members:
        return {"type": "enum", "choices": members} if early else {}
    if early:
        return {}
    if heads == {"Literal"}:
        choices = [value for hint in hints for value in _literals(hint, names)]
        return {"choices": list(dict.fromkeys(choices))} if choices and UNKNOWN not in choices else {}
    plain = "float" if heads == {"int", "float"} else heads.pop() if len(heads) == 1 else ""
    return {"type": _KINDS[plain]} if plain in _KINDS else {}


def _members(node: ast.expr, names: Names) -> List[str]:
    """Return the names of an enumeration's members; none where it is none, or not in the files that are read."""
    told = names.classes.get(node.id) if isinstance(node, ast.Name) else None
    if told is None or not any(head(base).endswith("Enum") for base in told.bases):
        return []
    targets = [one.targets[0] for one in told.body if isinstance(one, ast.Assign)]
    return [one.id for one in targets if isinstance(one, ast.Name) and not one.id.startswith("_")]


def _literals(node: ast.expr, names: Names, depth: int = 0) -> Iterator[Any]:
    """Yield what a `Literal[...]` allows, those in it included: `Literal[KVProducer, KVConsumer]`."""
    for one in within(node) if isinstance(node, ast.Subscript) else []:
        alias = names.values.get(one.id) if isinstance(one, ast.Name) else None
        if alias is not None and head(alias) == "Literal" and depth < 5:  # noqa: PLR2004 - an alias of itself
            yield from _literals(alias, names, depth + 1)
        else:
            yield value_of(one, names)
