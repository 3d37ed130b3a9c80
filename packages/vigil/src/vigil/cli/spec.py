"""`vigil spec NAME`: whether a server speculates now, in each of its processes; and to switch it while it runs."""

import time
from typing import Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import options
from vigil.errors import UsageError
from vigil.screen import duration, plain, plain_json

WORDS = ("status", "on", "off", "auto")


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A server that was started with --speculate.")],
    do: Annotated[
        str, typer.Argument(metavar="[status|on|off|auto]", help="What to do; auto: by the load.")
    ] = "status",
    on: options.On = None,
    reach: options.ReachOption = None,
    json: options.Json = False,
) -> None:
    """Show whether a server speculates, since when and how often that changed; switch it on, off, or back to its schedule."""
    from vigil.hosts import call, reach_of

    if do not in WORDS:
        raise UsageError(f"{do[:40]!r}: give one of {', '.join(WORDS)}")
    answer: dict[str, Any] = anyio.run(lambda: call(reach_of(on, reach), "switch", name=name, do=do))
    told: list[dict[str, Any]] = [one for one in answer.get("processes") or () if isinstance(one, dict)]
    failed = not told or any(one.get("error") for one in told)
    if json:
        print(plain_json(msgspec.json.encode({"schema": 1, "name": name, "asked": do, "processes": told}).decode()))
    elif told:
        for one in told:
            print("\n".join(lines_of(one)))
    else:
        print(
            f"{name} says nothing of switching: it was not started with --speculate, or vigil-engine was not loaded in it"
        )
    raise typer.Exit(1 if failed else 0)


def lines_of(told: dict[str, Any]) -> list[str]:
    """Return what one process has in force, as lines for people."""
    rank = f"{plain(str(told['rank']), 20)}, " if told.get("rank") else ""
    who = f"{rank}pid {told.get('pid')} ({plain(str(told.get('engine')), 20)} {plain(str(told.get('version')), 20)})"
    wrong = [told.get("error"), *(told.get("refused") or ()), *(told.get("errors") or ())]
    lines = [f"{who}: {_state(told)}"] if told.get("deciding") else [f"{who}: it does not switch"]
    lines += [f"  wrong      {plain(str(one), 300)}" for one in wrong if one]
    if not told.get("deciding"):
        return lines
    tiers = [
        f"k {k} up" if not n else f"k {k} above {above:g}, left below {below:g}"
        for n, (k, above, below) in enumerate(told["tiers"])
    ]
    lines.append(f"  schedule   {told['schedule']}: {'; '.join(tiers).replace(' up;', ';')}")
    lines.append(
        f"  switches   {told['switches']} in {told['steps']} steps, {told['switches_last_minute']} in the last minute"
    )
    lengths = {name: _length(told["acceptance"].get(name)) for name in ("spell", "recent", "total")}
    lines.append(
        "  acceptance {spell} in this spell, {recent} lately, {total} in all (tokens a step)".format(**lengths)
    )
    return lines


def _state(told: dict[str, Any]) -> str:
    """Return k, since when, by which mode, and what waits for the next step."""
    if told.get("k") is None:
        now = "no step yet"
    else:
        since = told.get("since") or {}
        ago = duration(max(0.0, time.time() - float(since.get("at_s") or time.time())))
        now = f"k {told['k']}{' (off)' if not told['k'] else ''} for {ago}, since step {since.get('step')}"
    load = told.get("loads") or []
    waits = f"; {told['pending']} from the next step on" if told.get("pending") else ""
    return f"mode {told.get('mode')}, {now}{f', {load[-1]} running at the last step' if load else ''}{waits}"


def _length(told: Any) -> str:
    value = told.get("length") if isinstance(told, dict) else None
    return f"{value:.2f}" if isinstance(value, int | float) else "-"
