"""What a check finds: a code, how bad it is, the words of the command that it is about, and how they would be right."""

import tomllib
from enum import StrEnum
from functools import cache
from importlib import resources

import msgspec


class Severity(StrEnum):
    """How bad a finding is. `fatal`: the server would die of it, or could not serve what was asked; nothing is started."""

    FATAL = "fatal"
    WARNING = "warning"
    NOTE = "note"


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the command: `drop` words from index `at` on (of `Command.words`) make way for `put`."""

    at: int
    drop: int = 0
    put: tuple[str, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. `at`, `count`: the words of the command that it is about; None where it is about the host.

    `text` says in one line what is wrong here, with the numbers; `advice` what to do. `edits` make the command right, where that
    is certain enough to be pasted. `seen`: where that is known from, in one line (a file, a parser, a table).
    """

    code: str
    severity: Severity
    text: str
    advice: str = ""
    at: int | None = None
    count: int = 1
    edits: tuple[Edit, ...] = ()
    seen: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings on a command, the worst first. `corrected`: its words with all edits made, where there are any.

    `unseen`: what could not be looked at, a line each ("no SGLang on this host: its flags are those of the table of 0.5.10").
    """

    words: tuple[str, ...]
    engine: str
    version: str | None = None
    findings: tuple[Finding, ...] = ()
    corrected: tuple[str, ...] | None = None
    unseen: tuple[str, ...] = ()

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """The findings that refuse the start."""
        return tuple(one for one in self.findings if one.severity is Severity.FATAL)


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a code means, for `--explain` and the docs. `kind` is a category of the taxonomy, where one fits."""

    code: str
    title: str
    because: str
    kind: str = "other"


@cache
def kinds() -> dict[str, Kind]:
    """Return all codes with what they mean."""
    text = (resources.files("vigil.preflight") / "findings.toml").read_text("utf-8")
    found = msgspec.convert(tomllib.loads(text)["finding"], list[Kind])
    return {one.code: one for one in found}


def edited(words: tuple[str, ...], edits: tuple[Edit, ...]) -> tuple[str, ...]:
    """Return the words after all edits; of two that touch the same word the first counts."""
    touched: set[int] = set()
    chosen: list[Edit] = []
    for edit in edits:
        span = set(range(edit.at, edit.at + max(1, edit.drop)))
        if not span & touched:
            touched |= span
            chosen.append(edit)
    found = list(words)
    for edit in sorted(chosen, key=lambda one: one.at, reverse=True):
        found[edit.at : edit.at + edit.drop] = edit.put
    return tuple(found)
