"""llama-server's values: numbers as `std::stoi` reads them, and a draft that nothing uses.

Read in llama.cpp b11434 (common/arg.cpp, common/speculative.cpp); its answers are in `logs/llamacpp`.
"""

import re
from collections.abc import Iterator

from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.pointed import pointed, with_value

HIGHEST = (1 << 31) - 1
WITHOUT_SPEC_TYPE = 9235
"""Up to this build at least, -md alone turned a draft on (llama.cpp#23544); it no longer did in July 2026 (#25345)."""
NUMBERS = (
    "--ctx-size", "-c", "--batch-size", "-b", "--ubatch-size", "-ub", "--parallel", "-np", "--threads", "-t", "--threads-batch",
    "-tb", "--port", "--predict", "--n-predict", "-n", "--spec-draft-n-max", "--spec-draft-n-min", "--keep",
)  # fmt: skip
DRAFTS = ("--spec-draft-model", "--model-draft", "-md", "--spec-draft-hf", "--hf-repo-draft", "-hfd", "-hfrd")
_LIKE = re.compile(r"\s*[+-]?(\d+)(.*)\Z", re.DOTALL)
_UNITS = {"k": 1 << 10, "m": 1 << 20}


def check_llamacpp(command: Command, version: tuple[int, ...] | None) -> Iterator[Finding]:
    """Find numbers that llama-server reads otherwise than they are meant, and a draft without a way to draft."""
    for given in command.all_of(*NUMBERS):
        if given.value and not (command.shell and "$" in given.value):
            yield from _number(given, given.value)
    yield from _draft(command, version)


def _number(given: Given, value: str) -> Iterator[Finding]:
    found = _LIKE.match(value)
    seen = "llama.cpp b11434, common/arg.cpp: std::stoi"
    if found is None:
        return  # the parser's own refusal
    if len(found[1]) > len(str(HIGHEST)) or int(found[1]) > HIGHEST:
        text = f"{given.name} {value[:40]} is more than {HIGHEST}, the largest number that it takes"
        yield pointed(given, "FLAG002", Severity.FATAL, text, "give it a smaller number", seen=seen)
    elif found[2].strip(" .0"):
        unit = _UNITS.get(found[2].strip().lower())
        meant = str(int(found[1]) * unit) if unit and int(found[1]) * unit <= HIGHEST else None
        text = (
            f"{given.name} {value[:40]} is read as {found[1]}: llama-server stops at the first letter, without a word"
        )
        edits = with_value(given, meant) if meant else ()
        advice = f"{given.name} {meant}" if meant else "give it a whole number"
        yield pointed(given, "FLAG002", Severity.FATAL, text, advice, edits=edits, seen=seen)


def _draft(command: Command, version: tuple[int, ...] | None) -> Iterator[Finding]:
    """Find a draft model without --spec-type: newer builds load it and never ask it, unless its file says what it is for."""
    given = command.last(*DRAFTS)
    told = command.text("--spec-type") or command.env.get("LLAMA_ARG_SPEC_TYPE") or ""
    old = version is not None and version[0] <= WITHOUT_SPEC_TYPE
    if given is None or told not in {"", "none"} or old or command.last("--spec-default") is not None:
        return
    if told == "none":
        text = f"--spec-type none turns speculation off: the draft of {given.name} is loaded and never asked"
        place = command.last("--spec-type")
        edits = with_value(place, "draft-simple") if place is not None else ()
    else:
        text = (
            f"{given.name} alone does not turn speculation on: without --spec-type the draft is loaded and never asked"
        )
        edits = (Edit(at=given.at + given.count, put=("--spec-type", "draft-simple")),)
    yield pointed(
        given,
        "SPEC001",
        Severity.WARNING,
        text,
        "add --spec-type draft-simple (draft-eagle3 for such a draft); a file that says so itself (MTP, DFlash) needs none",
        edits=edits,
        seen="llama.cpp#25345; b11434 in logs/llamacpp/ok-draft-self",
    )
