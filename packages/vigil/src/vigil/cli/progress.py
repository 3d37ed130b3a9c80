"""Where a measurement is, while it goes on: two lines that are redrawn in a terminal, a line now and then elsewhere."""

import shutil
import sys
import time

import anyio

from vigil.bench.sweep import Progress
from vigil.cli.drawing import bar_of
from vigil.cli.saying import mention
from vigil.screen import duration, plain

FRAME_S = 0.5
QUIET_S = 30.0


async def show(progress: Progress) -> None:
    """Say where it is until cancelled: two lines that are redrawn in a terminal, a line now and then elsewhere."""
    live = sys.stderr.isatty()
    told, told_s = "", -QUIET_S
    while True:
        if live:
            _redraw(drawn_lines(progress, shutil.get_terminal_size().columns))
        elif (progress.doing != told or time.monotonic() - told_s >= QUIET_S) and progress.doing:
            mention(line_of(progress))
            told, told_s = progress.doing, time.monotonic()
        await anyio.sleep(FRAME_S)


def clear() -> None:
    """Take the redrawn lines away."""
    if sys.stderr.isatty():
        _redraw(("", ""))


def _redraw(lines: tuple[str, str]) -> None:
    """Write two lines over what stood there, and leave the cursor before them."""
    print(f"\r\x1b[2K{lines[0]}\n\r\x1b[2K{lines[1]}\x1b[A\r", end="", file=sys.stderr, flush=True)


def line_of(progress: Progress) -> str:
    """Return where it is, in one line."""
    if not progress.doing:
        return ""
    return "  ".join(
        filter(None, [f"[{progress.done}/{progress.total}]", progress.doing, _how(progress), _left(progress)])
    )


def drawn_lines(progress: Progress, width: int) -> tuple[str, str]:
    """Return the same in two lines, with a bar, each within a terminal's width."""
    if not progress.doing:
        return "", ""
    doing = "  ".join(filter(None, [progress.doing, _how(progress)]))
    far = "  ".join(filter(None, [bar_of(progress.done, progress.total), _left(progress)]))
    return plain(doing, max(1, width - 1)), plain(far, max(1, width - 1))


def _how(progress: Progress) -> str:
    drive = progress.drive
    if drive is None:
        return progress.detail
    tokens = sum(drive.bins[-20:]) / 2 if drive.bins else 0
    state = "steady" if drive.steady else "warming up"
    return f"{state}, {len(drive.replies)} answers, {tokens:,.0f} events/s"


def _left(progress: Progress) -> str:
    left_s, starts = progress.left_s, progress.unknown_starts
    if not left_s:
        return ""
    more = f" and {starts} start{'s' if starts > 1 else ''}" if starts else ""
    return f"about {duration(left_s) if left_s >= 100 else f'{left_s:.0f} s'}{more} left"  # noqa: PLR2004
