"""llama.cpp's flags, read from its `common/arg.cpp` by pattern: those that llama-server takes."""

import re
from collections.abc import Iterator
from typing import Any

_WORDS = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LAMBDA = re.compile(r"\[[^\]]*\]\s*\(\s*(common_params\b[^)]*)\)")  # a link in a description has the same form
_REMOVED = re.compile(r'arg_removed\(\s*"([^"]*)"')
_CHOICES = re.compile(r"\{([a-z0-9_-]+(?:,[a-z0-9_-]+)+)\}")


def read(text: str) -> list[dict[str, Any]]:
    """Return the flags of llama-server."""
    return [flag for call in _calls(text) if (flag := _flag(call)) is not None]


def _calls(text: str) -> Iterator[str]:
    """Yield each `add_opt(...)` whole, with what is set on it."""
    text = re.sub(r"^\s*//[^\n]*\n", "", text, flags=re.MULTILINE)
    begins = [match.start() for match in re.finditer(r"\badd_opt\(\s*common_arg\(", text)]
    for begin in begins:
        depth = 0
        for match in re.finditer(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//[^\n]*|[()]', text[begin:]):
            depth += {"(": 1, ")": -1}.get(match.group(0), 0)
            if match.group(0) == ")" and depth == 0:
                yield text[begin : begin + match.end()]
                break


def _flag(call: str) -> dict[str, Any] | None:
    inner = call[call.index("common_arg(") + len("common_arg(") :]
    names, rest = _braces(inner)
    negative, after = _braces(rest.lstrip(" ,\n")) if rest.lstrip(" ,\n").startswith("{") else ([], rest)
    if not names or not _of_server(call):
        return None
    parameters = _LAMBDA.search(after)
    kinds = [one.strip() for one in parameters.group(1).split(",")[1:]] if parameters is not None else []
    flag: dict[str, Any] = {
        "names": names + negative,
        "nargs": "0" if kinds and kinds[0].startswith("bool") else str(len(kinds)),
    }
    if kinds and kinds[0].startswith("int"):
        flag["type"] = "stoi"
    head = after[: parameters.start()] if parameters is not None else after
    hint = _WORDS.search(head)
    told = _CHOICES.fullmatch(hint.group(1)) if hint is not None and flag["nargs"] == "1" else None
    if told is not None:
        flag["choices"] = told.group(1).split(",")
    removed = _REMOVED.search(call)
    if removed is not None:
        flag.update(instead=removed.group(1), dead=True)
    elif "DEPRECATED" in head:
        flag["instead"] = ""
    return flag


def _braces(text: str) -> tuple[list[str], str]:
    """Return the words of a first `{...}`, and what follows."""
    found = re.match(r'\s*\{((?:\s*"[^"]*"\s*,?)*)\s*\}', text)
    return (_WORDS.findall(found.group(1)), text[found.end() :]) if found is not None else ([], text)


def _of_server(call: str) -> bool:
    """Tell whether the server takes it: it is the server's, or of all programs, and not kept from the server."""
    examples = re.search(r"\.set_examples\(\{([^}]*)\}", call)
    excludes = re.search(r"\.set_excludes\(\{([^}]*)\}", call)
    if excludes is not None and "LLAMA_EXAMPLE_SERVER" in excludes.group(1):
        return False
    return examples is None or bool(re.search(r"LLAMA_EXAMPLE_(?:SERVER|COMMON)\b", examples.group(1)))
