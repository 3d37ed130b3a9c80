"""Users' patterns that take for ever: the rule is left out and named, and everything else is as if it had never been there."""

import re
import time

import pytest

from diagnosis.lives import as_lines
from vigil.diagnosis import End, Findings, examine
from vigil.diagnosis.patience import SlowRule
from vigil.diagnosis.postmortem import Log, Postmortem
from vigil.diagnosis.rules import Rule, When, known_rule_set, known_rules
from vigil.engines import TABLES

LINE = "RuntimeError: no lease for " + "a" * 900 + "!"
LOG = f"OSError: [Errno 98] Address already in use\n{LINE}"
CATASTROPHES = ("(a+)+$", "(a|aa)+$", "(\\w+\\s?)*$", "((a{1,200}){1,200}){1,200}b")


def rule(code: str, **when: str) -> Rule:
    seen = When(text="no lease for", **when)
    return Rule(code=code, title="t", kind="other", because="b", advice="a", retry=True, when=(seen,))


def look(*rules: Rule, log: str = LOG) -> Findings:
    return examine(as_lines(log), End(code=1), rules=rules)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("pattern", CATASTROPHES)
def test_rule_that_takes_for_ever_is_left_out_and_named(pattern: str) -> None:
    began_s = time.thread_time()
    found = look(rule("SLOW001", pattern=pattern))
    assert time.thread_time() - began_s < 5
    assert found.slow == (SlowRule("SLOW001", "when[0].pattern"),)
    assert found.cause == look().cause


@pytest.mark.timeout(30)
def test_other_rules_of_the_user_go_on() -> None:
    found = look(
        rule("SLOW001", pattern="(a+)+$"), rule("SLOW002", pattern="(a|aa)+$"), rule("GOOD001", pattern="lease")
    )
    assert [one.code for one in found.slow] == ["SLOW001", "SLOW002"]
    assert found.cause is not None
    assert found.cause.code == "GOOD001"


@pytest.mark.timeout(30)
def test_many_searches_that_are_slow_together_are_too_slow() -> None:
    log = "\n".join(f"RuntimeError: no lease for {'a' * 900} {number}" for number in range(600))
    found = look(rule("SLOW001", pattern=".*a.*a.*b"), log=log)
    assert [one.code for one in found.slow] == ["SLOW001"]


@pytest.mark.timeout(30)
def test_frame_of_a_traceback_that_takes_for_ever_is_named() -> None:
    log = f'Traceback (most recent call last):\n  File "{"a" * 900}", line 3, in f\nRuntimeError: no lease for x'
    assert look(rule("SLOW001", frame="(a+)+$"), log=log).slow == (SlowRule("SLOW001", "when[0].frame"),)


@pytest.mark.timeout(30)
def test_rule_stays_left_out_in_the_lives_that_follow() -> None:
    ends = "container x exited (1)\n"
    postmortem = Postmortem(tuple(TABLES.values()), Log(file="x"), [rule("SLOW001", pattern="(a+)+$")])
    postmortem.feed((f"{LINE}\n{ends}" * 200).encode())
    story = postmortem.close()
    assert (story.attempts, story.slow_rules) == (200, (SlowRule("SLOW001", "when[0].pattern"),))


def test_our_patterns_mean_the_same_to_a_user_who_copies_them() -> None:
    copied = known_rules()["PORT001"]
    mine = Rule(code="MINE001", title="t", kind=copied.kind, because="b", advice="a", retry=True, when=copied.when)
    for sample in copied.match:
        found = examine(as_lines(sample.text), End(code=1), rules=[mine])
        assert (found.cause and found.cause.code, found.slow) == ("MINE001", ())


def test_our_rules_stay_with_re() -> None:
    for needle in known_rule_set().needles:
        assert all(one is None or isinstance(one, re.Pattern) for one in (needle.pattern, needle.above, needle.frame))
