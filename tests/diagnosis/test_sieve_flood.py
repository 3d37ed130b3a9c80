"""A flood of lines that are alike is passed over quickly: what is kept of a log is the same as if each line was looked at."""

import random
from pathlib import Path

import pytest

from diagnosis.lives import kept_logs, name_of
from vigil.diagnosis.lives import Lives
from vigil.diagnosis.sieve import FLOOD, Kept, Sieve
from vigil.diagnosis.wanted import wanted
from vigil.engines import TABLES

TABLES_ALL = tuple(TABLES.values())
WANTED = wanted(TABLES_ALL)
ALWAYS, NEVER = -1, 1 << 40
CALM = (
    *(
        b"ERROR request %d failed",
        b"RuntimeError: number %d went wrong",
        b'"POST /v1/x HTTP/1.1" 500 %d',
        b"%d%%\r\t%d%%",
    ),
    *(b"Decode batch, #running-req: %d", b"usage: vllm [-h]", b"KeyboardInterrupt", b"received during shutdown", b""),
    *(
        b"nothing of note %d",
        b"x" * 300 + b" error %d",
        b"Avg generation throughput: %d",
        b"\xff\x00 error %d",
        b"Killed",
    ),
    *(
        b'  File "/x/%d.py", line 3, in f',
        b"Traceback (most recent call last):",
        b"The server is fired up and ready to roll!",
    ),
)
TURNS = (
    *(b"build: %d (abc) with cc", b"vLLM API server version 0.%d.0", b"server_args=ServerArgs(x=%d)"),
    *(b"systemd[1]: Started x.service", b"main: exiting due to HTTP server error", b"listening on http://h:%d"),
)
BLOCK_ROWS = 700


def kept(log: bytes, flood: int) -> list[Kept]:
    """Return the lives that a log leaves; it comes in blocks that are smaller than real ones."""
    rows = log.splitlines(keepends=True)
    return kept_of([b"".join(rows[at : at + BLOCK_ROWS]) for at in range(0, len(rows), BLOCK_ROWS)], flood)


def kept_of(blocks: list[bytes], flood: int) -> list[Kept]:
    found: list[Kept] = []
    sieve = Sieve(WANTED, Lives(TABLES_ALL), found.append, flood=flood)
    for block in blocks:
        sieve.take(block)
    sieve.close()
    return found


def flooded(seed: int) -> bytes:
    """Make a log of runs: one line again and again, with other numbers, and now and then one that ends or begins a life."""
    rng = random.Random(seed)
    words = rng.sample(CALM, 6)
    rows: list[bytes] = []
    while len(rows) < 9000:
        word = rng.choice(words)
        for _ in range(rng.choice((1, 5, 40, 400))):
            row = word if rng.random() < 0.97 else word + b" " + rng.choice(words)
            rows.append(
                (rng.choice(TURNS) if rng.random() < 0.0004 else row).replace(b"%d", b"%d" % rng.randrange(10**6))
            )
    return rng.choice((b"\n", b"\r\n")).join(rows)


@pytest.mark.parametrize("seed", range(16))
def test_flood_is_kept_as_if_each_line_was_looked_at(seed: int) -> None:
    log = flooded(seed)
    assert kept(log, ALWAYS) == kept(log, NEVER) == kept(log, FLOOD)


def test_life_that_begins_in_a_flood_counts_anew_what_a_working_server_prints() -> None:
    flood = b"".join(b"ERROR %d Decode batch\n" % number for number in range(20))
    work = b"".join(b"Decode batch %d\n" % number for number in range(20))
    begins = b"x.service: Main process exited, code=exited\n" + b"nothing of note\n" * 50
    blocks = [flood, begins + flood, b"nothing of note\n" * 50 + work + b"nothing of note\n" * 20_000]
    assert kept_of(blocks, ALWAYS) == kept_of(blocks, NEVER)


def test_end_in_a_flood_is_an_end() -> None:
    flood = b"".join(b"ERROR %d failed\n" % number for number in range(400))
    ends = b"systemd[1]: x.service: Main process exited, code=exited, status=1/FAILURE\n"
    blocks = [flood, ends * 20 + flood]
    assert len(kept_of(blocks, NEVER)) == 2
    assert kept_of(blocks, ALWAYS) == kept_of(blocks, NEVER)


@pytest.mark.parametrize("path", kept_logs(), ids=name_of)
def test_real_log_is_kept_as_if_each_line_was_looked_at(path: Path) -> None:
    log = path.read_bytes()
    assert kept(log, ALWAYS) == kept(log, NEVER)


def test_more_shapes_than_are_told_apart_are_kept_the_same() -> None:
    rng = random.Random(1)
    rows = ["".join(rng.choices("abcdef", k=9)) + " error" for _ in range(3000)]
    log = "\n".join(rng.choices(rows, k=9000)).encode()
    assert kept(log, ALWAYS) == kept(log, NEVER)
