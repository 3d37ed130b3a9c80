"""What a user expects of a server beyond that it serves (`--expect`), and whether what was seen of it says so. Pure."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec import structs

from vigil.fact_parts import AttestedProcess
from vigil.facts import Attested, SpeculationMeasured
from vigil.observer.redact import Redactor, is_secret_name
from vigil.verdict.settings import parts_of, same_value, settings_named, shown_value
from vigil.verdict.switching import judge_switching
from vigil.verdict.who import kind, named
from vigil.verdict.words import Expected

ENOUGH_ACCEPTED = 1.05
"""Tokens a step of the target from which speculation counts as on and of use; 1 is none of the draft's."""
SHOWN_VALUES = 3
SILENT = "it did not answer"
NOTHING_LOADED = "it loaded nothing of the engine"
FORMS = "module=NAME, file=PATH, class=NAME, arg.NAME=VALUE or speculation"


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """One `--expect`. `name` and `value` as it says; `text` is all of it."""

    what: Literal["module", "file", "class", "arg", "speculation", "speculate"]
    text: str
    name: str = ""
    value: str = ""


def read_expectation(text: str) -> Expectation:
    """Return what a text expects; raise `ValueError` with one line for what is no expectation."""
    if not text.isprintable():
        raise ValueError(f"{ascii(text)[:80]} is nothing that can be expected: it holds what cannot be printed")
    if text == "speculation":
        return Expectation(what="speculation", text=text)
    left, equals, right = text.partition("=")
    if equals and right and left.startswith("arg.") and _holds_secret(left, right):
        raise ValueError(f"{left[:80]}=...: a secret is never told, so nothing can be expected of it")
    if equals and right and left.startswith("arg.") and len(left) > len("arg."):
        return Expectation(what="arg", text=text, name=left[4:], value=right)
    for what in ("module", "file", "class", "speculate"):
        if left == what and right:
            return Expectation(what=what, text=text, name=right)
    shown = f"{left}=..." if equals and _holds_secret(left, right) else text
    raise ValueError(f"{shown[:80]!r} is nothing that can be expected: give {FORMS}")


def _holds_secret(name: str, value: str) -> bool:
    """Tell whether a value is one that nobody may see: by its name, by that of a part of it, or by its look."""
    parts = parts_of(value) or {}
    inner = any(_holds_secret(part, one) for part, one in parts.items())
    return is_secret_name(name) or inner or Redactor().clean(value) != value


def judge_expectations(
    asked: Sequence[Expectation], seen: Attested | None, measured: SpeculationMeasured | None
) -> tuple[Expected, ...]:
    """Return of each expectation whether it is met, and what was found; `met` None: it cannot be told, so it is not met."""
    found = []
    for one in asked:
        if one.what == "speculation":
            met, text = speculation(measured)
        elif seen is None:
            met, text = None, "its processes did not say in time what they run"
        else:
            met, text = _JUDGES[one.what](one, seen)
        found.append(Expected(expectation=one.text, met=met, found=text))
    return tuple(found)


Judged = tuple[bool | None, str]


def _answered(seen: Attested) -> list[AttestedProcess]:
    return [one for one in seen.processes if not one.error]


def _loaded(pids: set[int], seen: Attested, name: str) -> Judged:
    """Judge who loaded something: of ranks of one kind all must have, or none of them; where nobody has, tell what is instead."""
    answered = _answered(seen)
    have = [one for one in answered if one.pid in pids]
    lack = [one for one in answered if one.pid not in pids and kind(one) in {kind(other) for other in have}]
    if not have:
        alike = ", ".join(seen.instead.get(name, ()))
        return _unless_silent(seen, f"loaded by none of {named(answered)}{f', but {alike} is' if alike else ''}")
    if lack:
        return False, f"loaded by {named(have)}, and not by {named(lack)}"
    return True, f"loaded by {named(have)}"


def _module(wanted: Expectation, seen: Attested) -> Judged:
    pids = {pid for one in seen.files if wanted.name in one.modules for pid in one.pids}
    return _loaded(pids, seen, wanted.name) if _answered(seen) else _on_stacks(pids, seen)


def _file(wanted: Expectation, seen: Attested) -> Judged:
    found = next((one for one in seen.files if wanted.name in one.asked), None)
    if not _answered(seen):
        met, text = _on_stacks(set(found.pids) if found is not None else set(), seen)
        return None, f"{text}; whether as it is on disk now, cannot be told" if met else text
    if found is not None and not found.modules:
        who = named(one for one in seen.processes if one.pid in found.pids)
        return (
            None,
            f"read by {who}, and the file of none of its modules: its import failed, or it was run by other means",
        )
    met, text = _loaded(set(found.pids) if found is not None else set(), seen, wanted.name)
    if found is not None and found.stale:
        old = [one for one in seen.processes if one.pid in found.stale]
        return False, f"{named(old)} loaded it before it changed on disk: restart the server to run what is there now"
    if met and found is not None and found.unsure:
        return (
            None,
            f"{text}; it was touched since the server began, and whether it is as it was then cannot be told of such a file",
        )
    return met, text


