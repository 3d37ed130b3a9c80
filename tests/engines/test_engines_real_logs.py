"""The tables against every real log that we have."""

from itertools import pairwise
from pathlib import Path

import pytest

from engines.transcripts import STOPPING, became_ready, lines, logs, name_of, phases, readings, table_of
from vigil.engine_table import Phase
from vigil.reading import read_sign

LIVES = {  # lives that came as far as their banner; one where nothing else is said
    "llamacpp/crash-loop-then-recovers": 5,
    "llamacpp/crash-loop-truncated": 8,
    "sglang-h200/d10_restart_loop": 2,
    # The command line was refused before anything was printed, or the program never began, or has no banner.
    **dict.fromkeys(
        (
            "llamacpp/bad-spec-type",
            "llamacpp/crash-loop-unknown-flag",
            "llamacpp/misspelt-flag",
            "llamacpp/not-a-number",
            "llamacpp/removed-flag",
            "llamacpp/removed-flag-no-mmap",
            "llamacpp/unknown-flag",
            "sglang/broken-torchvision",
            "sglang/unknown-flag",
            "sglang-h200/d15_draft_missing",
            "sglang-h200/d1_unknown_flag",
            "sglang-h200/d2_missing_model",
            "vllm-cpu/misspelt-flag",
            "vllm-cpu/no-vllm-metadata",
            "vllm-cpu/unknown-flag",
            "transformers/ok-basic",
        ),
        0,
    ),
}
DRAFTS = {
    "llamacpp/draft-eagle3-not-eagle",
    "llamacpp/missing-draft",
    "llamacpp/ok-draft-self",
    "llamacpp/ok-draft-self-synth",
    "llamacpp/ok-draft-simple-self",
    "llamacpp/ok-draft-simple-synth",
    "llamacpp/truncated-draft",
    "sglang/eagle3-random",
    "sglang-h200/a2_dummy_eagle3",
    "sglang-h200/a2_dummy_eagle3_no_deep_gemm",
    "sglang-h200/d3_layers0_draft",
    "sglang-h200/d4_wrongkeys_draft",
    "vllm-cpu/eagle3-random",
    "vllm-cpu/eagle3-wrong-hidden",
}
GIVES_UP_SILENTLY = {  # only a traceback, or killed from outside
    "llamacpp/sigkill-during-load",
    "llamacpp/sigterm-during-load",
    "sglang/broken-torchvision",
    "sglang/timeout-130s",
    "sglang-h200/d15_draft_missing",
    "sglang-h200/d2_missing_model",
    "vllm-cpu/bad-spec-method",
    "vllm-cpu/missing-model",
    "vllm-cpu/no-vllm-metadata",
    "vllm-cpu/port-in-use",
}
LEVEL = {phase: level for level, phase in enumerate(Phase)}
MIDDLE = {Phase.LOADING_DRAFT, Phase.ALLOCATING_KV, Phase.COMPILING, Phase.CAPTURING_GRAPHS}

READY = [path for path in logs() if became_ready(path)]
every_log = pytest.mark.parametrize("path", logs(), ids=name_of)


def test_logs_are_there() -> None:
    assert len(logs()) > 60


@every_log
def test_ready_line_is_there_where_the_server_became_ready(path: Path) -> None:
    assert any(reading.ready for _, reading in readings(path)) == became_ready(path)


@every_log
def test_ready_line_is_the_phase_serving(path: Path) -> None:
    assert all(reading.phase is Phase.SERVING for _, reading in readings(path) if reading.ready)


@every_log
def test_banner_comes_once_a_life(path: Path) -> None:
    assert sum(reading.banner for _, reading in readings(path)) == LIVES.get(name_of(path), 1)


@every_log
def test_phases_go_forward_but_for_new_lives(path: Path) -> None:
    seen = phases(path)
    back = [
        (one, next_one)
        for one, next_one in pairwise(seen)
        if LEVEL[next_one] < LEVEL[one] and not {one, next_one} <= MIDDLE
    ]
    first = {Phase.LAUNCHING, Phase.IMPORTING}
    assert all(next_one in first for _, next_one in back)
    assert len(back) == max(0, LIVES.get(name_of(path), 1) - 1)


@every_log
def test_draft_is_seen_where_one_is_loaded(path: Path) -> None:
    assert (Phase.LOADING_DRAFT in phases(path)) == (name_of(path) in DRAFTS)


@pytest.mark.parametrize("path", [one for one in READY if LIVES.get(name_of(one), 1) < 2], ids=name_of)
def test_healthy_life_says_nothing_fatal(path: Path) -> None:
    for line, reading in readings(path):
        if any(word in line for word in STOPPING) or "crashed with exit code" in line or "EngineCore encounter" in line:
            break
        if name_of(path) == "vllm-cpu/eagle3-wrong-hidden" and reading.fatal:
            break  # its first request kills it
        assert not reading.fatal, line


@pytest.mark.parametrize("path", [one for one in logs() if one not in READY], ids=name_of)
def test_end_is_announced_where_the_engine_says_so(path: Path) -> None:
    assert any(reading.fatal for _, reading in readings(path)) != (name_of(path) in GIVES_UP_SILENTLY)


@every_log
def test_bytes_one_by_one_read_the_same(path: Path) -> None:
    table = table_of(path)
    at_once = [read_sign(table, line) for line in lines(path)]
    one_by_one = []
    held = bytearray()
    for byte in path.read_bytes() + b"\n":
        if byte in b"\r\n":
            if held:
                one_by_one.append(read_sign(table, held.decode("utf-8", "replace")))
            held.clear()
        else:
            held.append(byte)
    assert one_by_one == at_once


@every_log
def test_cut_log_never_says_more_than_the_whole(path: Path) -> None:
    whole = list(readings(path))
    some = [reading for _, reading in whole]
    assert all(not reading.ready for reading in some[: _index_of_ready(some)])
    for line, reading in whole:
        for cut in (len(line) // 3, len(line) // 2):
            part = read_sign(table_of(path), line[:cut])
            assert part is None or not part.ready or reading.ready


def _index_of_ready(some: list[object]) -> int:
    return next((index for index, reading in enumerate(some) if getattr(reading, "ready", False)), len(some))


def test_sglang_health_calls_are_not_life() -> None:
    path = next(path for path in logs() if name_of(path) == "sglang-h200/a2_dummy_eagle3")
    prefills = [line for line in lines(path) if "#new-token: 1," in line]
    assert prefills
    assert not any((read_sign(table_of(path), line) or _quiet).alive for line in prefills)


def test_sglang_load_is_life() -> None:
    path = next(path for path in logs() if name_of(path) == "sglang-h200/e1_base")
    decodes = [line for line in lines(path) if "Decode batch" in line]
    assert decodes
    assert all((read_sign(table_of(path), line) or _quiet).alive for line in decodes)


class _Quiet:
    alive = False


_quiet = _Quiet()
