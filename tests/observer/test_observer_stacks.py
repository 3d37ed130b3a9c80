"""Where stuck processes stand, of real ones: by the kernel, and by py-spy."""

import json
from typing import Any

import pytest

from vigil import fact_parts, facts
from vigil.observer.stacks import dump, find_tool, read_dump

STUCK = "import time\ndef load_weights():\n    time.sleep(600)\nload_weights()\n"


def test_stack_of_a_python_process_is_seen(watching: Any, start: Any, python: str, poll: Any) -> None:
    process = start(python, "-c", STUCK)
    watching.watch(pid=process.pid)
    watching.wait(facts.MainStarted)

    def stack() -> fact_parts.ProcessStack | None:
        watching.do("stacks")
        seen = watching.wait(facts.StacksSeen, after=next(iter(reversed(watching.all(facts.StacksSeen))), None))
        frames = seen.stacks[0].frames if seen.stacks else ()
        return seen.stacks[0] if frames[:1] == ("load_weights (<string>:3)",) else None  # it may still be importing

    found = poll(stack)
    assert found.pid == process.pid
    assert found.state in {"S", "R"}


def test_process_that_is_no_python_has_no_frames(watching: Any, start: Any) -> None:
    process = start("/bin/sleep", "600")
    watching.watch(pid=process.pid)
    watching.wait(facts.MainStarted)
    watching.do("stacks")
    seen = watching.wait(facts.StacksSeen)
    assert [(stack.pid, stack.frames) for stack in seen.stacks] == [(process.pid, ())]


def test_no_process_is_no_stack(watching: Any, log: Any) -> None:
    watching.watch(log=str(log))
    watching.do("stacks")
    assert watching.wait(facts.StacksSeen).stacks == ()


def test_process_that_is_gone_is_said_in_words(start: Any, python: str) -> None:
    process = start(python, "-c", "")
    process.wait()
    tool = find_tool(process.pid)
    assert tool is not None
    frames, error = dump(tool, process.pid)
    assert frames == []
    assert error.startswith("py-spy: ")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"{}", b"[1]", b'[{"frames": 3}]', b'[{"frames": [{}]}]', b"[" * 100_000,
        json.dumps([{"thread_name": "x", "frames": [{"name": 1}]}]).encode(),
    ],
)  # fmt: skip
def test_dump_that_is_none_has_no_frames(data: bytes) -> None:
    assert read_dump(data) == []
