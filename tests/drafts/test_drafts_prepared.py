"""Prepared data: what is written is read, and nothing else is."""

from pathlib import Path

import pytest

from vigil.errors import UsageError
from vigil_draft.data import prepared


def write(folder: Path) -> None:
    first = prepared.documents([([5, 6, 7], [False, True, True]), ([8], [True])])
    second = prepared.documents([([9, 10], [False, False])])
    entries = [prepared.write_shard(folder, number, docs) for number, docs in enumerate([first, second])]
    prepared.write_manifest(folder, entries, {"target": "toy"})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path)
    docs = prepared.read(tmp_path)
    assert list(docs.token_ids) == [5, 6, 7, 8, 9, 10]
    assert list(docs.loss_mask) == [0, 1, 1, 1, 0, 0]
    assert list(docs.starts) == [0, 3, 4, 6]
    assert [e["loss_tokens"] for e in prepared.read_manifest(tmp_path)["shards"]] == [3, 0]


def test_a_changed_a_missing_and_no_shard_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no manifest\.json"):
        prepared.read(tmp_path)
    write(tmp_path)
    shard = tmp_path / "data-00001.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(UsageError, match="sha256 is not the manifest's"):
        prepared.read(tmp_path)
    shard.unlink()
    with pytest.raises(UsageError, match="the manifest names this shard"):
        prepared.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "other", "shards": []}'])
def test_another_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match=r"manifest\.json"):
        prepared.read(tmp_path)
