"""Heads of safetensors files: whole, cut off, and made to hurt."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.scout import headers

ONE = {"a": {"dtype": "BF16", "shape": [4, 4], "data_offsets": [0, 32]}}


def written(path: Path, header: object, data: int, length: int | None = None) -> headers.Header:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + bytes(data))
    return headers.read(str(path), path.stat().st_size)


def test_a_whole_file_is_read_by_name_type_shape_and_place(tmp_path: Path) -> None:
    found = written(tmp_path / "m", ONE, 32)
    start = 8 + len(json.dumps(ONE))
    assert found.tensors == {"a": headers.Tensor("BF16", (4, 4), start, start + 32)}
    assert (found.trouble, found.wanted_bytes) == (None, start + 32)


def test_a_file_that_is_cut_off_is_told_with_both_sizes(tmp_path: Path) -> None:
    found = written(tmp_path / "m", ONE, 20)
    size = (tmp_path / "m").stat().st_size
    assert found.trouble == f"it has {size} of the {size + 12} bytes that its tensors need: it is cut off"
    assert found.wanted_bytes == size + 12


def test_a_file_that_ends_within_its_header_is_cut_off(tmp_path: Path) -> None:
    assert "its header alone ends at 5008" in (written(tmp_path / "m", b"{", 10, length=5000).trouble or "")


@pytest.mark.parametrize("length", [1 << 60, (1 << 64) - 1, 100_000_001])
def test_a_length_without_sense_is_one_line_and_nothing_is_read(tmp_path: Path, length: int) -> None:
    found = written(tmp_path / "m", b"{}", 100, length=length)
    assert found.trouble == f"its first eight bytes say a header of {length} bytes: it is no safetensors file"


def test_deep_json_is_one_line_and_ends_soon(tmp_path: Path) -> None:
    found = written(tmp_path / "m", b"[" * 8_000_000, 0)
    assert found.trouble is not None
    assert found.trouble.startswith("its header cannot be read")
    assert len(found.trouble) < 300


def test_a_number_without_end_is_not_computed(tmp_path: Path) -> None:
    header = b'{"a": {"dtype": "BF16", "shape": [' + b"9" * 1_000_000 + b'], "data_offsets": [0, 0]}}'
    assert "a number in it has 1000000 digits" in (written(tmp_path / "m", header, 0).trouble or "")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"dtype": "BF16", "shape": [4, 4], "data_offsets": [0, 31]}, "has 31 bytes"),
        ({"dtype": "BF16", "shape": [-4, 4], "data_offsets": [0, 32]}, "cannot be"),
        ({"dtype": "BF16", "shape": [4, 4], "data_offsets": [0, 32, 64]}, "cannot be"),
        ({"dtype": "BF16", "shape": [True], "data_offsets": [0, 2]}, "cannot be"),
        ({"dtype": "BF16", "shape": [4, 4]}, "no dtype, shape and place"),
        (["BF16"], "no dtype, shape and place"),
        ({"dtype": "BF16", "shape": [4, 4], "data_offsets": [8, 40]}, "begin at"),
    ],
)
def test_a_tensor_that_cannot_be_is_told(tmp_path: Path, told: object, why: str) -> None:
    assert why in (written(tmp_path / "m", {"a": told}, 40).trouble or "")


def test_two_tensors_that_share_bytes_are_told(tmp_path: Path) -> None:
    header = {**ONE, "b": {"dtype": "BF16", "shape": [4, 4], "data_offsets": [16, 48]}}
    assert "the data of b begin at" in (written(tmp_path / "m", header, 48).trouble or "")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"abc", "too few"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "pointer of Git LFS"),
        (b"<!DOCTYPE html>\n<html>", "web page"),
    ],
)
def test_what_is_no_safetensors_file_is_named(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "m").write_bytes(data)
    assert why in (headers.read(str(tmp_path / "m"), len(data)).trouble or "")


def test_a_type_that_we_do_not_know_is_no_trouble(tmp_path: Path) -> None:
    assert written(tmp_path / "m", {"a": {"dtype": "F3_NEW", "shape": [7], "data_offsets": [0, 3]}}, 3).trouble is None


@given(st.binary(max_size=300))
def test_any_bytes_give_an_answer(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "m"
    path.write_bytes(struct.pack("<Q", max(0, len(data) - 2)) + data)
    found = headers.read(str(path), len(data) + 8)
    json.dumps([found.trouble, found.wanted_bytes])
