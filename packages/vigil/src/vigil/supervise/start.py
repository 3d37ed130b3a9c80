"""Start a plan's command on its host, or take up a server that was started before; stop it; note its verdict."""

import time
from pathlib import PurePath
from typing import Any

import anyio
import msgspec

from vigil.attest import attester_of
from vigil.attest.plugin import plugin_of
from vigil.diagnosis.seen import Seen
from vigil.engines import worth_keeping
from vigil.errors import UnreachableError, UsageError, VigilError
from vigil.facts import Refused
from vigil.hosts import CommandError, PortError, Reach, call
from vigil.plan import Plan
from vigil.screen import duration
from vigil.store import Mirror
from vigil.supervise.session import Session, settled
from vigil.supervise.spec import parse_url
from vigil.verdict import Verdict


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A start under our launcher. `folder` lies on the server's host; `began_s` is our monotonic clock at the launch.

    `plan_id` is that of the plan that was started, and `up_s` how long it had run when we took it up. `good`: an earlier start of
    this name became ready, or that is not known.
    """

    name: str
    folder: str
    log: str
    began_s: float
    plan_id: str | None = None
    up_s: float = 0.0
    good: bool = True


async def begin(plan: Plan, session: Session, reach: Reach) -> Started | Refused:
    """Start the command; return the start, or the fact that it was refused on its host."""
    url = session.state.asked.url
    _, host, port = parse_url(url) if url else ("", None, None)
    began_s = time.monotonic()
    spec = {
        "name": plan.name,
        "made_name": made_name(plan, session, port),
        "command": list(plan.command),
        "env": plan.env,
        "cwd": plan.cwd,
        "log": plan.log,
        "host": host,
        "port": port,
        "plan": kept_plan(plan, session),
        "attester": attester_of(plan.expect, session.table) if plan.attest and not plan.job else None,
        "plugin": plugin_of(plan.schedule, plan.placed),
        "keep": worth_keeping(session.table, plan.command, plan.env),
    }
    try:
        answer = await call(reach, "launch", spec=spec)
    except (CommandError, PortError) as error:
        return Refused(at_s=0.0, what="port" if isinstance(error, PortError) else "command", text=str(error))
    life = answer["life"]
    state = session.state
    asked = msgspec.structs.replace(state.asked, name=answer["name"], log=life["log"])
    session.state = msgspec.structs.replace(state, asked=asked)
    session.plan = msgspec.structs.replace(plan, name=answer["name"])
    return Started(
        name=answer["name"],
        folder=answer["folder"],
        log=life["log"],
        began_s=began_s,
        good=answer.get("good") is True,
    )


def made_name(plan: Plan, session: Session, port: int | None) -> str:
    """Return a name for a plan without one: the engine, or the program, and the port."""
    engine = session.table.name
    base = engine if engine != "generic" else PurePath(plan.command[0]).stem or "server"
    safe = (
        "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in base).strip("-")[:40] or "server"
    )
    return f"{safe}-{port}" if port else safe


def kept_plan(plan: Plan, session: Session) -> dict[str, Any]:
    """Return the plan as it is kept in the state folder of its host."""
    kept = msgspec.structs.replace(settled(plan, session.table, session.state.asked), on=None, reach=None)
    return {**msgspec.to_builtins(kept), "plan_id": plan.id}


async def show(name: str, reach: Reach) -> dict[str, Any]:
    """Return what is known of a server on its host; where that cannot be reached, the error tells what was last known here."""
    try:
        return await call(reach, "show", name=name)
    except UnreachableError as error:
        last = Mirror().last(reach.label, name)
        if last is None:
            raise
        before = f"{name} was last known {duration(last.age_s)} ago: {last.verdict.word.value}"
        raise UnreachableError(f"{error}; {before}") from error


async def adopt(plan: Plan, reach: Reach) -> tuple[Plan, Started]:
    """Take up a server by its name: what is known of it on its host completes the plan."""
    assert plan.name is not None  # noqa: S101 - the caller looked
    known = await show(plan.name, reach)
    kept = known.get("plan") or {}
    try:
        before = msgspec.convert(kept, Plan)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"the state of {plan.name} on {reach.label} was written by another version: {error}"
        ) from error
    life = known.get("life") or {}
    full = msgspec.structs.replace(
        plan,
        engine=plan.engine or before.engine,
        job=before.job,
        url=plan.url or before.url,
        model=plan.model or before.model,
        ready=plan.ready or before.ready,
        speculation=before.speculation,
        health_path=plan.health_path or before.health_path,
        expect=plan.expect or before.expect,
    )
    started = Started(
        name=plan.name,
        folder=known["folder"],
        log=life.get("log", ""),
        began_s=time.monotonic(),
        plan_id=kept.get("plan_id"),
        up_s=known.get("up_s") or 0.0,
    )
    return msgspec.structs.replace(full, log=plan.log), started


async def stop(reach: Reach, name: str, grace_s: float, by: str) -> dict[str, Any]:
    """End a server that our launcher started, and all of its tree."""
    return await call(reach, "stop", timeout_s=grace_s + 60.0, name=name, grace_s=grace_s, by=by)


async def note(reach: Reach, started: Started, verdict: Verdict, seen: Seen | None = None) -> bool:
    """Keep the verdict beside the server, and here of one elsewhere; say whether that host could be told.

    `seen`: what the host showed when the last attempt ended; it is kept with it, since room and processes do not stay.
    """
    shown = {} if seen is None else {"seen": msgspec.to_builtins(seen)}
    if not reach.local:
        Mirror().keep(reach.label, verdict)
    with anyio.move_on_after(10.0, shield=True):
        try:
            await call(
                reach,
                "note",
                timeout_s=10.0,
                name=started.name,
                folder=started.folder,
                verdict={**msgspec.to_builtins(verdict), **shown},
            )
        except VigilError:
            return False
        return True
    return False
