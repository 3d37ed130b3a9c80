"""Four starts that look alike to whoever greps a log's tail, told apart by a log file and an address alone."""

import subprocess
import sys
from pathlib import Path

from vigil_cli import FAKES, Vigil, until

SGLANG = (sys.executable, str(FAKES / "bin" / "sglang"), "serve", "--model-path", "m")
LOOP = str(FAKES / "loop.sh")


def begin(vigil: Vigil, *flags: str, wrap: tuple[str, ...] = ()) -> tuple[Path, subprocess.Popen[str]]:
    """Start a server as somebody else would, and wait for the first byte of its log."""
    log = vigil.folder / "server.log"
    process = vigil.begin_logged(log, *wrap, *SGLANG, "--port", str(vigil.port), *flags)
    until(lambda: log.stat().st_size, "the first line")
    return log, process


def test_up_with_a_quiet_log_is_ready(vigil: Vigil) -> None:
    log, process = begin(vigil, "--load", "0.2s", "--quiet")
    vigil("wait", vigil.url)
    size = log.stat().st_size
    done = vigil("wait", vigil.url, "--log", str(log), "--json")

    assert (done.rc, done.word) == (0, "ready")
    assert done.verdict["ready_level"] == "token"
    assert done.verdict["attempts"][-1]["pid"] == process.pid
    assert log.stat().st_size == size


def test_stuck_with_a_quiet_log_is_stalled(vigil: Vigil) -> None:
    log, process = begin(vigil, "--load", "4s", "--stick", "sleep", "--after", "1s")
    done = vigil("wait", vigil.url, "--log", str(log), "--json", "--time-scale", "0.01")

    assert (done.rc, done.word) == (6, "stalled")
    assert len(done.verdict["attempts"]) == 1
    assert process.poll() is None


def test_looping_with_new_bytes_is_a_loop(vigil: Vigil) -> None:
    """Each life has another parent: a supervisor that forks, here a shell loop in the background of nobody."""
    log, _ = begin(vigil, "--load", "1s", "--die", "import", "--after", "0.1s", wrap=(LOOP, "--pause", "0.1", "--"))
    done = vigil("wait", vigil.url, "--log", str(log), "--json")

    assert (done.rc, done.word) == (5, "crash_looping")
    assert done.verdict["cause"]["code"] == "IMP001"
    lines = log.read_text().splitlines()
    assert done.verdict["cause"]["text"] in lines[done.verdict["cause"]["line"] - 1]


def test_looping_behind_a_wrapper_of_one_pid_is_a_loop(vigil: Vigil) -> None:
    log, wrapper = begin(
        vigil, "--load", "1s", "--die", "import", "--after", "0.1s", wrap=(LOOP, "--pause", "0.1", "--")
    )
    done = vigil("wait", vigil.url, "--log", str(log), "--pid", str(wrapper.pid), "--json")

    assert (done.rc, done.word) == (5, "crash_looping")
    assert wrapper.poll() is None
    pids = [one["pid"] for one in done.verdict["attempts"]][-2:]
    assert wrapper.pid not in pids
    assert len(set(pids)) == 2


def test_log_that_comes_late_is_waited_for(vigil: Vigil) -> None:
    log = vigil.folder / "late.log"
    waiting = vigil.start("wait", vigil.url, "--log", str(log), "--json")
    waiting.until_err("is not there yet")
    vigil.begin_logged(log, *vigil.fake("--load", "0.3s", "--warmup", "0s"))
    done = waiting.end()

    assert (done.rc, done.word) == (0, "ready")