def _class(wanted: Expectation, seen: Attested) -> Judged:
    if not _answered(seen):
        return None, _nobody(seen)
    told = [one for one in seen.classes if one.name == wanted.name]
    alive = {one.pid for one in told if one.alive}
    if alive:
        return True, f"alive in {named(one for one in seen.processes if one.pid in alive)}"
    defined = {one.pid for one in told if one.defined}
    if not defined:
        return _unless_silent(seen, f"defined in none of {named(_answered(seen))}")
    text = f"no instance of it was found in {named(one for one in seen.processes if one.pid in defined)}, which know it"
    if any(one.frozen for one in told if one.defined):
        return (
            None,
            f"{text}; not all of their objects could be listed (gc.freeze, too many, or of a kind that is not tracked)",
        )
    return False, text


def _on_stacks(pids: set[int], seen: Attested) -> Judged:
    """Judge by the stacks alone: what stands on one is loaded, and what does not may be."""
    have = [one for one in seen.processes if one.pid in pids]
    return (True, f"on a stack of {named(have)}, so it is loaded there") if have else (None, _nobody(seen))


def _unless_silent(seen: Attested, text: str) -> Judged:
    """Judge that something is nowhere, where everybody answered; a process that did not, or could not be asked, may have it."""
    silent = [one for one in seen.processes if one.error.startswith(SILENT)]
    if silent:
        return None, f"{text}; {named(silent)} did not answer in time"
    deaf = unasked(seen)
    return (None, f"{text}; {named(deaf)} cannot be asked: {deaf[0].error}") if deaf else (False, text)


def unasked(seen: Attested) -> list[AttestedProcess]:
    """Return the processes that may run anything: those that said nothing, but not those that never loaded the engine."""
    return [one for one in seen.processes if one.error and one.error != NOTHING_LOADED]


def _nobody(seen: Attested) -> str:
    why = sorted({one.error for one in seen.processes if one.error})
    return (
        f"no process of it can be asked what it loaded ({seen.error or '; '.join(why[:2]) or 'no attester is in it'})"
    )


def _arg(wanted: Expectation, seen: Attested) -> Judged:
    parts = parts_of(wanted.value)
    if parts is not None:
        return _parts(wanted, parts, seen)
    sources = [one for one in (*seen.arguments, *([seen.served] if seen.served else [])) if one.values]
    if not sources:
        why = seen.served.error if seen.served is not None else ""
        return None, f"neither its processes nor its address tell its arguments{f' ({why})' if why else ''}"
    for one in sources:
        values = settings_named(one, wanted.name)
        if values:
            differ = {name: value for name, value in values.items() if not same_value(wanted.value, value)}
            shown = ", ".join(
                f"{name} is {shown_value(value)}" for name, value in list((differ or values).items())[:SHOWN_VALUES]
            )
            return not differ, f"{shown} ({one.source})"
    return None, f"no setting is called {wanted.name} ({', '.join(one.source for one in sources)})"


def _parts(wanted: Expectation, parts: dict[str, str], seen: Attested) -> Judged:
    """Judge an object by its parts, which the engine's settings are told in: one that is not so is told, else all."""
    judged = [
        _arg(structs.replace(wanted, name=f"{wanted.name}.{name}", value=value), seen) for name, value in parts.items()
    ]
    mets = {met for met, _ in judged}
    worst = False if False in mets else None if None in mets else True
    return worst, "; ".join(text for met, text in judged if met is worst)


def speculation(measured: SpeculationMeasured | None) -> Judged:
    """Judge what a few answers say: on and of use, on and of none, off, or not to be told."""
    if measured is None:
        return None, "it was not measured in time"
    if measured.error:
        return None, f"it could not be measured: {measured.error}"
    steps = sum(one.steps or 0 for one in measured.answers)
    tokens = sum(one.tokens for one in measured.answers)
    proposed = sum(one.proposed or 0 for one in measured.answers)
    if not measured.source:
        return None, "nothing of its answers tells of drafts"
    if not steps and not proposed and not tokens:
        return None, f"no token was made, by {measured.source}"
    if not steps and not proposed:
        return False, f"off: {tokens} tokens were made, and nothing was drafted for them, by {measured.source}"
    if not steps:
        return None, f"how many tokens a step makes is not told by {measured.source}"
    told = f"{tokens} tokens in {steps} steps, by {measured.source}"
    rate = tokens / steps
    if rate > ENOUGH_ACCEPTED:
        return True, f"on: {rate:.2f} tokens a step ({told})"
    return (
        False,
        f"on, and of no use: {rate:.2f} tokens a step, so next to nothing that is drafted is accepted ({told})",
    )


_JUDGES: dict[str, Callable[[Expectation, Attested], Judged]] = {
    "module": _module,
    "file": _file,
    "class": _class,
    "arg": _arg,
    "speculate": lambda wanted, seen: judge_switching(wanted.name, seen),
}
