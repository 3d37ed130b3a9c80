"""Traces: written whatever happens to the disk, read to the last whole line, and refused in one line where they are none."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil import facts
from vigil.errors import TraceError
from vigil.plan import Plan
from vigil.trace import Header, Writer, read

HEADER = Header(vigil="0", began=1.0, plan=Plan(command=("x",)), slowest_quiet_s={"importing": 2.0})
FACTS = (
    facts.Reached(at_s=0.0, boot_id="b", host="h", python="3.11", wall_s=1.0),
    facts.LogGrew(at_s=0.5, size=10, lines=(facts.Line(1, "a\u202e\x1b"), facts.Line(2, "b")), inode=7),
    facts.MainExited(at_s=1.0, pid=5, code=2),
    facts.Ticked(at_s=2.0),
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    writer = Writer(path, HEADER)
    for fact in FACTS:
        assert writer.add(fact) is None
    writer.close()
    return path


def refused(path: Path) -> str:
    with pytest.raises(TraceError) as error:
        list(read(path)[1])
    assert "\n" not in str(error.value)
    return str(error.value)


def test_trace_comes_back_as_it_was_written(trace: Path) -> None:
    header, told = read(trace)

    assert header == HEADER
    assert tuple(told) == FACTS


def test_trace_is_one_line_a_fact_and_for_its_owner_only(trace: Path) -> None:
    assert len(trace.read_bytes().splitlines()) == 1 + len(FACTS)
    assert trace.stat().st_mode & 0o777 == 0o600


def test_trace_is_read_wherever_its_last_line_was_cut(trace: Path) -> None:
    whole = trace.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole)):
        trace.write_bytes(whole[:size])
        told = list(read(trace)[1])
        assert told == list(FACTS[: len(told)])


def test_trace_with_a_broken_line_inside_names_it(trace: Path) -> None:
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join([*lines[:2], b'{"kind": "Never"}\n', *lines[2:]]))

    assert "line 3" in refused(trace)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"{}\n", "is not a trace"),
        (b"[1]\n", "is not a trace"),
        (b"\xff\xfe\x00", "is not a trace"),
        (b'{"schema": "1"}\n', "is not a trace"),
        (b'{"schema": 1, "began": "then"}\n', "is not a trace"),
        (b'{"schema": 2, "new": {}}\n', "has schema 2; this vigil reads 1"),
    ],
)
def test_trace_that_is_none_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)

    assert why in refused(path)


def test_trace_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none")


@given(st.binary(max_size=200))
def test_trace_of_any_bytes_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        list(read(path)[1])
    except TraceError as error:
        assert str(path) in str(error)  # noqa: PT017 - anything else is a failure by itself


def test_trace_on_a_full_disk_says_so_once_and_goes_on(tmp_path: Path) -> None:
    writer = Writer(Path("/dev/full"), HEADER)
    told = [writer.add(fact) for fact in FACTS]
    writer.close()

    assert told == [None] * len(FACTS) or told[0] is not None
    assert sum(one is not None for one in told) <= 1


def test_header_holds_no_environment(trace: Path) -> None:
    header = msgspec.json.decode(trace.read_bytes().splitlines()[0])

    assert header["schema"] == 1
    assert header["plan"]["env"] == {}
