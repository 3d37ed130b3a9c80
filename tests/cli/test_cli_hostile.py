"""A server's log is written by whoever sends it requests: nothing in it may move our terminal, or fill our memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from vigil_cli import COMMAND, FAKES, Vigil

HOSTILE = str(FAKES / "hostile.py")
MOST_MEMORY_BYTES = 200 << 20
BIG_BYTES = 300 << 20
EVIL = (
    b"\x1b[2J\x1b[H\x1b[31mred\x1b[0m \x1b]0;owned\x07\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\\n"
    b"\x1bP1$r\x1b\\ \x1b_apc\x1b\\ \x1b^pm\x1b\\ \x1bc \x1b7\x1b8 \x9b31m \xc2\x9b31m \xc2\x85 unfinished \x1b[\n"
    b"ValueError: \x1b[8mhidden\x1b[28m \n"
    b"\xe2\x80\xae txet desrever \xe2\x80\xac \xe2\x81\xa6iso\xe2\x81\xa9 \xe2\x80\x8f\xe2\x80\x8e\n"
    b"tab\tNUL\x00bell\x07back\x08\x08\x08vt\x0bff\x0cdel\x7f \xff\xfe\xc3\x28\n"
    b"  5%|x\r 50%|xxxxx\r100%|xxxxxxxxxx| done\n"
    b"\xd8\x9c arabic mark, \xef\xbb\xbf bom, \xe2\x80\x8b zero width, \xf0\x9f\x98\x80 smile\n"
)


def unsafe(text: str) -> list[str]:
    """Return the characters of a text that a terminal would obey."""
    turning = {0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)}
    return [
        f"{ord(one):#x}"
        for one in text
        if (ord(one) < 0x20 and one not in "\n\t") or 0x7F <= ord(one) <= 0x9F or ord(one) in turning
    ]


@pytest.fixture
def evil(vigil: Vigil) -> Path:
    path = vigil.folder / "evil"
    path.write_bytes(EVIL)
    return path


def test_log_of_a_dying_server_cannot_move_the_terminal(vigil: Vigil, evil: Path) -> None:
    script = f"cat {evil}; printf 'ValueError: \\033[2J\\033]0;owned\\007 bad\\n'; cat {evil}; sleep 0.3; exit 1"
    done = vigil("up", "--name", "s", "--progress-every", "0.05s", "--", "sh", "-c", script)

    assert done.out.startswith("CRASHED")
    assert unsafe(done.out + done.err) == []
    for words in (("show", "s"), ("ps",), ("logs", "s"), ("logs", "s", "-n", "2")):
        assert unsafe(vigil(*words).out) == [], words
    shown = vigil("logs", "s").out
    assert "red" in shown
    assert "owned" not in shown.replace("0;owned", "")
    assert "smile" in shown


def test_log_that_is_followed_cannot_move_the_terminal(vigil: Vigil, evil: Path) -> None:
    vigil("up", "--for", "0.2s", "--name", "s", "--", "sh", "-c", f"sleep 1; cat {evil}; sleep 0.3")
    done = vigil("logs", "-f", "s")

    assert done.rc == 0
    assert "red" in done.out
    assert unsafe(done.out + done.err) == []


def test_answers_and_titles_cannot_move_the_terminal(vigil: Vigil) -> None:
    model = "m\x1b[2J\x9b31m\u202e"
    fake = vigil.fake("--load", "0.1s", "--warmup", "0s", "--model", model)
    done = vigil("up", "--name", "s", "--", *fake, "--served-model-name", model)

    assert done.out.startswith("READY")
    assert unsafe(done.out + done.err) == []
    assert unsafe(vigil("show", "s").out) == []


def test_user_text_cannot_move_the_terminal(vigil: Vigil) -> None:
    done = vigil("wait", "x\x1b[2J\u202e\n")

    assert done.rc == 2
    assert unsafe(done.err) == []


def test_json_escapes_what_a_log_says(vigil: Vigil, evil: Path) -> None:
    done = vigil("up", "--json", "--name", "s", "--", "sh", "-c", f"cat {evil}; echo 'ValueError: x'; exit 1")

    assert done.word == "crashed"
    assert unsafe(done.out) == []


def test_huge_lines_and_many_lines_stay_out_of_memory(vigil: Vigil) -> None:
    many = f"import sys; sys.stdout.write('short line\\n' * 300000); print('x' * {BIG_BYTES}); raise SystemExit(3)"
    big = [*COMMAND, "up", "--json", "--name", "s", "--", sys.executable, "-c", many]
    process = subprocess.Popen(big, env=vigil.env, cwd=vigil.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout as stream:
        out = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)

    assert process.returncode == 4, out
    assert usage.ru_maxrss * 1024 < MOST_MEMORY_BYTES
    assert len(out) < 100_000
    for path in vigil.files():
        assert path.name == "server.log" or path.stat().st_size < 64 << 20, path


def test_nasty_log_does_not_hide_that_it_is_ready(vigil: Vigil) -> None:
    done = vigil(
        "up",
        "--json",
        "--name",
        "s",
        "--",
        sys.executable,
        HOSTILE,
        "--bytes",
        str(4 << 20),
        *vigil.fake("--load", "0.1s")[2:],
    )

    assert done.word == "ready"
    assert done.verdict["attempts"][0]["n"] == 1


def test_logs_of_a_huge_line_are_cut(vigil: Vigil) -> None:
    vigil("up", "--json", "--name", "s", "--", "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end")
    shown = vigil("logs", "s")

    assert len(shown.out) < 300_000
    assert shown.out.endswith("end\n")
