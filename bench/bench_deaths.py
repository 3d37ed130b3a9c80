"""How long after a death its verdict is out: one exit, the exit of a server that was ready, and the one that completes a loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import vigil
from bench_figures import Figure, gathered
from bench_servers import Told, ask_command, ask_library, attempted, deaths, fake, looped, stop
from sshd import free_port

HERE_MS, SSH_MS, LOOP_MS = 50.0, 150.0, 100.0
DIES = ("--load", "300s", "--after", "600ms", "--die", "exit:1")
DIES_FAR = ("--load", "300s", "--after", "2s", "--die", "exit:1")  # not before the observer has come
DIES_READY = ("--load", "200ms", "--warmup", "0ms", "--at", "ready", "--after", "800ms", "--die", "exit:1")
DIES_AT_ONCE = ("--load", "300s", "--after", "100ms", "--die", "exit:1")
NO_SUCH_FLAG = ("--load", "300s", "--after", "50ms", "--die", "usage")
Ask = Callable[[str, tuple[str, ...]], Told]


def by_library(on: str | None = None, *, follow: bool = False) -> Ask:
    """Return a way to ask: the library, in this process."""
    return lambda name, command: ask_library(vigil.Plan(name=name, command=command, on=on), follow=follow)


def by_command(on: str | None = None) -> Ask:
    """Return a way to ask: the command line, whose start and end belong to it."""
    place = ["--on", on] if on else []
    return lambda name, command: ask_command(["up", "--no-check", "--json", "--name", name, *place, "--", *command])


class Deaths:
    """Plays deaths in a folder. Names are never used twice: a start that was made before would be remembered."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)

    def delays_ms(
        self, ask: Ask, flags: tuple[str, ...], wanted: str, times: int, *, loop: bool = False
    ) -> Iterator[float | None]:
        """Yield the time from the death that decides to its verdict, in milliseconds; None where that was another one."""
        for _ in range(times):
            number = next(self._numbers)
            mark = self._folder / f"mark-{number}"
            command = fake("vllm", free_port(), mark, *flags)
            told = attempted(lambda: ask(f"death-{number}", looped(command) if loop else command), wanted)  # noqa: B023
            if loop:  # it goes on: watching never kills
                stop(f"death-{number}")
            died = deaths(mark)
            yield None if told is None or told.dead not in died else (told.at_s - died[told.dead]) * 1000


def measure(folder: Path, ssh: str | None, times: int) -> Iterator[Figure]:
    """Yield the figures of deaths."""
    play = Deaths(folder).delays_ms

    def figure(what: str, values: Iterator[float | None], target: float) -> Figure:
        return gathered(what, "ms", values, target)

    yield figure("exit to verdict, library", play(by_library(), DIES, "crashed", times), HERE_MS)
    yield figure("exit to verdict, vigil up --json", play(by_command(), DIES, "crashed", times), HERE_MS)
    follow = by_library(follow=True)
    yield figure("exit of a ready server to verdict, library", play(follow, DIES_READY, "crashed", times), HERE_MS)
    loop = play(by_library(), DIES_AT_ONCE, "crash_looping", times, loop=True)
    yield figure("third death alike to crash_looping", loop, LOOP_MS)
    flag = play(by_library(), NO_SUCH_FLAG, "crash_looping", times, loop=True)
    yield figure("second death by a wrong flag to crash_looping", flag, LOOP_MS)
    if ssh is not None:
        yield figure("exit to verdict over ssh, library", play(by_library(ssh), DIES_FAR, "crashed", times), SSH_MS)
        yield figure(
            "exit to verdict over ssh, vigil up --json", play(by_command(ssh), DIES_FAR, "crashed", times), SSH_MS
        )
