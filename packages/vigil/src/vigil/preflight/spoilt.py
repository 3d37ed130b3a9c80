"""Words that a page or a pair of quotes spoilt: dashes that are no hyphens, a flag and its value in one word."""

import re
import shlex
from collections.abc import Iterator, Mapping

import msgspec

from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.seen_parser import FlagSpec
from vigil.screen import plain

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_DASHED = re.compile(rf"(?P<dashes>[-{DASHES}]{{1,4}})(?P<name>[A-Za-z][\w-]*)(?P<value>=.*)?\Z", re.DOTALL)
_SWALLOWED = re.compile(r"--?[A-Za-z][\w.-]*[ \t]+\S")
_SWITCH = re.compile(r"--(?:no-|enable-|disable-|skip-|trust-remote-code|enforce-eager|log-requests|use-|is-)")
_KINDS = {
    "\u2013": "an en dash",
    "\u2014": "an em dash",
    "\u2212": "a minus sign",
    "\u2011": "a hyphen that does not break",
}


class Spoilt(msgspec.Struct, frozen=True, kw_only=True):
    """A word that is not what it was meant to be: what is said of it, and the words that were meant, where they are known.

    Where `may_be_value`, the word may as well be the value of the flag before it, and stays what it is.
    """

    at: int
    text: str
    advice: str
    meant: tuple[str, ...]
    may_be_value: bool = False

    @property
    def finding(self) -> Finding:
        """What the report says of it."""
        return Finding(
            code="FLAG001",
            severity=Severity.WARNING if self.may_be_value else Severity.FATAL,
            text=self.text,
            advice=self.advice,
            at=self.at,
            edits=(Edit(at=self.at, drop=1, put=self.meant),) if self.meant else (),
            seen="the words of the command",
        )


def spoilt_words(command: Command, flags: Mapping[str, FlagSpec]) -> Iterator[Spoilt]:
    """Yield the spoilt words of a command, in order. `flags`: those of its engine, by name; empty where they are not known."""
    for at in range(command.own, len(command.words) if command.end is None else command.end):
        word, before = command.words[at], command.words[at - 1] if at > command.own else ""
        dashed = _DASHED.match(word)
        if dashed is not None and set(dashed["dashes"]) & set(DASHES):
            meant = _name(dashed["name"], flags) + (dashed["value"] or "")
            yield Spoilt(
                at=at,
                text=f"{plain(word, 60)!r} begins with {_dash(dashed['dashes'])}, which no parser takes for a flag",
                advice=f"type it as {plain(meant, 80)}: it was copied from a page that prettifies dashes",
                meant=(meant,),
                may_be_value=takes_value(before, flags),
            )
        elif _SWALLOWED.match(word) and not takes_value(before, flags):
            yield Spoilt(
                at=at,
                text=f"{plain(word, 80)!r} is one word: the quotes around it keep the flag and its value together",
                advice="write them as two words, without the quotes",
                meant=_split(word),
            )


def takes_value(before: str, flags: Mapping[str, FlagSpec]) -> bool:
    """Say whether what follows a word may be its value."""
    spec = flags.get(before)
    if spec is not None:
        return spec.nargs != "0"
    return before.startswith("-") and "=" not in before and _SWITCH.match(before) is None


def as_meant(words: tuple[str, ...], spoilt: tuple[Spoilt, ...]) -> tuple[str, ...]:
    """Return the words with those that are spoilt and have one word in their place made right, at the same places."""
    right = {one.at: one.meant[0] for one in spoilt if len(one.meant) == 1 and not one.may_be_value}
    return tuple(right.get(at, word) for at, word in enumerate(words))


def _name(name: str, flags: Mapping[str, FlagSpec]) -> str:
    """Return the flag that was meant: with the hyphens that the engine knows it by, else as most are written."""
    known = next((one for one in (f"--{name}", f"-{name}") if one in flags), None)
    return known or ("-" if len(name) == 1 else "--") + name


def _dash(dashes: str) -> str:
    first = next(one for one in dashes if one in DASHES)
    return f"{_KINDS.get(first, 'a dash')} (U+{ord(first):04X})"


def _split(word: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(word[:4000]))
    except ValueError:
        return ()
