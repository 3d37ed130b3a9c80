"""A scanner keeps few lines of a log; the answer must be that of all lines."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from diagnosis.lives import engine_of, kept_logs, name_of, read_lines
from diagnosis.test_diagnosis_families import ALL, Family
from vigil.diagnosis import End, Findings, WantedTexts, examine, wanted
from vigil.engine_table import EngineTable
from vigil.engines import table
from vigil.facts import Line

ENDS = (End(), End(code=1), End(code=0, ready=True), End(signal=9), End(signal=9, oom_killed=True))


def sieve(lines: Sequence[Line], texts: WantedTexts) -> list[Line]:
    """Keep what `texts` ask for, as a scanner may: nothing else, and of the endless ones only both ends."""
    keep: set[int] = set()
    endless: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        hits = [one for one in texts.texts if one.text in line.text[:1000]]
        if hits and all(one.ends is not None for one in hits):
            for one in hits:
                endless.setdefault(one.text, []).append(index)
            continue
        for after in [one.after for one in hits]:
            keep.update(i for i in range(index, len(lines)) if lines[i].number - line.number <= after)
    for text, where in endless.items():
        ends = next(one.ends for one in texts.texts if one.text == text)
        assert ends is not None
        keep.update(where[:ends], where[-ends:])
    last = max((i for i, line in enumerate(lines) if line.text.strip()), default=None)
    return [line for i, line in enumerate(lines) if i in keep or i == last]


def told(findings: Findings) -> object:
    """Return the findings without what is shown around a cause: those lines the scanner fetches itself."""

    def bare(cause: object) -> object:
        return msgspec.structs.replace(cause, around=()) if isinstance(cause, msgspec.Struct) else cause

    return bare(findings.cause), tuple(bare(one) for one in findings.candidates), findings.stuck


def table_of(engine: str | None) -> EngineTable | None:
    return None if engine in {None, "trtllm"} else table(str(engine))


@pytest.mark.parametrize("path", kept_logs(), ids=name_of)
def test_real_log_tells_the_same_when_unwanted_lines_are_dropped(path: Path) -> None:
    lines, described = read_lines(path), table_of(engine_of(path))
    few = sieve(lines, wanted([described] if described else []))
    for end in ENDS:
        assert told(examine(few, end, described)) == told(examine(lines, end, described))


def padded(family: Family) -> list[Line]:
    """Return the lines with a word of nothing after each: what a scanner drops."""
    return [
        Line(number * 2 - 1 + step, text)
        for number, line in enumerate(family.lines, 1)
        for step, text in enumerate((line.text, "[2026-03-01 10:00:22 TP0] tensor 42 has arrived"))
    ]


@pytest.mark.parametrize("family", ALL, ids=lambda one: f"{one.kind}-{one.engine}")
def test_wording_tells_the_same_when_unwanted_lines_are_dropped(family: Family) -> None:
    described = table_of(family.engine)
    lines = padded(family)
    few = sieve(lines[:-1], wanted([described] if described else []))
    assert told(examine(few, End(), described)) == told(examine(lines[:-1], End(), described))
    assert len(few) < len(lines)


def test_each_text_is_asked_for_once_and_none_is_short() -> None:
    texts = [one.text for one in wanted([table("sglang"), table("vllm")]).texts]
    assert len(texts) == len(set(texts))
    assert all(len(text) >= 2 for text in texts)
