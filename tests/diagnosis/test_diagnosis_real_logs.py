from pathlib import Path

import pytest

from diagnosis.lives import ASKED, BAD, DEATHS, FLAWED, HEALTHY, engine_of, kept_logs, lives, name_of, read_lines
from vigil.diagnosis import End, Findings, diagnose, examine
from vigil.engines import table

FAILING = [path for path in kept_logs() if name_of(path) in DEATHS]
SERVED = [path for path in kept_logs() if name_of(path) in HEALTHY]


def kept(name: str) -> Path:
    return next(path for path in kept_logs() if name_of(path) == name)


def test_real_logs_are_kept_here() -> None:
    assert len(FAILING) >= 20
    assert SERVED


@pytest.mark.parametrize("path", FAILING, ids=name_of)
def test_real_death_has_the_cause_that_a_reader_finds(path: Path) -> None:
    death = DEATHS[name_of(path)]
    lines = read_lines(path)
    cause = diagnose(lines, death.end, engine_of(path), path.name)
    assert cause is not None
    assert (cause.code, cause.file) == (death.code, path.name)
    assert death.words in cause.text
    assert cause.line is None or any(line.number == cause.line and death.words in line.text for line in lines)


@pytest.mark.parametrize("path", FAILING, ids=name_of)
def test_real_death_names_the_first_line_with_its_words(path: Path) -> None:
    death = DEATHS[name_of(path)]
    lines = read_lines(path)
    cause = diagnose(lines, death.end, engine_of(path))
    assert cause is not None
    assert cause.line == next((line.number for line in lines if death.words in line.text), None)


@pytest.mark.parametrize("path", SERVED, ids=name_of)
def test_healthy_log_has_no_cause(path: Path) -> None:
    assert diagnose(read_lines(path), ASKED, engine_of(path)) is None
    assert diagnose(read_lines(path), End(ready=True), None) is None


@pytest.mark.parametrize("path", SERVED, ids=name_of)
def test_healthy_log_alone_shows_no_cause_and_nothing_stuck(path: Path) -> None:
    engine = engine_of(path)
    findings = examine(read_lines(path), End(), table(engine or "generic"))
    assert findings == Findings(cause=None, candidates=(), stuck=None)


@pytest.mark.parametrize("path", SERVED, ids=name_of)
def test_healthy_log_shows_no_cause_wherever_it_is_read(path: Path) -> None:
    lines, described = read_lines(path), table(engine_of(path) or "generic")
    causes = {length: examine(lines[:length], End(), described).cause for length in range(1, len(lines), 5)}
    assert not [length for length, cause in causes.items() if cause]


@pytest.mark.parametrize("name", FLAWED)
def test_speculation_that_gives_nothing_is_named_while_it_serves_and_not_for_its_end(name: str) -> None:
    lines, engine = read_lines(kept(name)), engine_of(kept(name))
    cause = diagnose(lines, End(ready=True), engine)
    assert cause is not None
    assert cause.code == FLAWED[name].code
    assert FLAWED[name].words in cause.text
    assert diagnose(lines, ASKED, engine) is None


@pytest.mark.parametrize("path", [path for path in SERVED if "wrong-hidden" not in path.stem], ids=name_of)
def test_scary_lines_of_a_healthy_start_do_not_explain_a_later_kill(path: Path) -> None:
    cause = diagnose(read_lines(path), End(signal=11, ready=True), engine_of(path))
    assert cause is not None
    assert (cause.code, cause.text, cause.line) == ("SIG001", "killed by SIGSEGV", None)


@pytest.mark.parametrize(
    ("name", "banner", "count", "code"),
    [
        ("llamacpp/crash-loop-truncated", "llama_server: initializing", 8, "FILE002"),
        ("llamacpp/crash-loop-unknown-flag", "error: invalid argument", 8, "FLAG001"),
        ("llamacpp/crash-loop-then-recovers", "llama_server: initializing", 4, "FILE001"),
    ],
)
def test_lives_of_a_crash_loop_end_alike(name: str, banner: str, count: int, code: str) -> None:
    causes = [diagnose(life, BAD, "llamacpp") for life in lives(read_lines(kept(name)), banner)[:count]]
    assert [cause.code for cause in causes if cause] == [code] * count
    assert len({cause.fingerprint for cause in causes if cause}) == 1
    assert len({cause.line for cause in causes if cause}) == count


def test_life_that_recovered_after_a_loop_has_no_cause() -> None:
    last = lives(read_lines(kept("llamacpp/crash-loop-then-recovers")), "llama_server: initializing")[-1]
    assert diagnose(last, ASKED, "llamacpp") is None


def test_scheduler_killed_in_a_restart_loop_is_the_cause_of_its_own_life_only() -> None:
    _command, first, second = lives(read_lines(kept("sglang/d10_restart_loop")), "=== start ")
    killed = diagnose(first, End(code=137), "sglang")
    assert killed is not None
    assert (killed.code, killed.line) == ("SIG001", 243)
    assert diagnose(second, ASKED, "sglang") is None


def test_different_deaths_have_different_fingerprints() -> None:
    prints: dict[str, set[str]] = {}
    for path in FAILING:
        death = DEATHS[name_of(path)]
        cause = diagnose(read_lines(path), death.end, engine_of(path))
        assert cause is not None
        prints.setdefault(cause.fingerprint, set()).add(death.words.replace("'/tmp/", "'").partition(" (pid=")[0])
    assert all(len(words) == 1 for words in prints.values()), prints
