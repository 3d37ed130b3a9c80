"""What `vigil tune` does: arms from one command, measured and fitted; a schedule, put where `--speculate auto` looks."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from vigil.bench.alike import Alike, alike
from vigil.bench.folder import read_servers, write
from vigil.bench.settings import Point
from vigil.cli import benching
from vigil.cli.comparing import Started, check, compared
from vigil.cli.proving import prove
from vigil.cli.saying import mention, say
from vigil.cli.telling import tell
from vigil.engines.rewritten import rewritten
from vigil.errors import StateError, UsageError
from vigil.plan import Plan
from vigil.screen import hide_in_command, plain_json
from vigil.speculation.arms import Arms, arms_of, loads_of
from vigil.speculation.fit import Fit, fit
from vigil.speculation.measured import loads_of_rows, measured_on, schedule_of
from vigil.speculation.place import place_of
from vigil.speculation.proof import Proven, words_of_proof
from vigil.speculation.schedules import schedules
from vigil.speculation.words import turns, words_of
from vigil.supervise.ahead import command_of

if TYPE_CHECKING:
    from vigil.bench.folder import Results

LOST, UNPROVEN = 4, 13
ARMS, SCHEDULE, ANSWER = "arms", "schedule.json", "tune.json"


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """What is tuned: the plan of each arm, as its user gave it and with limits set alike."""

    arms: Arms
    given: dict[str, Plan]
    asked: benching.Asked
    started: Started
    commands: Alike
    engine: str
    folder: Path


def tune(plan: Plan, asked: benching.Asked, ks: Sequence[int], out: Path | None, *, at: str | None, json: bool) -> None:
    """Measure, fit, tell; leave with 4 where an arm failed, with 13 where there is no proven answer."""
    tuning = prepared(plan, asked, ks, out, at)
    mention(f"results go to {tuning.folder}; after an interruption the same command with --out {tuning.folder} goes on")
    results, failed = measured(tuning)
    found = fit(loads_of_rows(results.rows, tuning.arms.k), tuning.asked.settings.seed)
    answer: dict[str, Any] = {"schema": 1, "cannot_switch": tuning.arms.cannot, "failed": sorted(failed)}
    if found is None:
        raise StateError(_nothing(results, failed))
    text = turns(found) if tuning.arms.cannot and found.kind != "inconclusive" else words_of(found)
    unproven = found.kind == "inconclusive"
    answer |= {"kind": found.kind, "text": text, "fit": msgspec.to_builtins(found)}
    if found.kind == "switch" and not tuning.arms.cannot:
        answer |= scheduled(tuning, found, results)
        unproven = bool(answer["proof"]["against"])
    write(tuning.folder / ANSWER, answer)
    _say(tuning, answer, results.path, json=json)
    raise typer.Exit(UNPROVEN if unproven else LOST if failed else 0)


def prepared(plan: Plan, asked: benching.Asked, ks: Sequence[int], out: Path | None, at: str | None) -> Tuning:
    """Return what is to be measured; raise `UsageError` for what cannot be, before anything is started."""
    command = command_of(plan)
    arms = arms_of(command, ks)
    if not arms.cannot:
        schedules()
    points = asked.points or tuple(Point(value=load) for load in loads_of(command))
    asked = msgspec.structs.replace(asked, points=points)
    own = {name: rewritten(plan.command, command.words, words) for name, words in arms.words.items()}
    if any(words is None for words in own.values()):
        raise UsageError(
            "the speculation of this command cannot be changed where it stands: give the server's own command"
        )
    given = {name: words for name, words in own.items() if words is not None}
    limited = alike(given, int(max(one.value for one in points)))
    plans = {
        name: msgspec.structs.replace(plan, name=f"tune-{name}", command=words)
        for name, words in limited.commands.items()
    }
    check(plans)
    folder = benching.folder_for(out, "tune")
    return Tuning(
        arms=arms,
        given={name: msgspec.structs.replace(plan, command=words) for name, words in given.items()},
        asked=asked,
        started=Started(plans=plans, at=at, out=folder),
        commands=limited,
        engine=command.engine,
        folder=folder,
    )


def measured(tuning: Tuning) -> "tuple[Results, set[str]]":
    """Measure what is missing of the arms."""
    return compared(tuning.asked, tuning.commands, tuning.started, tuning.folder / ARMS)


def scheduled(tuning: Tuning, found: Fit, results: "Results") -> dict[str, Any]:
    """Write the schedule of a fit, prove it, and only then put it where `--speculate auto` looks; return what is told of it."""
    arm = next(name for name, k in tuning.arms.k.items() if k == found.tiers[0].k)
    plan = tuning.given[arm]
    on = measured_on(read_servers(results.path), results.rows, tuning.arms.k, hide_in_command(plan.command))
    held = schedule_of(found, tuning.engine, on)
    schedules().read(msgspec.json.encode(held).decode())  # what it refuses is a fault of ours, and is no schedule
    path = tuning.folder / SCHEDULE
    write(path, held)
    alive = {row.arm for row in results.rows if row.measured}
    k_of = {name: k for name, k in tuning.arms.k.items() if name in alive}
    plans = {name: one for name, one in tuning.started.plans.items() if name in alive}
    try:
        proof = prove(found, path, tuning.asked, msgspec.structs.replace(tuning.started, plans=plans), arm, k_of)
    except UsageError as error:  # this command cannot be switched so; what was measured is told all the same
        proof = Proven(against=(str(error),))
    for one in (plan, plans[arm]) if not proof.against else ():
        put(held, one)
    told = {"schedule": str(path), "command": list(hide_in_command(plans[arm].command))}
    return {**told, "proof": msgspec.to_builtins(proof), "proof_text": words_of_proof(found, proof)}


def put(held: Mapping[str, Any], plan: Plan) -> None:
    """Keep a schedule for `--speculate auto`."""
    place = place_of(plan)
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StateError(f"the schedule could not be kept in {place.parent}: {error.strerror}") from error
    write(place, held)


def _nothing(results: "Results", failed: set[str]) -> str:
    why = next(
        (f"{row.arm}: {row.cause.text}" for row in results.rows if row.cause is not None), "nothing was measured"
    )
    return f"no load was measured both with speculation and without ({', '.join(sorted(failed))} failed): {why}"


def _say(tuning: Tuning, answer: Mapping[str, Any], measured_in: Path, *, json: bool) -> None:
    """Print the figures and the answer, or the answer as JSON."""
    if json:
        say(plain_json(msgspec.json.encode(answer).decode()))
        return
    tell([measured_in], json=False, keep=True)
    say(f"\n{answer['text']}")
    if tuning.arms.cannot:
        say(f"it is not switched with the load: {tuning.arms.cannot}")
    if "schedule" in answer:
        say(answer["proof_text"])
        if answer["proof"]["against"]:
            say(f"--speculate auto does not find it; it lies in {answer['schedule']}")
            return
        say(f"use it: vigil up --speculate auto -- {shlex.join(answer['command'])}")
