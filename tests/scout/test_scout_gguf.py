"""Heads of GGUF files: whole, cut off, and made to hurt."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.scout import gguf


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tokens(count: int) -> bytes:
    return entry("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, count) + text("a") * count)


def tensor(name: str, elements: int, kind: int, offset: int) -> bytes:
    return text(name) + struct.pack("<IQIQ", 1, elements, kind, offset)


def a_file(path: Path, entries: list[bytes], tensors: list[bytes], data: int, version: int = 3) -> gguf.Gguf:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    head += bytes(-len(head) % 32)
    path.write_bytes(head + bytes(data))
    return gguf.read(str(path), path.stat().st_size)


LLAMA = [
    entry("general.architecture", 8, text("llama")),
    entry("llama.block_count", 4, struct.pack("<I", 30)),
    tokens(50),
]


def test_a_whole_file_says_what_it_is(tmp_path: Path) -> None:
    found = a_file(tmp_path / "m.gguf", LLAMA, [tensor("a", 64, 0, 0), tensor("b", 64, 8, 256)], 256 + 68)
    assert found.metadata == {"general.architecture": "llama", "llama.block_count": 30}
    assert found.lengths == {"tokenizer.ggml.tokens": 50}
    assert (found.tensors, found.trouble) == (2, None)
    assert found.wanted_bytes == (tmp_path / "m.gguf").stat().st_size


def test_data_that_are_cut_off_are_told_with_both_sizes(tmp_path: Path) -> None:
    found = a_file(tmp_path / "m.gguf", LLAMA, [tensor("a", 64, 0, 0)], 200)
    size = (tmp_path / "m.gguf").stat().st_size
    assert found.trouble == f"it has {size} of the {size + 56} bytes that its tensors need: it is cut off"


def test_a_file_cut_off_at_any_byte_of_its_head_is_told(tmp_path: Path) -> None:
    a_file(tmp_path / "m.gguf", LLAMA, [tensor("a", 64, 0, 0)], 256)
    data = (tmp_path / "m.gguf").read_bytes()
    for size in range(len(data)):
        (tmp_path / "m.gguf").write_bytes(data[:size])
        assert gguf.read(str(tmp_path / "m.gguf"), size).trouble, size


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1), "entries and"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1 << 60), "entries and"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "cut off"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry("a", 9, struct.pack("<IQ", 8, 1 << 60)), "a list of"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry("a", 9, struct.pack("<IQ", 4, 1 << 62)), "cut off"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry("a", 99, b""), "the type 99"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "its version is 1"),
        (b"GGML" + bytes(60), "no GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "pointer of Git LFS"),
    ],
)
def test_a_head_that_cannot_be_is_one_line(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "m.gguf").write_bytes(data)
    found = gguf.read(str(tmp_path / "m.gguf"), len(data))
    assert why in (found.trouble or "")
    assert len(found.trouble or "") < 300


def test_lists_within_lists_without_end_are_refused(tmp_path: Path) -> None:
    nested = struct.pack("<IQ", 9, 1) * 1000
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry("a", 9, nested)
    (tmp_path / "m.gguf").write_bytes(data)
    assert "a list of" in (gguf.read(str(tmp_path / "m.gguf"), len(data)).trouble or "")


def test_millions_of_empty_texts_end_soon(tmp_path: Path) -> None:
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry("a", 9, struct.pack("<IQ", 8, 2_900_000))
    with (tmp_path / "m.gguf").open("wb") as file:
        file.write(data)
        file.truncate(64 << 20)
    found = gguf.read(str(tmp_path / "m.gguf"), 64 << 20)
    assert found.trouble is None


@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "m.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + data)
    found = gguf.read(str(path), len(data) + 8)
    json.dumps([found.trouble, found.metadata, found.lengths], allow_nan=False)


def test_tokens_are_returned_in_order_and_none_of_a_file_without(tmp_path: Path) -> None:
    a_file(tmp_path / "m.gguf", LLAMA, [], 0)
    size = (tmp_path / "m.gguf").stat().st_size
    assert gguf.tokens(str(tmp_path / "m.gguf"), size) == [b"a"] * 50
    a_file(tmp_path / "n.gguf", LLAMA[:2], [], 0)
    assert gguf.tokens(str(tmp_path / "n.gguf"), (tmp_path / "n.gguf").stat().st_size) is None


@given(st.integers(0, 400), st.binary(max_size=40))
def test_tokens_of_a_file_that_was_written_over_give_an_answer(
    tmp_path_factory: pytest.TempPathFactory, at: int, over: bytes
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    a_file(path, LLAMA, [], 0)
    data = path.read_bytes()
    path.write_bytes(data[:at] + over + data[at + len(over) :])
    found = gguf.tokens(str(path), path.stat().st_size)
    assert found is None or all(isinstance(one, bytes) for one in found)
