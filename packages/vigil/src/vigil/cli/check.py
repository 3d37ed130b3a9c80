"""`vigil check`: what a command would die of, before it is started."""

from typing import TYPE_CHECKING, Annotated

import typer

from vigil.cli import options
from vigil.cli.checks import checked
from vigil.cli.options import environment

if TYPE_CHECKING:
    from vigil.plan import Plan
    from vigil.preflight.finding import Report

REFUSED = 3
CommandLine = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The server's command line.", show_default=False)
]
Explain = Annotated[str | None, typer.Option("--explain", metavar="CODE", help="Print what a code means, and stop.")]
Deep = Annotated[
    bool, typer.Option("--deep", help="Also what takes seconds: every tensor's header, hashes of the engine's files.")
]
EngineVersion = Annotated[
    str | None,
    typer.Option(
        "--engine-version", metavar="X", help="Hold flags against this release of the engine, whatever is installed."
    ),
]


def command(
    words: CommandLine = None,
    on: options.On = None,
    reach: options.ReachOption = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    cwd: options.Cwd = None,
    engine: options.Engine = None,
    engine_version: EngineVersion = None,
    deep: Deep = False,
    explain: Explain = None,
    json: options.Json = False,
) -> None:
    """Say what a command would die of on its host, and how it would be right; nothing is started."""
    from msgspec.structs import replace

    from vigil.cli.findings import explained, hidden, text_of
    from vigil.cli.flags import release_of
    from vigil.cli.saying import mention
    from vigil.cli.speculating import speculating
    from vigil.errors import UsageError
    from vigil.plan import Plan
    from vigil.screen import json_of
    from vigil.speculation.wish import FLAG
    from vigil.supervise.ahead import check_here

    if explain is not None:
        print(explained(explain))
        return
    if not words:
        raise UsageError("nothing to check: vigil check [OPTIONS] -- COMMAND...")
    asked = Plan(
        command=tuple(words),
        env=environment(env, env_file),
        cwd=cwd or options.here(on, reach),
        on=on,
        reach=reach,
        engine=options.engine_name(engine),
    )
    plan = speculating(asked, None)
    here = not (on or reach)
    report = (check_here if here else _check_there)(checked(plan), deep=deep, version=release_of(engine_version))
    if plan is not asked:  # what `vigil up` makes of it is nothing to copy: it runs under `vigil up` alone
        mention(
            f"{FLAG} is for `vigil up`, which switches speculation itself: the command is checked as it would start it"
        )
        report = replace(report, corrected=None)
    print(json_of(hidden(report)) if json else text_of(report))
    if report.fatal:
        raise typer.Exit(REFUSED)


def _check_there(plan: "Plan", *, deep: bool, version: str | None) -> "Report":
    """Check a command on another host, over a reach: what that takes is not loaded for this machine."""
    import anyio

    from vigil.supervise.looking import check

    return anyio.run(lambda: check(plan, deep=deep, version=version))
