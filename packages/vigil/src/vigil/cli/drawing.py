"""What is seen while a start-up is awaited: a small live picture in a terminal, a line now and then elsewhere."""

import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import anyio

from vigil.cli.missing import missing
from vigil.cli.saying import mention
from vigil.screen import duration, plain
from vigil.verdict import Verdict, Word

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vigil.supervise.watch import Watch

FRAME_S = 0.15
STILL_S = 2.0  # a server that serves changes little, and looking costs
BAR_CELLS = 24
FEWEST_CELLS = 8
NARROWEST = 20
MOST_PHASES = 8


class Drawing(Protocol):
    """Something that shows a watch while it goes on."""

    async def keep(self, watch: "Watch") -> None:
        """Draw until cancelled."""

    def clear(self) -> None:
        """Take the picture away, before a verdict is printed."""


def drawing_for(stream: TextIO, progress_s: float) -> Drawing:
    """Return the drawing that fits where our words go."""
    return Live() if stream.isatty() else Lines(progress_s)


def pause_s(watch: "Watch") -> float:
    """Return how long the picture may stay as it is."""
    return FRAME_S if watch.session.state.judged.word is Word.STARTING else STILL_S


class Lines:
    """A line at each phase, and at least one each `progress_s`."""

    def __init__(self, progress_s: float) -> None:
        self._progress_s = progress_s

    async def keep(self, watch: "Watch") -> None:
        """Write lines until cancelled."""
        told: tuple[object, ...] = ()
        told_s = -self._progress_s
        while True:
            state = watch.session.state
            unseen = missing(watch.plan, state, watch.elapsed_s)
            now = (
                state.startup.phase,
                state.judged.word,
                len(state.process.ended),
                state.link.lost_s is not None,
                unseen,
            )
            if now != told or time.monotonic() - told_s >= self._progress_s:
                verdict = watch.now
                mention(line_of(verdict, watch.elapsed_s, unseen))
                told, told_s = now, time.monotonic()
            await anyio.sleep(pause_s(watch))

    def clear(self) -> None:
        """Nothing to take away."""


def line_of(verdict: Verdict, elapsed_s: float, unseen: tuple[str, ...] = ()) -> str:
    """Return a progress line: where it is, since when, how far, and the last log line."""
    parts = [f"[{duration(elapsed_s)}]", verdict.name or verdict.url or "", verdict.word.value]
    if verdict.word is Word.STARTING and verdict.phase is not None:
        parts.append(
            verdict.phase.value + (f" {verdict.progress[0]}/{verdict.progress[1]}" if verdict.progress else "")
        )
    if len(verdict.attempts) > 1:
        parts.append(f"attempt {verdict.attempts[-1].n}")
    left = left_s(verdict, elapsed_s)
    if left is not None:
        parts.append(f"about {duration(left)} left")
    text = verdict.reason or "; ".join(unseen) or verdict.last_line
    return "  ".join(part for part in parts if part) + (f"  | {plain(text, 160)}" if text else "")


def left_s(verdict: Verdict, elapsed_s: float) -> float | None:
    """Return the expected time left in seconds, from earlier starts of the same plan; None where nothing is known."""
    if verdict.expected_s is None or verdict.word is not Word.STARTING:
        return None
    return max(0.0, verdict.expected_s - elapsed_s)


class Live:
    """A picture of a few lines, redrawn in place."""

    def __init__(self) -> None:
        self._live: Any = None

    async def keep(self, watch: "Watch") -> None:
        """Redraw until cancelled."""
        from rich.console import Console
        from rich.live import Live as RichLive

        console = Console(file=sys.stderr)
        # Not redirected: rich would break the paths of a verdict into lines.
        picture_of = RichLive(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        with suppress(OSError), picture_of as self._live:  # a terminal that went away: there is nobody to draw for
            while True:
                unseen = missing(watch.plan, watch.session.state, watch.elapsed_s)
                self._live.update(picture(watch.now, watch.elapsed_s, unseen), refresh=True)
                await anyio.sleep(pause_s(watch))

    def clear(self) -> None:
        """Take the picture away."""
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(""), refresh=True)


def picture(verdict: Verdict, elapsed_s: float, unseen: tuple[str, ...] = ()) -> "RenderableType":
    """Return the live picture of a verdict; it fits the terminal, with the latest phases where not all do."""
    from rich.text import Text

    columns, rows = shutil.get_terminal_size()
    width = max(NARROWEST, columns) - 1
    text = Text(plain(_headline(verdict, elapsed_s), width) + "\n", style="bold", no_wrap=True, overflow="ellipsis")
    for span in verdict.phases[-max(1, min(MOST_PHASES, rows - 5)) :]:
        done = span.to_s is not None
        took_s = (span.to_s if span.to_s is not None else elapsed_s) - span.from_s
        line = f"  {'✓' if done else '▸'} {span.name:<17}{duration(max(0.0, took_s)):>10}"
        if not done and verdict.progress:
            line += "  " + bar_of(*verdict.progress, room=width - len(line) - 2)
        text.append(plain(line, width) + "\n", style="green" if done else "cyan")
    for note in (verdict.reason, *unseen):
        if note:
            text.append(plain(f"  {note}", width) + "\n", style="yellow")
    if verdict.last_line:
        text.append(plain(f"  {verdict.last_line}", width), style="dim")
    return text


def _headline(verdict: Verdict, elapsed_s: float) -> str:
    head = f"{verdict.name or verdict.url}  {verdict.word}  {duration(elapsed_s)}"
    left = left_s(verdict, elapsed_s)
    if left is not None:
        head += f"  (about {duration(left)} left)"
    if len(verdict.attempts) > 1:
        head += f"  attempt {verdict.attempts[-1].n}"
    return head


def bar_of(done: int, total: int, room: int = 80) -> str:
    """Return a progress bar with its numbers in at most `room` characters; the numbers alone where it is narrow."""
    numbers = f"{done}/{total}"
    cells = min(BAR_CELLS, room - len(numbers) - 1)
    if cells < FEWEST_CELLS:
        return numbers
    filled = round(cells * min(done, total) / max(total, 1))
    return f"{'█' * filled}{'░' * (cells - filled)} {numbers}"
