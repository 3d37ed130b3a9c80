"""Values that must be JSON: where the mistake stands, and what was meant where that is plain."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.screen import plain

# Parsed by json.loads at the start: vllm 0.32 (engine/arg_utils.py, get_kwargs), sglang 0.5.23 (configs/model_config.py,
# arg_groups/). Flags that also take a file, a Python path or a word of their own are not here.
FLAGS = {
    "vllm": ("--speculative-config", "-sc", "--kv-transfer-config", "--override-generation-config", "--hf-overrides"),
    "sglang": ("--json-model-override-args", "--cuda-graph-config", "--preferred-sampling-params"),
}
# A class of the engine's takes them as JSON; what does not begin as an object may be another form (-O3).
OBJECTS = (
    "--compilation-config", "-cc", "--kv-events-config", "--ec-transfer-config", "--structured-outputs-config",
    "--attention-config", "--pooler-config", "--override-pooler-config", "--eplb-config", "--profiler-config", "--kernel-config",
    "--reasoning-config",
)  # fmt: skip
LONGEST = 65536
AROUND = 14
_TIDY = str.maketrans({
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"', "\u2018": "'", "\u2019": "'",
    "\u00a0": " ",
})  # fmt: skip
_BARE = re.compile(
    r"(?<![\w./\-\"])(?!(?:true|false|null)\b)(?!-?\d+(?:\.\d+)?(?:[\s,\]}]|\Z))([A-Za-z_./~\d][\w./\-~]*)"
)


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A flag's JSON as it was read: `given` the flag, `value` the object."""

    given: Given
    value: dict[str, Any]


def check_json(command: Command) -> Iterator[Finding]:
    """Find values that are no JSON."""
    objects = command.all_of(*OBJECTS) if command.engine == "vllm" else []
    objects = [one for one in objects if (one.value or "").lstrip("'").startswith("{")]
    for given in (*command.all_of(*FLAGS.get(command.engine, ())), *objects):
        if (
            given.value
            and given.value.lower() != "none"
            and len(given.value) <= LONGEST
            and not _filled(command, given.value)
        ):
            yield from _broken(command, given, given.value)


def _filled(command: Command, value: str) -> bool:
    """Say whether a shell has still to fill something in."""
    return command.shell and "$" in value


def read(command: Command, *names: str) -> Value | None:
    """Return the object that the last flag of these names gives, or None where there is none that can be read."""
    given = command.last(*names)
    value = read_object(given.value) if given is not None else None
    return Value(given=given, value=value) if given is not None and value is not None else None


def read_object(text: str | None) -> dict[str, Any] | None:
    """Return the JSON object that a text is, None where it is none, or too long."""
    found = _parse(text) if text and len(text) <= LONGEST else None
    return found if isinstance(found, dict) else None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _broken(command: Command, given: Given, text: str) -> Iterator[Finding]:
    try:
        found = json.loads(text)
    except RecursionError:
        found, what = None, "is nested too deeply"
    except json.JSONDecodeError as error:
        found, what = None, f"is no JSON: {error.msg.lower()} at character {error.pos + 1}, {_around(text, error.pos)}"
    except ValueError:  # a number of more digits than Python reads
        found, what = None, "is no JSON"
    else:
        what = f"is no JSON object but {plain(text, 40)}"
    if isinstance(found, dict):
        return
    spread = _spread(command, given)
    meant = _meant(text) or (_meant(spread[0]) if spread else None)
    count = given.count + (spread[1] if spread and _meant(text) is None else 0)
    yield Finding(
        code="FLAG002",
        severity=Severity.FATAL,
        text=f"the value of {given.name} {what}" + ("" if count == given.count else "; its quotes went to the shell"),
        advice=f"as JSON, in single quotes for the shell: {given.name} '{plain(meant, 300)}'"
        if meant
        else "JSON wants double quotes around names and texts, and single ones around the whole for the shell",
        at=given.at,
        count=count,
        edits=(Edit(at=given.at, drop=count, put=(given.name, meant)),) if meant else (),
        seen="Python's json, which the engine reads it with",
    )


def _around(text: str, at: int) -> str:
    before, after = text[max(0, at - AROUND) : at], text[at : at + AROUND]
    return f"here: {plain(before, 40)}>>{plain(after, 40)}" if after else f"at its end: {plain(before, 40)}"


def _spread(command: Command, given: Given) -> tuple[str, int] | None:
    """Return a value that a shell took apart at its spaces, put together again, and how many more words it takes."""
    text = given.value or ""
    for more, word in enumerate(command.words[given.at + given.count : command.end], start=1):
        if not text.startswith("{") or len(text) > LONGEST or word.startswith("--"):
            return None
        text += " " + word
        if text.count("{") == text.count("}"):
            return text, more
    return None


def _meant(text: str) -> str | None:
    """Return the JSON object that was meant: typographic and single quotes, a comma too many, no quotes at all."""
    tidy = text.translate(_TIDY).strip().strip("'")
    for attempt in (
        tidy,
        tidy.replace("'", '"'),
        _BARE.sub(r'"\1"', tidy) if '"' not in tidy and "'" not in tidy else tidy,
    ):
        found = _parse(attempt)
        if isinstance(found, dict):
            return json.dumps(found)
    return _python(tidy)


def _python(text: str) -> str | None:
    """Return a dictionary of Python as JSON: single quotes, True, a comma behind the last entry."""
    try:
        found = ast.literal_eval(text[:4096])
        return json.dumps(found) if isinstance(found, dict) else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
