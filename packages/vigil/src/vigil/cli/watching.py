"""Run a watch from the command line: draw it, print its verdicts, leave with the right exit code."""

import subprocess
import sys
import time
from pathlib import Path

import anyio
import msgspec
import typer

from vigil.cli.drawing import Drawing, drawing_for
from vigil.cli.findings import text_of as text_of_report
from vigil.cli.missing import told, unknown_address
from vigil.cli.options import leading_to
from vigil.cli.render import text_of
from vigil.cli.saying import mention, say
from vigil.errors import UsageError
from vigil.plan import Plan
from vigil.screen import plain_json
from vigil.store import private_folder, state_folder
from vigil.supervise.hold import hold
from vigil.supervise.watch import Watch
from vigil.verdict import SERVING, Verdict, Word

KEPT_TRACES = 50
ON_VERDICT_S = 60.0


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a watch is shown and told. `for_s`: give up watching after so long; `progress_s`: a line at least so often."""

    json: bool = False
    follow: bool = False
    for_s: float | None = None
    trace: Path | None = None
    progress_s: float = 60.0
    on_verdict: str | None = None
    strict: bool = False
    attached: bool = False


def watch_and_exit(plan: Plan, manner: Manner) -> None:
    """Watch until the verdict and raise `typer.Exit` with its code; Ctrl-C leaves the server running and says how to go on."""
    shown: list[str] = []
    try:
        verdict = anyio.run(_watch, plan, manner, shown)
    except KeyboardInterrupt:
        name = shown[-1] if shown else plan.name
        there = leading_to(plan.host, by_ssh=plan.on is not None)
        if plan.attached:
            mention(f"interrupted; {name or 'the server'} was stopped with us")
        elif plan.url is not None and name is None:
            mention(f"interrupted; what runs at {plan.url} goes on. To watch it again: vigil wait {plan.url}{there}")
        elif name:
            at = f"{name}{there}"
            mention(f"interrupted; {name} goes on. To watch it: vigil wait {at}   To end it: vigil stop {at}")
        raise typer.Exit(130) from None
    raise typer.Exit(with_exit_code(verdict, manner, plan).exit_code)


def with_exit_code(verdict: Verdict, manner: Manner, plan: Plan) -> Verdict:
    """Return the verdict with the exit code that we leave with: degraded counts where an expectation failed, or by `--strict`."""
    failed = any(not one.met for one in verdict.expectations)
    expected = manner.strict or failed or plan.model is not None or verdict.ready_level != "token"
    if verdict.word is Word.DEGRADED and not expected:
        return msgspec.structs.replace(verdict, exit_code=0)
    return verdict


async def _watch(plan: Plan, manner: Manner, shown: list[str]) -> Verdict:
    trace = manner.trace or _trace_path(plan)
    drawing = drawing_for(sys.stderr, manner.progress_s)
    watch = Watch(plan, follow=manner.follow, for_s=manner.for_s, trace=trace)
    async with watch, hold(watch.reach, watch.launched if plan.attached else None), anyio.create_task_group() as tasks:
        if watch.launched is not None:
            shown.append(watch.launched.name)
        note = unknown_address(plan, watch.session.state)
        if note is not None:
            mention(note)
        if watch.report is not None and watch.report.findings:
            mention(text_of_report(watch.report))
        tasks.start_soon(drawing.keep, watch)
        last: Word | None = None
        async for verdict in watch:
            if verdict is watch.final:
                break  # said before what is left to write down, which may take a trip over the network
            if manner.follow and verdict.word in SERVING and verdict.word is not last:
                await tell(with_exit_code(verdict, manner, plan), manner, drawing, trace)
            last = verdict.word
        final = watch.now  # told once, however many verdicts came while it ended
        unseen = told(final, plan, watch.session.state, watch.elapsed_s)
        stopped = ("it was stopped, since --on-timeout stop was given",) if watch.stopped else ()
        elsewhere: tuple[str, ...] = ()
        if final.word in SERVING and plan.schedule is not None:
            from vigil.speculation.elsewhere import measured_elsewhere

            elsewhere = await measured_elsewhere(plan.schedule, final.engine, watch.reach, watch.launched)
        final = msgspec.structs.replace(final, warnings=(*final.warnings, *unseen, *stopped, *elsewhere))
        manner = msgspec.structs.replace(manner, attached=manner.attached or watch.stopped)
        await tell(with_exit_code(final, manner, plan), manner, drawing, trace)
        tasks.cancel_scope.cancel()
    return watch.now


async def tell(verdict: Verdict, manner: Manner, drawing: Drawing, trace: Path | None) -> None:
    """Print a verdict on stdout and hand it to `--on-verdict`."""
    drawing.clear()
    data = msgspec.json.encode(verdict).decode()
    say(plain_json(data) if manner.json else text_of(verdict, trace, hints=not manner.attached))
    if manner.on_verdict:
        trouble = await anyio.to_thread.run_sync(_hand_over, manner.on_verdict, data.encode())
        if trouble:
            mention(f"--on-verdict {trouble}")


def _hand_over(command: str, data: bytes) -> str:
    """Run the user's command with the object on its input, its words beside ours; return what went wrong."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command], input=data, stdout=sys.stderr, check=False, timeout=ON_VERDICT_S
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {ON_VERDICT_S:.0f} s and was ended"
    return f"ended with {done.returncode}" if done.returncode else ""


def _trace_path(plan: Plan) -> Path | None:
    folder = state_folder() / "traces"
    try:
        private_folder("traces")
        for old in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)[: -KEPT_TRACES + 1]:
            old.unlink(missing_ok=True)
    except OSError as error:
        mention(f"no trace is kept: {folder}: {error.strerror}")
        return None
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    return folder / f"{stamp}-{plan.name or 'server'}-{time.time_ns() % 10**6:06d}.jsonl"


def parsed_target(target: str) -> tuple[str | None, str | None]:
    """Return (name, url) of what `vigil wait` was given."""
    if "://" in target:
        return None, target.rstrip("/")
    if ":" in target or "/" in target:
        raise UsageError(f"{target!r} is neither a name nor an address: give NAME or http://HOST:PORT")
    return target, None
