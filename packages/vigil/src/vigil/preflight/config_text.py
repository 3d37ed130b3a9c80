"""Read the YAML that people write for servers: names with plain values, lists and objects below them. Pure.

It is the part of YAML 1.1 that a file of settings needs, as PyYAML reads it. A value in another form (text over lines, anchors,
tags) is `FILLED`: its name counts. Where no name can be read, that line is not understood, and the rest of the file with it.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

FILLED = "${}"
"""Stands for a value that is not known, as a shell's variable does in a command."""
GOES_ON = "?"
"""Stands for a line that no name is read from."""
MOST_LINES = 4000
DEEPEST = 12
_KEY = re.compile(r"""("[^"\\]*"|'[^']*'|[\w./+][^:#"'\[\]{},]*?)\s*:(?:\s+(.*)|\Z)""")
_GLUED = re.compile(r"[A-Za-z][\w-]*:[^\s/]\S*\Z")
_TRUTHS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_NONE = frozenset({"~", "null", "Null", "NULL", ""})
_INT = re.compile(r"[-+]?(?:0|[1-9][\d_]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?|\.\d[\d_]*(?:[eE][-+]\d+)?)\Z")
_OTHER_NUMBER = re.compile(
    r"[-+]?(?:0[\d_]+|0[xb][\da-fA-F_]+|\d[\d_]*(?::[0-5]?\d)+(?:\.\d*)?|\.(?:inf|nan)|\d{4}-\d\d?-\d\d?.*)\Z",
    re.IGNORECASE,
)
_FLOW = re.compile(r"""\s*([\[\]{},:]|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s\[\]{},:"'](?:[^\[\]{},:]|:(?=\S))*)""")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the file, with the line in which its name stands, from 1 on."""

    key: str
    value: Any
    line: int


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says. `unread`: the line from which on nothing was understood. `wrong`: (line, why) of what no YAML can be."""

    entries: tuple[Entry, ...] = ()
    unread: int | None = None
    wrong: tuple[int, str] | None = None
    mapping: bool = True


class _Line(NamedTuple):
    indent: int
    text: str
    number: int


class _NotUnderstood(Exception):  # noqa: N818 - it never leaves this module
    """The line at which to stop."""


