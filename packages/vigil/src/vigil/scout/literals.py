"""Read what a source file says without running it: constants, lists of them, and `add_argument` calls."""

import ast
from typing import Any, Dict, Iterator, List, Optional

DEEPEST = 12
MOST_CHOICES = 400
LONGEST_WORD = 200
ALONE = frozenset({"store_true", "store_false", "store_const", "append_const", "count", "help", "version"})
# How one flag is told, here and in `vigil.preflight.seen_parser.FlagSpec`; "~" for `nargs` means that it cannot be told.
Flag = Dict[str, Any]


class _Unknown:
    """What cannot be told from the source alone."""


UNKNOWN = _Unknown()


class Names:
    """The names of some files: what each was set to (as source), their classes and functions. The first of a name counts."""

    def __init__(self) -> None:
        self.values: Dict[str, ast.expr] = {}
        self.classes: Dict[str, ast.ClassDef] = {}
        self.functions: Dict[str, ast.FunctionDef] = {}

    def learn(self, tree: ast.Module) -> None:
        """Take the names of a file up: of the module, and of its classes as `Class.name`."""
        for prefix, node in _settings(tree.body):
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, node)
                for _, inner in _settings(node.body):
                    if not isinstance(inner, ast.ClassDef):
                        self._set("%s." % node.name, inner)
            elif isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, node)
            else:
                self._set(prefix, node)

    def learn_within(self, function: ast.FunctionDef) -> None:
        """Take up what a function sets once and does not change: `choices = list(X)`."""
        nodes = list(ast.walk(function))
        changed = {
            node.func.value.id
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        }
        targets = [one.targets[0] for one in nodes if isinstance(one, ast.Assign)]
        names = [one.id for one in targets if isinstance(one, ast.Name)]
        for node in nodes:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Name) and names.count(target.id) == 1 and target.id not in changed:
                self._set("", node)

    def _set(self, prefix: str, node: ast.AST) -> None:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            self.values.setdefault(prefix + node.target.id, node.value)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.values.setdefault(prefix + target.id, node.value)


