"""What the processes of a server said that they run: when they are asked, and what of it is worth a warning. Pure."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from vigil.engine_table import EngineTable
from vigil.fact_parts import EditedFile
from vigil.facts import Attested, SpeculationMeasured
from vigil.verdict.effects import Attest, MeasureSpeculation
from vigil.verdict.expected import SILENT, judge_expectations, unasked
from vigil.verdict.state import Attestation, State
from vigil.verdict.view import View
from vigil.verdict.who import named
from vigil.verdict.words import Expected

SHOWN_FILES = 6
ANSWER_SHARE = 0.6  # of the patience; the rest is for putting the answers together
EXPECTED_PATIENCE = 3.0
MODULES = (".py", ".so", ".pyd")


def on_attested(state: State, fact: Attested, _table: EngineTable) -> State:
    """Keep what the processes said."""
    return replace(state, attestation=replace(state.attestation, seen=fact, seen_fact=state.n))


def on_speculation_measured(state: State, fact: SpeculationMeasured, _table: EngineTable) -> State:
    """Keep what a few answers said of speculation."""
    return replace(state, attestation=replace(state.attestation, measured=fact, measured_fact=state.n))


def ask(view: View) -> tuple[Attest | MeasureSpeculation, ...]:
    """Return what should be asked of a server that has just become ready: once in each life."""
    state = view.state
    if state.serving.ready_s is None or _asked(state) or not (_wants(state) or _measures(state)):
        return ()
    of = {one.what: [each.name for each in state.asked.expect if each.what == one.what] for one in state.asked.expect}
    effects: list[Any] = []
    if _wants(state):
        modules, files, classes = (tuple(of.get(what, ())) for what in ("module", "file", "class"))
        waits_s = ANSWER_SHARE * _patience_s(state)
        effects.append(
            Attest(modules=modules, files=files, classes=classes, arguments="arg" in of, patience_s=round(waits_s, 3))
        )
    if _measures(state):
        effects.append(MeasureSpeculation())
    return tuple(effects)


def note(state: State) -> State:
    """Remember that they were asked."""
    ready_s = state.serving.ready_s
    there = state.attestation.there
    return replace(state, attestation=Attestation(there=there, of_s=ready_s, asked_s=state.now_s))


def _asked(state: State) -> bool:
    return state.attestation.of_s is not None and state.attestation.of_s == state.serving.ready_s


def _patience_s(state: State) -> float:
    """Return how long the processes may take: an expectation is worth more patience than a warning."""
    return state.asked.policy.attest_patience_s * (EXPECTED_PATIENCE if state.asked.expect else 1.0)


def _wants(state: State) -> bool:
    """Say whether there is anybody to ask: an attester of ours, or what the server's address tells of what is expected."""
    return state.attestation.there or any(one.what != "speculation" for one in state.asked.expect)


def _measures(state: State) -> bool:
    return any(one.what == "speculation" for one in state.asked.expect)


def waits(view: View) -> bool:
    """Say whether the verdict on a ready server waits for what its processes say."""
    state, policy = view.state, view.policy
    if not (_wants(state) or _measures(state)) or state.asked.job:
        return False
    if not _asked(state) or state.attestation.asked_s is None:
        return not view.passed((state.serving.ready_s or 0.0) + _patience_s(state))
    since_s = state.attestation.asked_s
    if _wants(state) and state.attestation.seen is None and not view.passed(since_s + _patience_s(state)):
        return True
    return (
        _measures(state) and state.attestation.measured is None and not view.passed(since_s + policy.measure_patience_s)
    )


def expectations(state: State) -> tuple[Expected, ...]:
    """Return what became of each expectation; nothing before the server is ready."""
    if state.serving.ready_s is None or not state.asked.expect:
        return ()
    return judge_expectations(state.asked.expect, state.attestation.seen, state.attestation.measured)


# --- warnings


def warnings(state: State) -> tuple[str, ...]:
    """Return what a user wants to know without asking."""
    seen = state.attestation.seen
    return warnings_of(seen) if seen is not None and _asked(state) else ()


def warnings_of(seen: Attested) -> tuple[str, ...]:
    """Return what a user wants to know of what the processes said."""
    return (*_strays(seen), *_edited(seen), *_stale(seen), *_silent(seen))


def _edited(seen: Attested) -> Iterable[str]:
    """Tell, for each package, which files differ from its wheel, and who loaded each."""
    answered = [one for one in seen.processes if not one.error]
    away = {one.package for one in seen.strays}
    packages: dict[str, list[EditedFile]] = {}
    for one in seen.edited:
        if one.how != "missing" and one.package not in away:
            packages.setdefault(one.package, []).append(one)
    for package, files in packages.items():
        said = _said(files, seen) if answered else "who loads them is not known, since no process of it can be asked"
        many = f"{len(files)} files of {package} differ" if len(files) > 1 else f"1 file of {package} differs"
        yield f"{many} from the wheel: {said}"


def _said(files: list[EditedFile], seen: Attested) -> str:
    by_path = {one.path: one for one in seen.files}
    told: dict[str, list[str]] = {}
    none = "none of those that can be asked" if unasked(seen) else "none"
    for one in files:
        found = by_path.get(one.path)
        if found is not None:
            who = named(process for process in seen.processes if process.pid in found.pids)
        else:
            who = none if one.name.endswith(MODULES) else ""
        told.setdefault(who, []).append(one.name.rpartition("/")[2])
    parts = []
    for who, names in sorted(told.items(), key=lambda item: (item[0] == "", item[0] == none)):
        shown = ", ".join(names[:SHOWN_FILES]) + (
            f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
        )
        verb = "are" if len(names) > 1 else "is"
        parts.append(
            f"{shown} {verb} loaded by {who}" if who else f"{shown} {verb} no module, so who reads it is not known"
        )
    return "; ".join(parts)


def _stale(seen: Attested) -> Iterable[str]:
    changed = [one for one in seen.files if one.stale]
    if changed:
        names = ", ".join(one.path.rpartition("/")[2] for one in changed[:SHOWN_FILES])
        pids = {pid for one in changed for pid in one.stale}
        who = named(one for one in seen.processes if one.pid in pids)
        yield f"changed on disk after {who} loaded it, so that something else runs than is there: {names}"


def _strays(seen: Attested) -> Iterable[str]:
    for one in seen.strays:
        yield f"{one.package} is loaded from {one.loaded_from}, and not from {one.site}, where files of it were edited"


def _silent(seen: Attested) -> Iterable[str]:
    silent = [one for one in seen.processes if one.error.startswith(SILENT)]
    if silent:
        yield f"what {named(silent)} runs is not known: {silent[0].error}"
