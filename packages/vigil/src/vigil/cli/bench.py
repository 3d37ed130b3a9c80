"""`vigil bench NAME|URL`: measure a server that runs, at one load after another."""

from typing import TYPE_CHECKING, Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import benching, options, progress
from vigil.cli.checks import check_key
from vigil.cli.saying import mention
from vigil.errors import UnreachableError, UsageError
from vigil.screen import hide_in_command

if TYPE_CHECKING:
    from vigil.bench.folder import Results
    from vigil.bench.row import Cause
    from vigil.bench.sweep import Bench, Progress
    from vigil.bench.target import Wanted

FAILED = 8


def command(
    target: Annotated[str, typer.Argument(metavar="NAME|URL")],
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
    seed: benching.AnySeed = None,
    temperature: benching.Temperature = 0.0,
    chat: benching.Chat = False,
    patience: benching.Patience = "2m",
    processes: benching.Processes = 1,
    model: options.Model = None,
    api_key_env: options.KeyEnv = None,
    out: benching.Out = None,
    json: options.Json = False,
) -> None:
    """Measure a server that runs: tokens a second, speed for one user and latencies at one load after another."""
    from vigil.bench.target import Wanted
    from vigil.plan import Plan

    check_key(Plan(api_key_env=api_key_env))
    points = benching.points_of(concurrency, rate)
    settings = benching.settings_of(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        range_ratio=range_ratio,
        seconds=seconds,
        most=most,
        requests=requests,
        repeats=repeats,
        seed=benching.seed_of(seed, out),
        natural_ends=natural_ends,
        temperature=temperature,
        chat=chat,
        patience=patience,
        processes=processes,
    )
    wanted = Wanted(settings=settings, model=model, prompts=benching.prompts_of(prompts))
    run = Run(target, wanted, points, api_key_env, out)
    try:
        cause = benching.run(run.go)
    except KeyboardInterrupt:
        where = f"; finished rows are kept: vigil report {run.results.path}" if run.results else ""
        mention(f"interrupted{where}")
        raise typer.Exit(130) from None
    assert run.results is not None  # noqa: S101 - it went well
    _tell(run.results, cause, json=json)
    raise typer.Exit(FAILED if cause is not None else 0)


class Run:
    """One `vigil bench`. `results`: there from when they can be kept."""

    def __init__(self, target: str, wanted: "Wanted", points: Any, key_env: str | None, out: Any) -> None:
        self.target, self.wanted, self.points, self.key_env, self.out = target, wanted, points, key_env, out
        self.results: Results | None = None

    async def go(self) -> "Cause | None":
        """Look at the server, measure it, and return why it ended early where the server failed."""
        import os

        from vigil.bench import provenance
        from vigil.bench.client import client_of, place_of
        from vigil.bench.sweep import Bench
        from vigil.bench.target import look

        known = await known_server(self.target)
        place = place_of(known.url, os.environ.get(self.key_env) if self.key_env else None)
        wanted = msgspec.structs.replace(self.wanted, engine=known.engine, model=self.wanted.model or known.model)
        async with client_of(place, wanted.settings.limits) as client:
            found = await look(client, known.url, wanted)
            facts = await provenance.server_facts(client, found)
        for note in found.notes:
            mention(note)
        self.results = results = self._results(known)
        results.note_server(
            known.name, {"target": msgspec.to_builtins(found), "settings": facts, "command": known.command}
        )
        return await self._measured(known.name, Bench(place, found, results, self._progress(results), wanted.prompts))

    def _progress(self, results: "Results") -> "Progress":
        from vigil.bench.sweep import Progress

        settings = results.meta.settings
        found = Progress(list(self.points) * settings.repeats, settings)
        for row in results.rows:
            found.finish(row)
        return found

    async def _measured(self, arm: str, bench: "Bench") -> "Cause | None":
        cause = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(progress.show, bench.progress)
            for number in range(bench.settings.repeats):
                cause = await bench.round(arm, number)
                if cause is not None:
                    break
            tasks.cancel_scope.cancel()
        progress.clear()
        return cause

    def _results(self, known: "Known") -> "Results":
        from vigil.bench import provenance
        from vigil.bench.folder import Arm, Meta, Results
        from vigil.bench.prompts import digest

        settings = self.wanted.settings
        meta = Meta(
            title=known.name,
            arms=(Arm(name=known.name, command=tuple(known.command)),),
            points=self.points,
            settings=settings,
            prompts=digest(self.wanted.prompts, settings.seed, settings.input_tokens),
            machine=provenance.here(),
        )
        return Results.begin(benching.folder_for(self.out, known.name), meta)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a server before it is asked: where it answers, and what it was started with."""

    name: str
    url: str
    engine: str | None = None
    model: str | None = None
    command: tuple[str, ...] = ()


async def known_server(target: str) -> Known:
    """Return the server that the user means; raise `UsageError` where that is none."""
    from vigil.cli.watching import parsed_target
    from vigil.hosts import reach_of
    from vigil.supervise import start
    from vigil.supervise.spec import parse_url

    name, url = parsed_target(target)
    if url is not None:
        _, host, port = parse_url(url)
        return Known(name=f"{host}-{port}".replace(":", "-"), url=url)
    assert name is not None  # noqa: S101 - one of the two
    known = await start.show(name, reach_of(None, None))
    plan = known.get("plan") or {}
    if not plan.get("url"):
        raise UsageError(f"it is not known where {name} answers: give its address, http://HOST:PORT")
    if not known.get("alive"):
        raise UnreachableError(f"{name} does not run (see: vigil show {name})")
    words = tuple(str(word) for word in plan.get("command") or ())
    engine = plan.get("engine")
    return Known(
        name=name,
        url=plan["url"],
        engine=engine if engine != "generic" else None,
        model=plan.get("model"),
        command=hide_in_command(words),
    )


def _tell(results: "Results", cause: "Cause | None", *, json: bool) -> None:
    """Print the table, or the whole as JSON."""
    from vigil.cli.telling import tell

    tell([results.path], json=json, keep=True)
    if cause is not None:
        mention(f"it ended early: {cause.text}")
    mention(f"kept in {results.path}   To see it again: vigil report {results.path}")
