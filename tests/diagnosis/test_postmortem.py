"""A whole log, of any size, in any pieces: its lives, and the same answer however the bytes come."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.lives import LIVES, engine_of, kept_logs, name_of
from vigil.diagnosis.blocks import BLOCK_BYTES, LINE_BYTES, Blocks
from vigil.diagnosis.postmortem import Log, Postmortem, Story
from vigil.engines import TABLES

TABLES_ALL = tuple(TABLES.values())
DEATH = b"error: invalid argument: --no-such-flag\n"
READY = b"0.00.100.000 I srv  llama_server: listening on http://127.0.0.1:8080\n"


def read(*pieces: bytes) -> Story:
    postmortem = Postmortem(TABLES_ALL, Log(file="x.log"))
    for piece in pieces:
        postmortem.feed(piece)
    return postmortem.close()


@pytest.mark.parametrize("path", kept_logs(), ids=name_of)
def test_lives_of_a_real_log_are_counted(path: Path) -> None:
    assert read(path.read_bytes()).attempts == LIVES.get(name_of(path), 1)


@pytest.mark.parametrize("path", kept_logs(), ids=name_of)
def test_engine_of_a_real_log_is_known(path: Path) -> None:
    story = read(path.read_bytes())
    assert story.engine in {engine_of(path), None}


@pytest.mark.parametrize("path", kept_logs(), ids=name_of)
def test_pieces_make_no_difference(path: Path) -> None:
    data = path.read_bytes()
    whole = read(data)

    assert read(*(data[at : at + 4093] for at in range(0, len(data), 4093))) == whole
    assert read(*(bytes([byte]) for byte in data[:60_000]), data[60_000:]) == whole


@pytest.mark.parametrize("path", kept_logs(), ids=name_of)
def test_flood_behind_the_first_line_does_not_hide_the_cause(path: Path) -> None:
    data = path.read_bytes()
    alone = read(data)
    first, newline, rest = data.partition(b"\n")
    dull = b"".join(b"a line that says nothing, number %d\n" % number for number in range(60_000))
    story = read(first + newline + dull + rest)

    assert story.attempts == alone.attempts
    assert (story.cause and story.cause.fingerprint) == (alone.cause and alone.cause.fingerprint)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([DEATH, READY, b"x" * 300 + b"\n", b"50%\r75%\r", b"\n", b"\xff\x00\n", b"usage: x\n"])),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_any_pieces_of_any_lines_read_the_same(lines: list[bytes], sizes: list[int]) -> None:
    data = b"".join(lines)
    pieces, at = [], 0
    while at < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[at : at + size])
        at += size

    assert read(*pieces) == read(data)


def test_blocks_are_the_same_in_any_pieces() -> None:
    data = b"short\n" * 3 + b"y" * (2 * BLOCK_BYTES) + b"\n" + b"z" * 100 + b"\nlast"

    def blocks(size: int) -> list[bytes]:
        made = Blocks()
        found = [block for at in range(0, len(data), size) for block in made.feed(data[at : at + size])]
        return found + list(made.close())

    assert blocks(len(data)) == blocks(1000) == blocks(BLOCK_BYTES)
    assert sum(map(len, blocks(1000))) < LINE_BYTES + BLOCK_BYTES


def test_line_of_a_gigabyte_takes_the_memory_of_a_line() -> None:
    postmortem = Postmortem(TABLES_ALL)
    postmortem.feed(DEATH)
    for _ in range(64):
        postmortem.feed(b"y" * BLOCK_BYTES)
    postmortem.feed(b"\n")
    story = postmortem.close()

    assert story.cause is not None
    assert story.cause.line == 1


def test_text_behind_the_first_64_kib_of_a_line_is_not_read() -> None:
    assert read(b"y" * LINE_BYTES + DEATH).cause is None
    assert read(b"y" * LINE_BYTES + b"\n" + DEATH).cause is not None


def test_numbers_count_newlines_and_not_updates_of_a_bar() -> None:
    story = read(b"start\n" + b"\r".join(b"%d%%" % number for number in range(100)) + b"\n" + DEATH)
    assert story.cause is not None
    assert story.cause.line == 3


def test_lines_around_are_those_of_the_log() -> None:
    filler = [b"line %d\n" % number for number in range(1, 1001)]
    story = read(*filler[:500], DEATH, *filler[500:])
    assert story.cause is not None
    assert story.cause.line == 501
    assert [number for number, _ in story.cause.around] == list(range(498, 505))


def test_thousands_of_lives_are_counted() -> None:
    story = read(*([DEATH] * 3000))
    assert (story.attempts, story.alike) == (3000, 3000)


def test_life_that_just_began_leaves_the_word_to_the_one_before() -> None:
    life = (
        b"kubelet: Started container vllm\nINFO 09-19 [__init__.py:241] Automatically detected platform rocm.\n" + DEATH
    )
    story = read(life, life, b"kubelet: Started container vllm\n")
    assert story.attempts == 3
    assert story.cause is not None
    assert story.cause.code == "FLAG001"


BANNER = b"vllm-1  | INFO 08-01 10:00:01 api_server.py:585] vLLM API server version 0.6.3\n"
LOADS = b"vllm-1  | INFO 08-01 10:00:05 model_runner.py:1056] Starting to load model x...\n"
SERVES = b"vllm-1  | INFO:     Application startup complete.\n"
UNKNOWN = b"vllm-1  | api_server.py: error: unrecognized arguments: --foo\n"
STOPPED = b"vllm-1 exited with code 0\n"


@pytest.mark.parametrize(
    ("lives", "code"),
    [
        ((BANNER, LOADS, STOPPED, BANNER, LOADS, STOPPED), "LOOP001"),
        ((BANNER, STOPPED, BANNER, STOPPED, BANNER), "LOOP001"),
        ((BANNER, STOPPED, BANNER, STOPPED, BANNER, UNKNOWN), "FLAG001"),
        ((BANNER, LOADS, STOPPED, BANNER, LOADS), None),
        ((BANNER, STOPPED, BANNER, STOPPED, BANNER, SERVES), None),
        ((BANNER, SERVES, STOPPED, BANNER, SERVES, STOPPED), None),
    ],
)
def test_stopped_again_and_again_while_it_starts_is_a_loop(lives: tuple[bytes, ...], code: str | None) -> None:
    story = read(*lives)
    assert story.attempts == lives.count(BANNER)
    assert (story.cause.code if story.cause else None) == code


TAKEN = (
    b"vllm-1  | torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
    b"port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"
)
ALONE = b"vllm-1  | torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"


@pytest.mark.parametrize(
    ("lives", "code"),
    [
        ((BANNER, TAKEN, STOPPED, BANNER, ALONE, STOPPED), "PORT001"),
        ((BANNER, ALONE, STOPPED, BANNER, TAKEN, STOPPED), "DIST001"),
        ((BANNER, UNKNOWN, STOPPED, BANNER, ALONE, STOPPED), "DIST001"),
        ((BANNER, UNKNOWN, STOPPED, BANNER, TAKEN, STOPPED), "FLAG001"),
    ],
)
def test_taken_port_is_told_by_the_life_that_explains_it(lives: tuple[bytes, ...], code: str) -> None:
    story = read(*lives)
    assert story.attempts == 2
    assert story.cause is not None
    assert story.cause.code == code


def test_server_that_said_goodbye_and_says_hello_lives_twice() -> None:
    banner = b"INFO 08-01 1%d:00:01 api_server.py:585] vLLM API server version 0.6.3\n"
    bye = b"INFO:     Finished server process [1]\n"
    assert read(banner % 0, bye, banner % 1, bye).attempts == 2


SCARY = (
    b"WARNING huggingface_hub: 401 Client Error: Unauthorized for url: https://huggingface.co/api; retrying with cached copy",
    b"[Errno 98] error while attempting to bind on address ('0.0.0.0', 9090): address already in use (metrics exporter)",
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    b"RuntimeError: CUDA error: an illegal memory access was encountered",
)


@pytest.mark.parametrize("scary", SCARY)
def test_scary_line_of_a_server_that_goes_on_serving_is_no_cause(scary: bytes) -> None:
    """A user's prompt, a retry, an exporter beside it: hundreds of answers afterwards say that nothing died of it."""
    start = next(path for path in kept_logs() if name_of(path) == "vllm/ok-eager").read_bytes()
    start = start[: start.index(b"Application startup complete.") + 30].rpartition(b"\n")[0] + b"\n"
    served = b'(APIServer pid=7) INFO:     127.0.0.1:40110 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'

    assert read(start, served * 30, scary + b"\n", served * 300).cause is None


def test_empty_log_has_no_life() -> None:
    story = read(b"")
    assert (story.attempts, story.cause, story.stuck_in) == (0, None, None)


def test_keys_in_a_log_are_not_told() -> None:
    story = read(b"ValueError: bad token hf_plantedTokenABCDEFGHIJ\n")
    assert story.cause is not None
    assert "planted" not in str(story)