def read(text: str) -> Read:
    """Return the settings of a file."""
    lines = list(_lines(text))
    wrong = next((one for one in map(_wrong, lines) if one is not None), None)
    if wrong is not None:
        return Read(wrong=wrong)
    if not lines:
        return Read()
    if lines[0].text.startswith(("{", "%", "?", "!", "&")):
        return Read(unread=lines[0].number)
    if lines[0].text.startswith(("- ", "[")) or (len(lines) == 1 and not _KEY.match(lines[0].text)):
        return Read(mapping=False)
    entries, at = list[Entry](), 0
    while at < len(lines):
        try:
            key, value, after = _setting(lines, at, lines[0].indent, 0)
        except _NotUnderstood:
            return Read(entries=tuple(entries), unread=lines[at].number)
        cut = after < len(lines) and lines[after].text == GOES_ON
        entries.append(Entry(key=key, value=FILLED if cut else value, line=lines[at].number))
        at = after
    return Read(entries=tuple(entries))


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that say something, up to one whose text goes on in the next."""
    for number, raw in enumerate(text.lstrip("\ufeff").split("\n")[:MOST_LINES], 1):
        told, closed = _uncommented(raw)
        told = told.rstrip() if closed else GOES_ON
        if told.strip() and told != "---":
            yield _Line(len(told) - len(told.lstrip(" ")), told.lstrip(" "), number)
        if not closed:
            return


def _uncommented(line: str) -> tuple[str, bool]:
    """Return a line without its comment, and whether each quote in it is closed."""
    quote = ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (at == 0 or line[at - 1] in " \t[{,:"):
            quote = letter
        elif letter == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at], True
    return line, not quote


def _wrong(line: _Line) -> tuple[int, str] | None:
    if line.text.startswith("\t"):
        return line.number, "YAML takes no tab before a name: indent with blanks"
    if line.indent == 0 and _GLUED.match(line.text):
        return line.number, f"{line.text[:60]!r} is no setting: YAML wants a blank behind the colon"
    return None


def _setting(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[str, Any, int]:
    """Return a name, its value, and where the next begins."""
    line = lines[at]
    found = _KEY.match(line.text)
    if line.indent != indent or found is None or depth > DEEPEST:
        raise _NotUnderstood
    key, rest = str(_scalar(found.group(1), name=True)), (found.group(2) or "").strip()
    after = _below(lines, at, indent)
    if rest:
        return key, FILLED if after > at + 1 else _value(rest), after
    if after > at + 1:
        return key, _block(lines[at + 1 : after], depth + 1), after
    while after < len(lines) and lines[after].indent == indent and _is_item(lines[after]):
        after = _below(lines, after, indent)
    return key, _listed(lines[at + 1 : after]) if after > at + 1 else None, after


def _below(lines: list[_Line], at: int, indent: int) -> int:
    """Return the first line behind one that is not indented below it."""
    after = at + 1
    while after < len(lines) and lines[after].indent > indent:
        after += 1
    return after


def _block(lines: list[_Line], depth: int) -> Any:
    """Return what stands indented below a name; `FILLED` where that is not understood."""
    if _is_item(lines[0]):
        return _listed(lines)
    found, at = dict[str, Any](), 0
    try:
        while at < len(lines):
            key, value, at = _setting(lines, at, lines[0].indent, depth)
            found[key] = value
    except _NotUnderstood:
        return FILLED
    return FILLED if FILLED in map(str, found.values()) else found


def _is_item(line: _Line) -> bool:
    return line.text == "-" or line.text.startswith("- ")


def _listed(lines: list[_Line]) -> Any:
    if any(one.indent != lines[0].indent or one.text == "-" or not _is_item(one) for one in lines):
        return FILLED
    found = [_value(one.text[2:].strip()) for one in lines]
    return FILLED if FILLED in map(str, found) or any(_KEY.match(one.text[2:].strip()) for one in lines) else found


def _value(text: str) -> Any:
    if text[0] in "[{":
        tokens = _FLOW.findall(text)
        try:
            value, rest = _flow(tokens, 0)
        except (_NotUnderstood, IndexError):
            return FILLED
        return value if rest == len(tokens) and "".join(tokens).replace(" ", "") == text.replace(" ", "") else FILLED
    return FILLED if text[0] in "|>&*!@`%" or text in {"-", "?"} or text.startswith(("- ", "? ")) else _scalar(text)


def _flow(tokens: list[str], at: int, depth: int = 0) -> tuple[Any, int]:
    """Return an object or a list written on one line."""
    token = tokens[at]
    if token not in {"[", "{"}:
        if token in {"]", "}", ",", ":"}:
            raise _NotUnderstood
        return _scalar(token.strip()), at + 1
    if depth > DEEPEST:
        raise _NotUnderstood
    close, found, pairs = {"[": "]", "{": "}"}[token], list[Any](), dict[str, Any]()
    at += 1
    while tokens[at] != close:
        value, at = _flow(tokens, at, depth + 1)
        if close == "}":
            if tokens[at] != ":":
                raise _NotUnderstood
            pairs[str(value)], at = _flow(tokens, at + 1, depth + 1)
        else:
            found.append(value)
        if tokens[at] == ",":
            at += 1
        elif tokens[at] != close:
            raise _NotUnderstood
    return pairs if close == "}" else found, at + 1


def _scalar(text: str, *, name: bool = False) -> Any:
    """Return what PyYAML makes of a plain or quoted word."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        inner = text[1:-1]
        return inner.replace("''", "'") if text[0] == "'" else FILLED if "\\" in inner else inner
    if text[:1] in {'"', "'"}:
        return FILLED
    if name:
        return text
    if text in _NONE:
        return None
    if text in {text.lower(), text.upper(), text.capitalize()} and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    if _INT.match(text):
        return int(text.replace("_", ""))
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    return FILLED if _OTHER_NUMBER.match(text) else text
