"""`vigil compare --arm off='...' --arm ngram='...'`: which of several commands is faster, and at which loads."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from vigil.cli import benching, options
from vigil.cli.comparing import Started, check, compared
from vigil.cli.saying import mention
from vigil.errors import UsageError

if TYPE_CHECKING:
    from vigil.bench.alike import Alike
    from vigil.bench.folder import Results

LOST = 4
FEWEST_ARMS = 2
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")

Arms = Annotated[
    list[str],
    typer.Option("--arm", metavar="NAME=COMMAND", help="A command to compare; the first is what others are held to."),
]


At = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="URL", help="With --on or --reach: where this machine reaches the arms; else through ssh."
    ),
]


def command(
    arm: Arms,
    on: options.On = None,
    reach: options.ReachOption = None,
    at: At = None,
    concurrency: benching.Concurrency = None,
    rate: benching.Rate = None,
    prompts: benching.Prompts = None,
    input_tokens: benching.Input = 512,
    output_tokens: benching.Output = 128,
    range_ratio: benching.RangeRatio = 0.0,
    natural_ends: benching.Natural = False,
    seconds: benching.Seconds = "15s",
    most: benching.Most = None,
    requests: benching.Requests = None,
    repeats: benching.Repeats = 3,
    seed: benching.Seed = 1,
    temperature: benching.Temperature = 0.0,
    chat: benching.Chat = False,
    patience: benching.Patience = "2m",
    processes: benching.Processes = 1,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    timeout: options.Timeout = "15m",
    url: options.Url = None,
    ready: options.Ready = "token",
    engine: options.Engine = None,
    model: options.Model = None,
    api_key_env: options.KeyEnv = None,
    no_check: options.NoCheck = False,
    out: benching.Out = None,
    json: options.Json = False,
    time_scale: options.TimeScale = 1.0,
) -> None:
    """Start several commands in turn, measure each at the same loads, stop it, and say which is faster where."""
    from vigil.bench.alike import alike
    from vigil.plan import Plan

    points = benching.points_of(concurrency, rate)
    settings = benching.settings_of(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        range_ratio=range_ratio,
        seconds=seconds,
        most=most,
        requests=requests,
        repeats=repeats,
        seed=seed,
        natural_ends=natural_ends,
        temperature=temperature,
        chat=chat,
        patience=patience,
        processes=processes,
    )
    most_at_once = int(max((one.value for one in points if one.kind == "concurrency"), default=0))
    commands = alike(arms_of(arm), most_at_once)
    if at is not None and not (on or reach):
        raise UsageError("--at is for arms on another host: give --on HOST or --reach COMMAND with it")
    plan = Plan(
        on=on,
        reach=reach,
        env=options.environment(env, env_file),
        cwd=options.here(on, reach),
        url=options.address(url),
        ready=options.choice(ready, ("token", "http", "log"), "--ready"),  # type: ignore[arg-type]
        engine=options.engine_name(engine),
        model=model,
        api_key_env=api_key_env,
        check=not no_check,
        policy=options.policy(timeout, time_scale),
        time_scale=time_scale,
    )
    plans = {
        name: msgspec.structs.replace(plan, name=f"compare-{name}", command=words)
        for name, words in commands.commands.items()
    }
    check(plans)
    asked = benching.Asked(points=points, settings=settings, prompts=benching.prompts_of(prompts))
    compare(asked, commands, Started(plans=plans, at=options.address(at)), out, json=json)


def arms_of(texts: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the commands by name; raise `UsageError` for what is none."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, line = text.partition("=")
        if not equals or not _NAME.match(name):
            raise UsageError(f"--arm {text[:40]!r}: give it as NAME='COMMAND'")
        if name in found:
            raise UsageError(f"--arm {name}: there are two of that name")
        try:
            found[name] = tuple(shlex.split(line))
        except ValueError as error:
            raise UsageError(f"--arm {name}: {str(error).lower()}; close the quotes") from error
        if not found[name]:
            raise UsageError(f"--arm {name}: the command is empty")
    if len(found) < FEWEST_ARMS:
        raise UsageError(
            "give two arms or more: --arm off='COMMAND' --arm on='COMMAND' (one server alone: vigil bench)"
        )
    return found


def compare(asked: benching.Asked, commands: "Alike", started: Started, out: Path | None, *, json: bool) -> None:
    """Compare, tell, and leave with 4 where an arm failed."""
    folder = benching.folder_for(out, "compare")
    mention(f"results go to {folder}; after an interruption the same command with --out {folder} goes on")
    results, failed = compared(asked, commands, started, folder)
    _tell(results, json=json)
    raise typer.Exit(LOST if failed else 0)


def _tell(results: "Results", *, json: bool) -> None:
    """Print table and answer, or the whole as JSON."""
    from vigil.cli.telling import tell

    tell([results.path], json=json, keep=True)
    mention(f"kept in {results.path}   Pictures: vigil report {results.path} --pictures FOLDER")