def _settings(body: List[ast.stmt]) -> "Iterator[tuple[str, ast.AST]]":
    """Yield a body's statements; of `if TYPE_CHECKING:` what holds when it runs."""
    for node in body:
        if isinstance(node, ast.If):
            checking = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            yield from _settings(node.orelse if checking else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _settings(node.body)
        else:
            yield "", node


def value_of(node: Optional[ast.AST], names: Names, depth: int = 0) -> Any:
    """Return what an expression comes to, or `UNKNOWN`."""
    if depth > DEEPEST:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return _many(node.elts, names, depth)
    if isinstance(node, ast.Dict):
        return _many([key for key in node.keys if key is not None], names, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = value_of(node.left, names, depth + 1), value_of(node.right, names, depth + 1)
        if isinstance(left, str) and isinstance(right, str):
            return left + right
        return [*left, *right] if isinstance(left, list) and isinstance(right, list) else UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = value_of(node.operand, names, depth + 1)
        return -value if isinstance(value, (int, float)) else UNKNOWN
    if isinstance(node, (ast.Name, ast.Attribute)):
        found = names.values.get(ast.unparse(node))
        return value_of(found, names, depth + 1) if found is not None else UNKNOWN
    return _called(node, names, depth) if isinstance(node, ast.Call) else UNKNOWN


def _called(node: ast.Call, names: Names, depth: int) -> Any:
    """Return what `list(X)` and its like, `X.keys()`, and a function's last word come to; `Field(default=X)` is X."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in {"list", "sorted", "tuple", "set", "frozenset"} and len(node.args) == 1:
        return value_of(node.args[0], names, depth + 1)
    function = names.functions.get(name)
    if function is not None and not node.args and isinstance(function.body[-1], ast.Return):
        return value_of(function.body[-1].value, names, depth + 1)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "keys" and not node.args:
        return value_of(node.func.value, names, depth + 1)
    if name in {"field", "Field"}:
        given = next((one.value for one in node.keywords if one.arg == "default"), node.args[0] if node.args else None)
        return value_of(given, names, depth + 1)
    return UNKNOWN


def _many(nodes: List[ast.expr], names: Names, depth: int) -> Any:
    found: List[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            inner = value_of(node.value, names, depth + 1)
            if not isinstance(inner, list):
                return UNKNOWN
            found += inner
        else:
            value = value_of(node, names, depth + 1)
            if value is UNKNOWN:
                return UNKNOWN
            found.append(value)
    return found


def flag_of(words: List[str], said: Dict[str, ast.expr], names: Names) -> Flag:
    """Return a flag as the keywords of its `add_argument` describe it."""
    flag: Flag = {"names": words, "nargs": "1"}
    kind = action_of(said.get("action"))
    if kind in ALONE:
        flag["nargs"] = "0"
    elif kind == "BooleanOptionalAction":
        flag["nargs"] = "0"
        flag["names"] = words + ["--no-" + word[2:] for word in words if word.startswith("--")]
    elif kind not in {"", "store", "append", "extend"}:
        flag["nargs"] = _nargs_of_class(kind, names)
    if "nargs" in said:
        flag["nargs"] = nargs_of(value_of(said["nargs"], names))
    told = value_of(said.get("choices"), names)
    if ast.unparse(said.get("type") or ast.Constant(None)) in {"None", "str", "int", "float"}:
        put(flag, "choices", choices_of(told))  # else they are compared with what that type makes of the word
    put(flag, "type", type_of(said.get("type")))
    put(flag, "default", default_of(value_of(said.get("default"), names)))
    if value_of(said.get("required"), names) is True:
        flag["required"] = True
    _put_retired(flag, kind, said, names)
    return flag


def _put_retired(flag: Flag, kind: str, said: Dict[str, ast.expr], names: Names) -> None:
    """Note where a flag is on its way out: `instead` is what it says to use, `dead` that it ends the start."""
    if "Deprecated" not in kind and value_of(said.get("deprecated"), names) is not True:
        return
    message, new = value_of(said.get("error_message"), names), value_of(said.get("new_flag"), names)
    flag["instead"] = message if isinstance(message, str) else new if isinstance(new, str) else ""
    if isinstance(message, str):
        flag["dead"] = True


def action_of(node: Optional[ast.AST]) -> str:
    """Return the name of an action: its word, or its class."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
        if node is None
        else "?"
    )


def _nargs_of_class(kind: str, names: Names) -> str:
    """Return how many words an action of the engine's own takes: the default of `nargs` in its class."""
    told = names.classes.get(kind)
    if told is None:
        return "~"
    for node in told.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            defaults = node.args.defaults
            words = [one.arg for one in node.args.args]
            pairs = dict(zip(words[len(words) - len(defaults) :], defaults))  # noqa: B905 - Python 3.9
            return nargs_of(value_of(pairs["nargs"], names)) if "nargs" in pairs else "1" if node.args.kwarg else "~"
    return "1"


def nargs_of(value: Any) -> str:
    """Return argparse's `nargs` as it is told here."""
    if value is None:
        return "1"
    return str(value) if type(value) is int or (isinstance(value, str) and value in {"?", "*", "+"}) else "~"


def choices_of(value: Any) -> Optional[List[str]]:
    """Return choices as words, or None where they are not known, or too many."""
    if not isinstance(value, (list, tuple, set, frozenset, dict)) or not value or len(value) > MOST_CHOICES:
        return None
    plain = all(isinstance(one, (str, int, float)) or one is None for one in value)
    return [str(one)[:LONGEST_WORD] for one in value if one is not None] if plain else None


def type_of(node: Optional[ast.AST]) -> Optional[str]:
    """Return the type that a value must have, as far as it is one that we know."""
    text = ast.unparse(node) if node is not None else ""
    if text in {"int", "float"}:
        return text
    if text == "json.loads":
        return "json"
    return "size" if text.startswith("human_readable_int") else None


def default_of(value: Any) -> Optional[str]:
    """Return a default as a word, or None where it is none, or not known."""
    return (
        str(value)[:LONGEST_WORD] if isinstance(value, (str, int, float)) and not isinstance(value, _Unknown) else None
    )


def put(flag: Flag, key: str, value: Any) -> None:
    """Set what is known."""
    if value is not None:
        flag[key] = value


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of `add_argument` in a piece of source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            yield node


def words_of(call: ast.Call) -> List[str]:
    """Return the names that a call gives its argument, as far as they stand there."""
    return [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
