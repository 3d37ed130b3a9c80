"""The scout in a fork of us: it answers as through a reach, and whatever becomes of it is ours to tell."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from vigil.errors import UnreachableError, VigilError
from vigil.hosts import Reach, look_ahead, look_here
from vigil.scout import desk

QUESTION = {"engine": "vllm", "words": ["vllm", "serve", "./m"], "parts": ["models"]}


def asked(folder: Path) -> dict[str, Any]:
    return {**QUESTION, "models": [{"what": "model", "given": "./m"}], "cwd": str(folder)}


def answer(question: dict[str, Any], timeout_s: float = 30.0) -> dict[str, Any]:
    with look_here(question, timeout_s=timeout_s) as found:
        return found()


def children() -> set[str]:
    """Return the processes that this one has started and not waited for; those of other tests are among them."""
    return set(" ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split())


def test_a_look_in_a_fork_sees_what_one_through_a_process_of_its_own_sees(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text('{"model_type": "llama"}')

    seen = answer(asked(tmp_path))

    assert seen["models"][0]["config"] == {"model_type": "llama"}
    assert seen["models"] == anyio.run(look_ahead, Reach(), asked(tmp_path))["models"]


def test_a_look_that_hangs_is_ended_at_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "main", lambda _: threading.Event().wait())
    before = children()

    with pytest.raises(UnreachableError, match="no answer within 0 s"):
        answer(asked(tmp_path), timeout_s=0.05)

    assert not children() - before  # nothing is left of it


def test_a_look_that_is_killed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "main", lambda _: os.kill(os.getpid(), signal.SIGKILL))

    with pytest.raises(UnreachableError, match="the scout ended without an answer"):
        answer(asked(tmp_path))


def test_a_look_that_fails_says_of_what_and_comes_back_only_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: dict[str, Any]) -> None:
        raise ZeroDivisionError("no\x1b[31m")

    monkeypatch.setattr(desk, "main", fail)

    with pytest.raises(VigilError) as told:
        answer(asked(tmp_path))

    assert "ZeroDivisionError: no" in str(told.value)
    assert "\x1b" not in str(told.value)


def test_what_a_look_prints_is_not_printed_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def noisy(_: dict[str, Any]) -> None:
        os.write(2, b"noise")
        os.write(1, b"noise")
        print('{"ok": {"models": []}}', flush=True)

    monkeypatch.setattr(desk, "main", noisy)

    assert answer(asked(tmp_path)) == {"models": []}
    assert capfd.readouterr() == ("", "")


def test_a_look_that_nobody_waits_for_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "main", lambda _: threading.Event().wait())
    before = children()

    with pytest.raises(KeyboardInterrupt), look_here(asked(tmp_path)):
        raise KeyboardInterrupt

    assert not children() - before
