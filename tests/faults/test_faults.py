"""A small part of the fault table, at a tenth of life's times: rows whose verdict does not hang on tight timing.

The whole table, here, over ssh and in real time, is `make faults`.
"""

import pytest
from rows import LOCAL, ROWS, SSH, Row

from fault_acts import ACTS
from fault_checks import CHECKS
from fault_run import Run
from sshd import find_sshd

SCALE = 0.1
HERE = (
    "fast", "fast-llama-server", "noisy", "empty-health-body", "log-comes-late", "own-key",
    "exit-1", "exit-0", "exit-2-usage", "gpu-memory", "signal-9", "after-the-port-opened", "orphans-left", "job-finishes",
    "job-crashes",
    "every-0.05s", "plain-exit-1", "wait-log-and-url-append", "wait-log-rotated", "recovers-at-the-third",
    "health-accepts-and-never-answers", "reply-without-a-token", "fails-after-ready", "port-taken-before",
    "yesterday's-ready-in-the-log", "host-does-not-resolve", "no-python3-there", "log-cannot-be-read",
)  # fmt: skip
THERE = ("fast", "exit-2-usage", "signal-9", "plain-exit-1", "reply-without-a-token", "job-finishes")
BY_NAME = {row.name: row for row in ROWS}


def chosen() -> list[object]:
    """Return the rows and where each is played."""
    pairs = [(BY_NAME[name], LOCAL) for name in HERE] + [(BY_NAME[name], SSH) for name in THERE]
    return [pytest.param(row, where, id=f"{row.name}-{where}") for row, where in pairs]


@pytest.mark.parametrize(("row", "where"), chosen())
def test_fault_is_told_as_the_table_says(row: Row, where: str) -> None:
    if where == SSH and find_sshd() is None:
        pytest.skip("no sshd here: tests/install-system.sh installs it")

    outcome = Run(row, where, SCALE).play(ACTS, CHECKS)

    assert outcome.problems == (), f"{outcome.said} {outcome.cause}"


def test_fault_table_names_each_row_once_and_only_what_exists() -> None:
    assert len(BY_NAME) == len(ROWS)
    assert {row.act for row in ROWS} - {""} <= set(ACTS)
    assert {check for row in ROWS for check in row.checks} <= set(CHECKS)
    assert {row.verb for row in ROWS} == {"up", "run", "wait"}


def test_fault_table_expects_words_that_vigil_knows() -> None:
    from vigil.verdict import Word  # noqa: PLC0415 - the rows above are played without it

    words = {word for row in ROWS for word in row.expect if not word.startswith("error:")}
    assert words <= {str(word) for word in Word}
