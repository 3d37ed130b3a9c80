"""Reads a user's own rules from a folder: what is wrong with one file is told in a line, and the others go on."""

import re
import tomllib
from pathlib import Path

import msgspec

from vigil.diagnosis.patience import wrong_with
from vigil.diagnosis.places import line_of
from vigil.diagnosis.rules import Rule, check_rule, known_rules

_LARGEST_BYTES = 1 << 20
_NEWLINE = b"\n"
_CODE = re.compile(r"[A-Z][A-Z0-9]{1,15}\d{3}", re.ASCII)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_FIELD = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?$", re.DOTALL)


def load_rules(folder: Path) -> tuple[list[Rule], list[str]]:
    """Return the rules of all `*.toml` files in `folder`, by name, and one line for each file that has a mistake.

    A folder that is not there or may not be read is a mistake, too. The lines name the file, the line where there is one, and
    the field.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(".toml"))
    except OSError as error:
        return [], [f"{folder}: {error.strerror or error}"]
    rules: dict[str, Rule] = {}
    mistakes: list[str] = []
    for path in paths:
        found = _read(path)
        if isinstance(found, str):
            mistakes.append(f"{path}: {found}")
        elif found.code in rules:
            mistakes.append(f"{path}: code: another file has {found.code} already")
        else:
            rules[found.code] = found
    return list(rules.values()), mistakes


def _read(path: Path) -> Rule | str:
    """Return the rule of one file, or what is wrong with it."""
    try:
        if not path.is_file():
            return "it is no file"
        with path.open("rb") as file:
            raw = file.read(_LARGEST_BYTES + 1)
        if len(raw) > _LARGEST_BYTES:
            return "it is larger than a rule can be"
        text = raw.decode()
        return _parse(text)
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(_NEWLINE) + 1
        return f"line {number}: not UTF-8"
    except tomllib.TOMLDecodeError as error:
        return _one_line(str(error))
    except RecursionError:
        return "it is nested too deeply"


def _parse(text: str) -> Rule | str:
    """Return the rule of a text that may be no TOML; what is wrong with its fields, with the line."""
    try:
        rule = msgspec.convert(tomllib.loads(text), Rule)
    except msgspec.ValidationError as error:
        match = _FIELD.match(str(error))
        what, where = (match["what"], match["where"] or "") if match else (str(error), "")
        unknown = _UNKNOWN.search(what)
        field = ".".join(filter(None, (where, unknown["name"]))) if unknown else where
        return _at_line(text, field, f"{where or 'the top'}: {_one_line(what)}")
    wrong = _check(rule)
    return _at_line(text, wrong.partition(":")[0], wrong) if wrong else rule


def _at_line(text: str, field: str, wrong: str) -> str:
    line = line_of(text, field)
    return wrong if line is None else f"line {line}: {wrong}"


def _check(rule: Rule) -> str:
    """Return what is wrong with a rule that has the right form, or nothing."""
    if not _CODE.fullmatch(rule.code):
        return f"code: {rule.code!r} is not letters followed by three digits, as MINE001"
    if rule.code in known_rules():
        return f"code: {rule.code} is one of vigil's own"
    if not rule.when:
        return "when: a rule needs one way to see the failure"
    wrong = check_rule(rule, wrong_with)
    if wrong:
        return wrong
    for place, sample in enumerate(rule.match):
        lines = sample.text.splitlines()
        if not any(when.text in line for when in rule.when for line in lines):
            return f"match[{place}].text: it holds the text of no `when`"
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
