"""The library: a watch over a real process, local and through a reach, cut and taken up again."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import vigil
from vigil.hosts import reach_of
from vigil.supervise import start
from vigil.supervise.session import Session, url_of

FAKE = Path(__file__).parents[1] / "fakes" / "server.py"
# A host of its own as far as a reach can tell: another process tree, another environment, the same machine.
REACH = "env VIGIL_TEST_REACH=1"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give every test a state folder of its own, and stop what it left running."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    for folder in (tmp_path / "vigil" / "servers").glob("[!.]*"):
        anyio.run(start.stop, reach_of(None, None), folder.name, 1.0, "the test")


def plan(port: int, *words: str, **more: object) -> vigil.Plan:
    command = (sys.executable, str(FAKE), "--port", str(port), *words)
    return vigil.Plan(name="s", command=command, **more)  # type: ignore[arg-type]


def test_up_blocks_until_the_verdict_and_leaves_the_server_running(port: int) -> None:
    verdict = vigil.up(plan(port, "--load", "0.2s"))
    assert (verdict.word, verdict.ready_level, verdict.owner, verdict.exit_code) == ("ready", "token", "verified", 0)
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


def test_watch_yields_words_as_they_change_and_ends_with_the_last(port: int) -> None:
    async def words() -> list[str]:
        async with vigil.watch(
            plan(port, "--load", "0.2s", "--die", "exit:3", "--after", "0.5s"), follow=True
        ) as watching:
            return [verdict.word.value async for verdict in watching]

    seen = anyio.run(words)
    assert (seen[0], seen[-1]) == ("starting", "crashed")
    assert "ready" in seen


def test_watch_for_a_while_gives_up_watching_and_not_the_server(port: int) -> None:
    verdict = vigil.up(plan(port, "--load", "60s"), for_s=0.3)
    assert (verdict.word, verdict.exit_code) == ("starting", 12)
    assert vigil.up(vigil.Plan(name="s"), for_s=0.3).attempts[-1].pid == verdict.attempts[-1].pid


def test_watch_takes_a_server_up_by_name_and_tells_its_death(port: int) -> None:
    pid = vigil.up(plan(port, "--load", "0.1s")).attempts[-1].pid
    assert pid is not None

    async def after_the_kill() -> str:
        async with vigil.watch(vigil.Plan(name="s"), follow=True) as watching:
            async for verdict in watching:
                if verdict.word == "ready":
                    os.kill(pid, signal.SIGKILL)
            return f"{watching.now.word} {watching.now.attempts[-1].signal}"

    assert anyio.run(after_the_kill) == "crashed 9"


def test_watch_through_a_reach_that_is_killed_goes_on_where_it_was(port: int) -> None:
    async def run() -> tuple[list[str], int]:
        words = []
        async with vigil.watch(plan(port, "--load", "3s", reach=REACH, time_scale=0.2)) as watching:
            async for verdict in watching:
                words.append(verdict.word.value)
                if len(words) == 1:
                    _kill_the_observer()
            return words, watching.session.state.link.times_lost

    words, times_lost = anyio.run(run)
    assert (words[-1], times_lost) == ("ready", 1)


def _kill_the_observer() -> None:
    """Kill the child of ours that is the reach's observer."""
    children = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False).stdout
    for pid in children.split():
        with contextlib.suppress(OSError):  # `pgrep` itself, and others that have ended since
            if b"VIGIL_TEST_REACH=1" in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(int(pid), signal.SIGKILL)
                return
    raise AssertionError("no observer to kill")


def test_refused_start_is_a_verdict_and_starts_nothing(state: Path) -> None:
    verdict = vigil.up(vigil.Plan(name="s", command=("/no/such/program", "--port", "1")))
    assert (verdict.word, verdict.exit_code, verdict.cause and verdict.cause.code) == ("refused", 3, "CMD001")
    assert not list((state / "vigil" / "servers").glob("s/starts/*"))


def test_name_in_use_is_an_error_of_ours(port: int) -> None:
    vigil.up(plan(port, "--load", "60s"), for_s=0.1)
    with pytest.raises(vigil.VigilError, match="in use"):
        vigil.up(plan(port, "--load", "60s"), for_s=0.1)


def test_address_comes_from_the_command_line_unless_the_user_gives_one() -> None:
    served = vigil.Plan(command=("vllm", "serve", "m", "--port", "8123"))
    assert url_of(served, Session(served).table) == "http://127.0.0.1:8123"
    given = vigil.Plan(command=("vllm", "serve", "m"), url="http://10.0.0.1:1")
    assert url_of(given, Session(given).table) == "http://10.0.0.1:1"
