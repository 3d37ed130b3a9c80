"""`vigil draft prepare`: prompts become training data, answered anew by the target."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from vigil.cli import options
from vigil.cli.saying import mention, say
from vigil.errors import MeasureError, UsageError

PROGRESS_S = 10.0


def command(
    target: Annotated[
        str, typer.Option("--target", metavar="MODEL", help="The target's folder: its tokenizer and template.")
    ],
    prompts: Annotated[
        list[Path], typer.Option("--prompts", metavar="FILE", help="JSON lines (also .gz, .xz), or one prompt a line.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the data goes; one with the same is gone on with.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="Start this server for it, and stop it at the end."),
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL|NAME", help="The server of the target.")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", metavar="N", help="Length of an answer at most.")] = 512,
    length: Annotated[
        int, typer.Option("--length", metavar="L", help="Length of a document at most; the rest is cut.")
    ] = 2048,
    temperature: Annotated[float, typer.Option("--temperature", metavar="T", help="Of sampling; 0 is greedy.")] = 0.0,
    keep_answers: Annotated[
        bool, typer.Option("--keep-answers", help="Take the answers of the files; no server is asked.")
    ] = False,
    concurrency: Annotated[int, typer.Option("--concurrency", metavar="N", help="Questions open at once.")] = 64,
    held_out: Annotated[
        float, typer.Option("--held-out", metavar="SHARE", help="Share of prompts that is not trained on.")
    ] = 0.05,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of sampling, and of what is held out.")] = 0,
    model: options.Model = None,
    api_key_env: options.KeyEnv = None,
    timeout: options.Timeout = "15m",
    json: options.Json = False,
) -> None:
    """Have prompts answered by the target itself, and write token ids with a loss mask; goes on after a kill."""
    from vigil.cli.benching import run
    from vigil.screen import json_of
    from vigil_draft.data.preparation import Audience, Settings, prepare

    _check(max_tokens=max_tokens, length=length, temperature=temperature, concurrency=concurrency, held_out=held_out)
    if [server is not None, bool(command), keep_answers].count(True) != 1:
        raise UsageError(
            "give one of: --server URL or NAME, `-- COMMAND` that starts one, or --keep-answers where the files hold them"
        )
    settings = Settings(
        target=target,
        prompts=tuple(prompts),
        out=out,
        max_tokens=max_tokens,
        length=length,
        temperature=temperature,
        keep_answers=keep_answers,
        concurrency=concurrency,
        held_out=held_out,
        seed=seed,
        model=model,
        key=os.environ.get(api_key_env) if api_key_env else None,
        command=tuple(sys.argv),
    )
    try:
        counts = run(
            lambda: prepare(settings, _server(server, command, timeout), Audience(tell=mention, show=_progress))
        )
    except KeyboardInterrupt:
        mention(f"interrupted; what is answered is kept in {out}: the same command goes on")
        raise typer.Exit(130) from None
    if json:
        say(json_of(counts))
    else:
        for side, told in counts.items():
            say(f"{side:8} " + "   ".join(f"{value:,} {name}" for name, value in told.items()))
        mention(f"written to {out}/train and {out}/heldout")


def _check(*, max_tokens: int, length: int, temperature: float, concurrency: int, held_out: float) -> None:
    for name, value in (("--max-tokens", max_tokens), ("--length", length), ("--concurrency", concurrency)):
        if value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if not 0 <= temperature <= 2:  # noqa: PLR2004 - what the servers take
        raise UsageError(f"--temperature {temperature:g}: give 0 to 2")
    if not 0 <= held_out < 1:
        raise UsageError(f"--held-out {held_out:g}: give 0 or more, and less than 1")


def _server(
    server: str | None, command: list[str] | None, timeout: str
) -> Callable[[], AbstractAsyncContextManager[Any]] | None:
    """Return what gives the server that the user means."""
    if command:
        return lambda: _started(tuple(command), timeout)
    return (lambda: _there(server)) if server is not None else None


@asynccontextmanager
async def _there(server: str) -> AsyncIterator[Any]:
    from vigil.cli.bench import known_server

    yield await known_server(server)


@asynccontextmanager
async def _started(command: tuple[str, ...], limit: str) -> AsyncIterator[Any]:
    """Bring a server up as `vigil up` does, and stop it however we end."""
    from vigil.cli.checks import check_command
    from vigil.cli.lifting import lifted
    from vigil.plan import Plan

    plan = Plan(name="draft-prepare", command=command, cwd=options.here(None, None), policy=options.policy(limit, 1.0))
    check_command(plan)
    mention("the server is started")
    async with lifted(plan, lambda _: None) as up:
        if up.url is None:
            cause = await up.cause()
            raise MeasureError(f"the server did not come up: {cause.text if cause else 'no cause was found'}")
        yield up


async def _progress(line: Callable[[], str]) -> None:
    """Say how far it is, now and then, until cancelled."""
    while True:
        await asyncio.sleep(PROGRESS_S)
        mention(line())
