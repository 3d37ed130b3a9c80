"""States from a server, for `vigil draft extract`: one that is there, or one that is started and stopped as `vigil up` does."""

import dataclasses
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import typer

from vigil.cli import options
from vigil.cli.saying import mention
from vigil_draft.states.asked import Asked

HANDED = "handed"
"""The folder in --out where a server that we start puts states, until they are taken over."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started."""

    program: str | None
    more: tuple[str, ...]
    env: dict[str, str]
    timeout: str
    check: bool


def from_served(
    asked: Asked, server: str, handed: Path | None, at_once: int, model: str | None, key_env: str | None
) -> dict[str, Any]:
    """Take the states of a server that is there."""
    from vigil.cli.bench import known_server
    from vigil.cli.benching import run
    from vigil_draft.states.served.extraction import Wanted, engine_of, extract_served, there

    key = os.environ.get(key_env) if key_env else None

    async def work() -> dict[str, Any]:
        known = await known_server(server)
        name = model or known.model
        by = known.engine or await engine_of(known.url, name, key)
        wanted = Wanted(asked=dataclasses.replace(asked, by=by), handed=handed, at_once=at_once, tell=mention)
        return await extract_served(wanted, lambda: there(known.url, name, key))

    try:
        return run(work)
    except KeyboardInterrupt:
        _interrupted(asked)


def from_started(asked: Asked, start: Start, at_once: int) -> dict[str, Any]:
    """Start a server, take its states, stop it."""
    from vigil.cli.benching import run
    from vigil_draft.states.served.extraction import Wanted, extract_served

    handed = (Path(asked.out) / HANDED).absolute()
    wanted = Wanted(asked=asked, handed=handed, at_once=at_once, tell=mention)
    try:
        return run(lambda: extract_served(wanted, lambda: _started(wanted, start)))
    except KeyboardInterrupt:
        _interrupted(asked)
    finally:
        shutil.rmtree(handed, ignore_errors=True)


def _interrupted(asked: Asked) -> NoReturn:
    mention(f"interrupted; finished shards are kept in {asked.out}: the same command goes on")
    raise typer.Exit(130)


@asynccontextmanager
async def _started(wanted: Any, start: Start) -> AsyncIterator[Any]:
    """Bring the server up, with a clean folder for what it hands over."""
    from vigil.cli.checks import check_command
    from vigil.cli.lifting import lifted

    plan = _plan(wanted, start)
    check_command(plan)
    shutil.rmtree(wanted.handed, ignore_errors=True)
    wanted.handed.mkdir(parents=True)
    mention("the server is started")
    async with lifted(plan, lambda phase: mention(f"the server: {phase}") if phase else None) as up:
        yield up


def _plan(wanted: Any, start: Start) -> Any:
    from vigil.hosts.forward import free_port
    from vigil.plan import Plan
    from vigil_draft.data.starting import starting
    from vigil_draft.data.template import resolve
    from vigil_draft.states.served.extraction import engine_for
    from vigil_draft.states.served.vllm import INSIDE

    asked = wanted.asked
    flags = engine_for(wanted).arguments()
    words = (str(resolve(asked.target)), "--port", str(free_port()), *flags, *start.more)
    before = start.env.get("PYTHONPATH") or os.environ.get("PYTHONPATH")
    path = {"PYTHONPATH": f"{INSIDE}{os.pathsep}{before}" if before else str(INSIDE)} if asked.by == "vllm" else {}
    return Plan(
        name="draft-extract",
        command=starting(asked.by, start.program, words),
        env={**start.env, **path},
        cwd=options.here(None, None),
        engine=options.engine_name(asked.by),
        check=start.check,
        policy=options.policy(start.timeout, 1.0),
    )
