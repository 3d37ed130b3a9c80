"""In a terminal: a picture that is redrawn in place and taken away, whatever the size, and a verdict that can be copied."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import pytest
from vigil_cli import COMMAND, PATIENCE_S, Vigil

CURSOR_UP = re.compile(r"\x1b\[(\d*)A")
SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def in_terminal(vigil: Vigil, columns: int, rows: int, *args: str) -> tuple[int, str]:
    """Run vigil in a terminal of a size; return its exit code and every byte that the terminal got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    vigil.env["TERM"] = "xterm-256color"
    process = vigil.begin(*COMMAND, *args, stdout=theirs, stderr=theirs)
    os.close(theirs)
    got = b""
    deadline_s = time.monotonic() + PATIENCE_S
    with contextlib.suppress(OSError):  # the last one closed it
        while time.monotonic() < deadline_s:
            if select.select([ours], [], [], 0.1)[0]:
                got += os.read(ours, 65536)
    os.close(ours)
    return process.wait(PATIENCE_S), got.decode()


@pytest.mark.parametrize(("columns", "rows"), [(100, 30), (40, 10), (20, 5)])
def test_picture_fits_and_goes_away(vigil: Vigil, columns: int, rows: int) -> None:
    fake = vigil.fake("--style", "sglang", "--load", "1.5s", "--warmup", "0s")
    rc, got = in_terminal(vigil, columns, rows, "up", "--name", "s", "--engine", "sglang", "--", *fake)

    assert rc == 0
    assert got.rindex("\x1b[?25h") > got.rindex("\x1b[?25l")  # the cursor is seen again
    assert len(CURSOR_UP.findall(got)) > 3  # it was redrawn
    assert sum(int(found or 1) for found in CURSOR_UP.findall(got)[-1:]) < rows
    drawn, _, verdict = got.rpartition("READY  s")
    assert "loading_weight" in SEQUENCE.sub("", drawn)
    longest = max(len(line) for line in SEQUENCE.sub("\n", drawn).replace("\r", "\n").splitlines())
    assert longest <= max(columns, 20)
    log = next(line for line in SEQUENCE.sub("", verdict).splitlines() if "log:" in line)
    assert log.endswith("server.log")  # one line, to be copied


def test_verdict_has_no_colours_in_a_pipe(vigil: Vigil) -> None:
    done = vigil("up", "--name", "s", "--", *vigil.fake("--load", "0.1s", "--warmup", "0s"))

    assert SEQUENCE.search(done.out + done.err) is None
