"""What `vigil compare` and `vigil tune` share: arms are checked, started in turn, measured, and their rows kept."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import typer

from vigil.cli import benching, progress
from vigil.cli.checks import check_command, check_key, check_port
from vigil.cli.saying import mention
from vigil.screen import hide_in_command

if TYPE_CHECKING:
    from vigil.bench.alike import Alike
    from vigil.bench.arms import Comparing, Lifted
    from vigil.bench.folder import Arm, Meta, Results
    from vigil.plan import Plan


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """How the arms are started, by name, and where we reach them if not where they answer (`at`).

    `out`: what `--out` has to say to go on, where that is not the folder of the rows itself. `settles`: arms that are
    measured at a load only once they have come to it.
    """

    plans: dict[str, Any]
    at: str | None = None
    out: Path | None = None
    settles: dict[str, Any] = {}

    @property
    def host(self) -> str:
        """The host of all of them in words; empty for this machine."""
        plan = next(iter(self.plans.values()))
        return plan.on or plan.reach or ""


def check(plans: "dict[str, Plan]") -> None:
    """Refuse what cannot be started, before anything is."""
    for plan in plans.values():
        check_key(plan)
        check_command(plan)
        check_port(plan)


def compared(asked: benching.Asked, commands: "Alike", started: Started, folder: Path) -> "tuple[Results, set[str]]":
    """Measure what is missing in a folder; return its results, and the arms that failed. Leaves with 130 where interrupted."""
    from vigil.bench.arms import Comparing
    from vigil.bench.folder import Results
    from vigil.cli.lifting import lifted
    from vigil.cli.telling import report_in, save

    for note in commands.notes:
        mention(note)
    results = Results.begin(folder, _meta(asked, commands, started.host))
    if results.rows:
        mention(f"{len(results.rows)} rows of {folder} are kept")

    def lift(arm: "Arm", tell: Callable[[str], None]) -> "AbstractAsyncContextManager[Lifted]":
        return lifted(started.plans[arm.name], tell, started.at)

    comparing = Comparing(results, lift, asked.prompts, started.settles)
    try:
        benching.run(lambda: _run(comparing))
    except KeyboardInterrupt:
        progress.clear()
        save(results.path, report_in(results.path))
        out = started.out or folder
        mention(f"interrupted; to go on: the same command with --out {out}   What there is: vigil report {folder}")
        raise typer.Exit(130) from None
    finally:
        progress.clear()
    return results, comparing.failed


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
