import re

import msgspec
import pytest

from diagnosis.lives import as_lines
from vigil.diagnosis import Cause, End, diagnose, examine
from vigil.diagnosis.rules import AdviceFor, Rule, Sample, known_rule_set, known_rules, version_key
from vigil.engines import table

MATCHES = [(rule, sample) for rule in known_rules().values() for sample in rule.match]
NEAR_MISSES = [(rule, sample) for rule in known_rules().values() for sample in rule.near_miss]


def name(value: object) -> str:
    return value.code if isinstance(value, Rule) else ""


def look(sample: Sample, engine: str | None) -> Cause | None:
    died = End(code=sample.code, signal=sample.signal, oom_killed=sample.oom_killed)
    return diagnose(as_lines(sample.text), End() if sample.alive else died, engine)


@pytest.mark.parametrize(("rule", "sample"), MATCHES, ids=name)
def test_rule_is_the_cause_of_its_match(rule: Rule, sample: Sample) -> None:
    cause = look(sample, sample.engine)
    assert cause is not None
    assert (cause.code, cause.retry) == (rule.code, rule.retry)
    assert cause.kind in {rule.kind, *(when.kind for when in rule.when if when.kind)}


@pytest.mark.parametrize(("rule", "sample"), NEAR_MISSES, ids=name)
def test_rule_is_not_the_cause_of_its_near_miss(rule: Rule, sample: Sample) -> None:
    cause = look(sample, sample.engine)
    assert cause is None or cause.code != rule.code


@pytest.mark.parametrize(("rule", "sample"), MATCHES, ids=name)
def test_rule_matches_without_knowing_the_engine(rule: Rule, sample: Sample) -> None:
    cause = look(sample, None)
    assert cause is not None
    assert cause.code == rule.code


def test_rules_cover_what_servers_die_of_most() -> None:
    wanted = {
        "FLAG001",
        "FLAG002",
        "FILE001",
        "FILE002",
        "MEM001",
        "MEM002",
        "MEM003",
        "PORT001",
        "IMP001",
        "SIG001",
        "PERM001",
    }
    assert wanted | {"DISK001", "EXC000", "ABRT000", "ERR000"} <= set(known_rules())


@pytest.mark.parametrize("rule", known_rules().values(), ids=name)
def test_rule_advice_names_only_groups_of_its_patterns(rule: Rule) -> None:
    filled = ({"signal"} if rule.from_end else set()) | ({"found", "why"} if rule.seen else set())
    for needle in (n for n in known_rule_set().needles if n.rule is rule):
        groups = set(needle.pattern.groupindex) if needle.pattern else set()
        if "number" in groups:
            groups |= {"signal"}
        asked = set(re.findall(r"\{(\w+)\}", needle.when.advice or rule.advice))
        assert asked <= groups | (filled if not needle.pattern else set()), needle.when.text


@pytest.mark.parametrize("rule", known_rules().values(), ids=name)
def test_rule_literal_stands_in_lines_that_its_pattern_matches(rule: Rule) -> None:
    texts = [sample.text for sample in rule.match]
    seen = [n for n in known_rule_set().needles if n.rule is rule and any(n.when.text in text for text in texts)]
    assert seen or rule.code == "ERR000" or rule.seen


def test_advice_for_no_room_and_for_no_memory_points_in_opposite_directions() -> None:
    no_room = diagnose(
        as_lines("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
        End(code=1),
        "sglang",
    )
    no_memory = diagnose(
        as_lines("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.47 GiB."), End(code=1), "sglang"
    )
    assert no_room is not None
    assert no_memory is not None
    assert "Raise --mem-fraction-static" in no_room.advice
    assert "lower --mem-fraction-static" in no_memory.advice


CAPTURE = "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.32 GiB."


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("0.5.23", "--cuda-graph-max-bs-decode"),
        ("0.4.9", "batches: --cuda-graph-max-bs."),
        (None, "from 0.5.2x on"),
        ("0.0.0.dev1+gd6ab04", "from 0.5.2x on"),
    ],
)
def test_advice_names_the_flag_of_this_version(version: str | None, flag: str) -> None:
    cause = examine(as_lines(CAPTURE), End(), table("sglang"), version=version).cause
    assert cause is not None
    assert flag in cause.advice


def test_advice_names_the_whole_number_that_cannot_be_divided() -> None:
    text = "ValueError: Weight input_size_per_partition = 4736 is not divisible by min_thread_k = 128."
    cause = examine(as_lines(text), End(code=1), table("vllm")).cause
    assert cause is not None
    assert "(4736) must be a multiple of 128" in cause.advice


def test_version_is_read_from_the_log_where_it_is_not_given() -> None:
    log = f"INFO 06-15 09:00:00 [api_server.py:1287] vLLM API server version 0.9.1\n{CAPTURE}"
    rule = known_rules()["MEM004"]
    own = AdviceFor(engine="vllm", since="0.9", before="0.10", advice="for 0.9")
    mine = msgspec.structs.replace(rule, code="MINE001", advice_for=(own,))
    cause = examine(as_lines(log), End(), table("vllm"), rules=[mine]).cause
    assert cause is not None
    assert cause.advice == "for 0.9"


@pytest.mark.parametrize(
    ("one", "other"), [("0.5.2", "0.5.10"), ("0.9.1", "0.10"), ("b5142", "b6428"), ("0.5.10.post1", "0.5.23")]
)
def test_versions_are_compared_by_their_numbers(one: str, other: str) -> None:
    assert version_key(one) < version_key(other)
