"""Says in which line of a TOML text a field stands: its parser tells values without their places.

Fields are named as msgspec names them: `when[0].advice_for[1].engine`. Inside an inline table the line of the field that
holds it is told.
"""

import re

_HEADER = re.compile(r"\s*(?P<open>\[{1,2})\s*(?P<name>[^\[\]#]+?)\s*\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(
    r"\s*(?P<name>(?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=(?P<value>.*)$"
)
_LONG_STRING = re.compile(r"\"{3}|'{3}")
_TABLE = "[["


def line_of(text: str, path: str) -> int | None:
    """Return the line, from 1, in which a field is given, else the nearest one that holds it; None for the whole text."""
    places = _places(text)
    while path and path not in places:
        path = re.sub(r"(?:^|\.)[^.\[]+$|\[\d+\]$", "", path)
    return places.get(path)


def _places(text: str) -> dict[str, int]:
    """Return the first line of each field and table."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table, quote = "", ""
    for number, line in enumerate(text.split("\n"), 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if header := _HEADER.match(line):
            table = _table(header["name"], counts, array=header["open"] == _TABLE)
            found.setdefault(re.sub(r"\[\d+\]$", "", table), number)
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(".".join(filter(None, (table, *_parts(key["name"])))), number)
            opened = _LONG_STRING.findall(key["value"])
            quote = opened[0] if len(opened) % 2 else ""
    return found


def _table(name: str, counts: dict[str, int], *, array: bool) -> str:
    """Return the path of a table from its header; of an array of tables above it, the last one is meant."""
    path = ""
    parts = _parts(name)
    for place, part in enumerate(parts):
        path = f"{path}.{part}" if path else part
        last = place == len(parts) - 1
        if last and array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = f"{path}[{counts[path]}]"
    return path


def _parts(name: str) -> list[str]:
    return [part.strip().strip("\"'") for part in name.split(".")]
