"""The loop with effects: start what the plan says, listen to the observer, carry out what `step` asks for, tell the verdicts."""

import getpass
import math
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.abc
import msgspec

from vigil import __version__
from vigil.errors import VigilError
from vigil.facts import AnyFact, Lost, Refused, Ticked, Troubled
from vigil.hosts import Reach, reach_of
from vigil.plan import Plan
from vigil.preflight.finding import Report, kinds
from vigil.store import History
from vigil.supervise import start
from vigil.supervise.changed import FAILED, Found, look_back, with_changes
from vigil.supervise.line import RECONNECT_MOST_S, Line
from vigil.supervise.looking import check
from vigil.supervise.session import Session, settled
from vigil.trace import Header, Writer
from vigil.verdict import SERVING, Effect, Verdict, Word

TICK_S = 1.0
STOP_GRACE_S = 30.0
LOOK_BACK_S = 2.0  # a start that just began is left alone
LOOK_BACK_PATIENCE_S = 30.0


class Watch:
    """Watch a server or job until a verdict: `async with Watch(plan) as w: async for verdict in w: ...`.

    With a command in the plan it is started first. Yields a verdict whenever its word or the phase changes; the last one is
    the verdict that ended the watching. `follow`: go on while it serves. `for_s`: give up watching (not waiting) after so long.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        follow: bool = False,
        for_s: float | None = None,
        trace: Path | None = None,
        history: History | None = None,
    ) -> None:
        self.plan = plan
        self.follow = follow
        self.for_s = for_s
        self.reach: Reach = reach_of(plan.on, plan.reach)
        self.launched: start.Started | None = None
        self.report: Report | None = None  # of the check before the start
        self.over = False
        self.stopped = False  # by us, since the user asked for that (`on_timeout`)
        self._warnings: list[str] = []
        self._remembered = False
        self._found: Found | None = None  # by this start and the last good one before it
        self.final: Verdict | None = None  # the verdict that ended the watching, once it is out
        self._trace_path = trace
        self._trace: Writer | None = None
        self._history = history or History()
        self._expected = self._history.expected(plan)
        self.session = Session(plan, self._expected.slowest_quiet_s, self._expected.ready_after_s)
        self._refused: Refused | None = None
        self._began_s = time.monotonic()
        self._line: Line | None = None
        self._told: tuple[object, ...] = ()
        self._finished = anyio.Event()
        self._turned = anyio.Event()  # the word is another than before
        self._send, self._verdicts = anyio.create_memory_object_stream[Verdict](math.inf)
        self._tasks: anyio.abc.TaskGroup | None = None

    async def __aenter__(self) -> Self:
        try:
            await self._begin()
        except BaseException:
            self._send.close()
            self._verdicts.close()
            raise
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._run)
        return self

    async def _begin(self) -> None:
        """Start the command, or take up what was started under the plan's name."""
        if self.plan.command and self.plan.check and (ahead := await self._look_ahead()) is not None:
            self._refused = ahead
        elif self.plan.command:
            begun = await start.begin(self.plan, self.session, self.reach)
            self.launched = begun if isinstance(begun, start.Started) else None
            self._refused = begun if isinstance(begun, Refused) else None
        elif self.plan.name and not self.plan.url:
            self.plan, self.launched = await start.adopt(self.plan, self.reach)
            self._expected = self._history.expected(self.plan, self.launched.plan_id)
            left_s = self._expected.left_s(self.launched.up_s)
            self.session = Session(self.plan, self._expected.slowest_quiet_s, left_s)
        if self.launched is not None:
            self.plan = msgspec.structs.replace(self.plan, name=self.launched.name)
            self._began_s = self.launched.began_s
        self._open_trace()

    async def _look_ahead(self) -> Refused | None:
        """Check the command before the start; return its refusal, or None where nothing fatal was found."""
        self.report = await check(self.plan, reached=True)
        fatal = self.report.fatal
        if not fatal:
            return None
        first, kind = fatal[0], kinds()[fatal[0].code]
        return Refused(
            at_s=0.0,
            what="check",
            text=first.text,
            code=first.code,
            cause_kind=kind.kind,
            title=kind.title,
            advice=first.advice,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None  # noqa: S101 - entered before
        self._tasks.cancel_scope.cancel()
        try:
            return await self._tasks.__aexit__(kind, error, traceback)
        finally:
            if self._trace is not None:
                self._trace.close()
            self._send.close()
            self._verdicts.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Verdict:
        try:
            return await self._verdicts.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    @property
    def now(self) -> Verdict:
        """The verdict at this moment, for whoever draws it."""
        verdict = self.session.verdict
        if self._found is not None:
            verdict = with_changes(verdict, self._found)
        return (
            msgspec.structs.replace(verdict, warnings=(*verdict.warnings, *self._warnings))
            if self._warnings
            else verdict
        )

    @property
    def elapsed_s(self) -> float:
        """Seconds since the watching began."""
        return time.monotonic() - self._began_s

    def _open_trace(self) -> None:
        if self._trace_path is None:
            return
        shown = settled(self.plan, self.session.table, self.session.state.asked)
        slowest_s = self._expected.slowest_quiet_s
        header = Header(vigil=__version__, began=time.time(), plan=shown, slowest_quiet_s=slowest_s)
        try:
            self._trace = Writer(self._trace_path, header)
        except OSError as error:
            self._take(Troubled(at_s=0.0, what=f"no trace: {self._trace_path}: {error.strerror}"))

    async def _run(self) -> None:
        with self._send:
            if self._refused is not None:
                self._take(self._refused)
                self._say_last()
                return
            try:
                await self._look()
                self._take(Ticked(at_s=self.elapsed_s))  # `--for` ended it: say how long it really was
                self._end()
            finally:
                if self.over:  # whoever had the last verdict may have left: it is kept all the same
                    with anyio.CancelScope(shield=True):
                        await self._conclude()
            self._say_last()

    async def _look(self) -> None:
        """Look until a verdict ends the watching, or its time is over."""
        async with anyio.create_task_group() as tasks:
            self._line = self._new_line()
            tasks.start_soon(self._tick, self._line)
            tasks.start_soon(self._line.keep)
            tasks.start_soon(self._look_back)
            if self.follow:
                tasks.start_soon(self._keep_noted)
            with anyio.move_on_after(self.for_s):
                await self._finished.wait()
            tasks.cancel_scope.cancel()

    def _new_line(self) -> Line:
        folder = self.launched.folder if self.launched is not None else None
        return Line(self.plan, self.session, self.reach, folder, self._began_s, self._take)

    async def _tick(self, line: Line) -> None:
        """Let time pass where the observer is silent, and call a silent line lost."""
        tick_s = TICK_S * min(1.0, self.plan.time_scale)
        while True:
            # The observer's own ticks are what time passes by: while a server serves, only their absence is worth a wake-up.
            served = line.stands and self.session.state.judged.word in SERVING
            patience_s = max(tick_s, self.plan.policy.lost_after_s) if served else tick_s
            await anyio.sleep(max(tick_s, line.heard_s + patience_s - self.elapsed_s))
            silent_s = self.elapsed_s - line.heard_s
            if silent_s < tick_s:
                continue
            patience_s = self.plan.policy.lost_after_s if line.reached else self.plan.policy.connect_s
            if line.stands and silent_s > patience_s:
                line.cut()
                self._take(Lost(at_s=self.elapsed_s, why=f"nothing heard for {silent_s:.0f} s"))
            else:
                with suppress(VigilError):  # a line that broke is told by whoever listens at it
                    await line.order(self._take(Ticked(at_s=self.elapsed_s)))

    def _take(self, fact: AnyFact) -> tuple[Effect, ...]:
        """Put a fact into the trace and the session, and tell what follows from it."""
        if self.over:
            return ()
        if self._trace is not None:
            trouble = self._trace.add(fact)
            if trouble is not None:
                self.session.take(Troubled(at_s=fact.at_s, what=trouble))
        effects = self.session.take(fact)
        self._tell()
        return effects

    def _tell(self) -> None:
        state = self.session.state
        word = state.judged.word
        told = (word, state.startup.phase, len(state.process.ended), state.link.lost_s is not None)
        if word is not Word.STARTING and not (self.follow and word in SERVING):
            self._end()
            if not self._stops(word) and not self._looks_back(word):
                self._say_last()  # at once: taking leave of the observer and writing things down takes its time
            self._finished.set()
            return
        if told != self._told:
            self._told = told
            self._turned.set()
            self._send.send_nowait(self.session.verdict)
            if word in SERVING:
                self._remember()

    def _end(self) -> None:
        self.over = True
        if self._line is not None:
            self._line.over = True

    def _say_last(self) -> None:
        """Tell the verdict that ends the watching, once."""
        if self.final is None:
            self.final = self.now
            self._send.send_nowait(self.final)

    def _stops(self, word: Word) -> bool:
        """Say whether the server is stopped before this verdict is told: the user asked for that."""
        return self.plan.on_timeout == "stop" and word in {Word.STALLED, Word.TIMED_OUT} and self.launched is not None

    async def _look_back(self) -> None:
        """Have at hand what changed since the last good start, so that a failure need not wait for it."""
        await anyio.sleep(LOOK_BACK_S)
        if self.launched is not None and self.launched.good:
            found = await look_back(self.launched, self.reach, LOOK_BACK_PATIENCE_S)
            self._found = found if isinstance(found, dict) else None  # else it is asked again when it is needed

    def _looks_back(self, word: Word) -> bool:
        """Say whether this verdict is to be told with what changed since the last good start, and that is not at hand yet."""
        return word in FAILED and self.launched is not None and self.launched.good and self._found is None

    async def _conclude(self) -> None:
        """Keep how it went, beside the server and in the history; stop it where the user asked for that."""
        verdict = self.now
        if self._stops(verdict.word):
            try:
                await start.stop(self.reach, self.plan.name or "", STOP_GRACE_S, whoami())
                self.stopped = True
            except VigilError as error:
                self._warnings.append(f"it could not be stopped: {error}")
        if self.launched is not None and self._looks_back(verdict.word):
            self._found = await look_back(self.launched, self.reach)
        self._remember()
        self._say_last()
        if self.launched is not None and (self.plan.command or self.now.word is not Word.STARTING):
            await start.note(self.reach, self.launched, self.now, self.session.seen)

    def _remember(self) -> None:
        """Keep in the history how the start went, once it is known: what became of the server later is another matter."""
        verdict = self.session.verdict
        if self.launched is None or not self.plan.command or self._remembered or verdict.word is Word.STARTING:
            return
        self._remembered = True
        trouble = self._history.add(self.plan, verdict, self.session.state.startup.quiet_s)
        if trouble is not None:
            self._warnings.append(trouble)

    async def _keep_noted(self) -> None:
        """Keep the present word beside the server, for whoever asks `vigil ps` there; one trip at a time."""
        noted: Word | None = None
        while self.launched is not None:
            word, self._turned = self.session.state.judged.word, anyio.Event()
            if word is noted or word is Word.STARTING:
                await self._turned.wait()
            elif await start.note(self.reach, self.launched, self.now, self.session.seen):
                noted = word
            else:
                await anyio.sleep(RECONNECT_MOST_S)


def whoami() -> str:
    """Return user@host, for the record of who asked for something."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
