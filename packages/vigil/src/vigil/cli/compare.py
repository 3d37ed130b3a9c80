"""`vigil compare --arm off='...' --arm ngram='...'`: which of several commands is faster, and at which loads."""

import re
import shlex
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import benching, options, progress
from vigil.cli.checks import check_command, check_key, check_port
from vigil.cli.saying import mention
from vigil.errors import UsageError
from vigil.screen import hide_in_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from vigil.bench.alike import Alike
    from vigil.bench.arms import Comparing, Lifted
    from vigil.bench.folder import Arm, Meta, Results
    from vigil.plan import Plan

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


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """How the arms are started, by name, and where we reach them if not where they answer (`at`)."""

    plans: dict[str, Any]
    at: str | None = None

    @property
    def host(self) -> str:
        """The host of all of them in words; empty for this machine."""
        plan = next(iter(self.plans.values()))
        return plan.on or plan.reach or ""


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


def check(plans: "dict[str, Plan]") -> None:
    """Refuse what cannot be started, before anything is."""
    for plan in plans.values():
        check_key(plan)
        check_command(plan)
        check_port(plan)


def compare(asked: benching.Asked, commands: "Alike", started: Started, out: Path | None, *, json: bool) -> None:
    """Compare, tell, and leave with 4 where an arm failed."""
    from vigil.bench.arms import Comparing
    from vigil.bench.folder import Results
    from vigil.cli.lifting import lifted
    from vigil.cli.telling import report_in, save

    for note in commands.notes:
        mention(note)
    folder = benching.folder_for(out, "compare")
    results = Results.begin(folder, _meta(asked, commands, started.host))
    if results.rows:
        mention(f"{len(results.rows)} rows of {folder} are kept")
    mention(f"results go to {folder}; after an interruption the same command with --out {folder} goes on")

    def lift(arm: "Arm", tell: "Callable[[str], None]") -> "AbstractAsyncContextManager[Lifted]":
        return lifted(started.plans[arm.name], tell, started.at)

    comparing = Comparing(results, lift, asked.prompts)
    try:
        benching.run(lambda: _run(comparing))
    except KeyboardInterrupt:
        progress.clear()
        save(results.path, report_in(results.path))
        mention(f"interrupted; to go on: the same command with --out {folder}   What there is: vigil report {folder}")
        raise typer.Exit(130) from None
    finally:
        progress.clear()
    _tell(results, json=json)
    raise typer.Exit(LOST if comparing.failed else 0)


def _meta(asked: benching.Asked, commands: "Alike", host: str) -> "Meta":
    from vigil.bench import provenance
    from vigil.bench.folder import Arm, Meta
    from vigil.bench.prompts import digest

    settings = asked.settings
    arms = tuple(Arm(name=name, command=hide_in_command(words)) for name, words in commands.commands.items())
    return Meta(
        title=" / ".join(commands.commands),
        arms=arms,
        points=asked.points,
        settings=settings,
        prompts=digest(asked.prompts, settings.seed, settings.input_tokens),
        notes=commands.notes,
        machine=provenance.here(),
        host=host,
    )


async def _run(comparing: "Comparing") -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.show, comparing.progress)
        await comparing.run()
        tasks.cancel_scope.cancel()


def _tell(results: "Results", *, json: bool) -> None:
    """Print table and answer, or the whole as JSON."""
    from vigil.cli.telling import tell

    tell([results.path], json=json, keep=True)
    mention(f"kept in {results.path}   Pictures: vigil report {results.path} --pictures FOLDER")
