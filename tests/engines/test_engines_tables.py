"""The tables as data: hallmarks, versions, silences, and the page that is made from them."""

import re
from pathlib import Path

import pytest

from engines.transcripts import LOGS, lines, logs, name_of, table_of
from vigil.engine_table import EngineTable, Phase
from vigil.engines import TABLES, detect_text, engine_version, phase_table
from vigil.ready_lines import ALL, ready_lines

every_table = pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)


@every_table
def test_patterns_compile_and_groups_are_there(table: EngineTable) -> None:
    for sign in table.signs:
        groups = re.compile(sign.pattern or "").groupindex
        assert ("done" in groups) == ("total" in groups)
    assert all(re.compile(pattern).groups == 1 for pattern in table.version_patterns)
    assert table.rank_pattern is None or "other" in re.compile(table.rank_pattern).groupindex


@every_table
def test_ready_lines_are_signs_of_serving(table: EngineTable) -> None:
    serving = [sign.text for sign in table.signs if sign.phase is Phase.SERVING]
    assert set(table.ready_lines) <= set(serving)


@every_table
def test_diagnosis_knows_the_ready_lines_of_the_table(table: EngineTable) -> None:
    known = ready_lines(table.name)
    assert set(table.ready_lines) <= set(known)
    assert known in {ALL, table.ready_lines}


@every_table
def test_harmless_lines_are_never_fatal(table: EngineTable) -> None:
    assert not any(harmless in fatal or fatal in harmless for harmless in table.harmless for fatal in table.fatal_lines)


@every_table
def test_silences_are_sane(table: EngineTable) -> None:
    assert all(60 <= silent_s <= 900 for silent_s in table.silent_s.values())


def test_relays_of_the_taxonomy_are_known() -> None:
    assert "kill_process_tree called" in TABLES["sglang"].relays
    assert "kill_process_tree called" not in TABLES["sglang"].fatal_lines  # it ends every orderly life as well
    assert any("Engine core initialization failed" in relay for relay in TABLES["vllm"].relays)
    assert any("model loading error" in relay for relay in TABLES["llamacpp"].relays)


@pytest.mark.parametrize("path", logs(), ids=name_of)
def test_log_is_never_taken_for_another_engines(path: Path) -> None:
    names = {seen.name for seen in map(detect_text, lines(path)) if seen is not None}
    if table_of(path).name == "generic":
        assert names == set()
    else:
        assert names <= {table_of(path).name}


def test_engine_is_known_by_its_log() -> None:
    unknown = [
        name_of(path)
        for path in logs()
        if table_of(path).name != "generic" and not any(detect_text(line) for line in lines(path))
    ]
    # These three hold nothing but one line about one flag that any engine could have.
    assert unknown == ["llamacpp/bad-spec-type", "llamacpp/not-a-number", "llamacpp/removed-flag"]


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("(EngineCore pid=1) INFO [core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: x", "0.32.0"),
        ("(APIServer pid=1) INFO 11-30 07:40:26 [api_utils.py:347]  ▄▄ ▄█ █  █ ▀▄▀ █  version 0.32.0", "0.32.0"),
        ("INFO 06-15 13:58:03 [api_server.py:1287] vLLM API server version 0.9.1", "0.9.1"),
        ("build: 6428 (a1faeb) with cc", "6428"),
        ("0.00.047.566 I common_params_print_info: build 9284 (afcda09d1) with GNU 11.4.0", "9284"),
        ("0.00.002.735 I srv          init: build_info: b0-unknown", "b0-unknown"),
        ("INFO:     Application startup complete.", None),
    ],
)
def test_version_is_read_where_the_log_states_it(line: str, version: str | None) -> None:
    assert engine_version(line) == version


def test_vllm_logs_state_their_version() -> None:
    path = LOGS / "vllm-cpu" / "ok-eager.log"
    assert {engine_version(line) for line in lines(path)} - {None} == {"0.32.0"}


@every_table
def test_page_names_every_sign(table: EngineTable) -> None:
    page = phase_table(table)
    assert page.count("\n") == len(table.signs) + 2
    assert all(sign.text in page for sign in table.signs)


def test_page_says_what_a_second_load_means() -> None:
    assert "the second time `loading_draft`" in phase_table(TABLES["sglang"])
