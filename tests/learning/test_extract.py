"""States to files: what they hold, killed and gone on, by two processes, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from vigil.errors import UsageError
from vigil_draft.data import prepared
from vigil_draft.learn.launch import launch
from vigil_draft.learn.order import Plan
from vigil_draft.states.asked import Asked
from vigil_draft.states.batch import Corpus
from vigil_draft.states.begin import SPARE
from vigil_draft.states.extract import extract
from vigil_draft.states.files import LATER, FileStates
from vigil_draft.states.target import default_boundaries

LENGTH, SHARD = 32, 4


def asked(toy: Path, out: Path, **more: object) -> Asked:
    given = {"target": str(toy / "target"), "data": str(toy / "data"), "length": LENGTH, "shard": SHARD}
    return Asked(**{**given, "out": str(out), **more})


def command(toy: Path, out: Path, *more: str) -> list[str]:
    given = ["--target", str(toy / "target"), "--data", str(toy / "data"), "--out", str(out)]
    sizes = ["--length", str(LENGTH), "--shard", str(SHARD)]
    return [sys.executable, "-m", "vigil_draft", "extract", *given, *sizes, *more]


def started(command: list[str]) -> subprocess.Popen[str]:
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=surroundings)


def content(folder: Path) -> dict[str, bytes]:
    """All but the manifest, which says the command."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def training(toy: Path, out: Path, states: str | None, length: int = LENGTH) -> Plan:
    given = {"target": str(toy / "target"), "data": str(toy / "data"), "out": str(out), "states": states}
    return Plan(**given, length=length, epochs=2, draft_vocab=128, ttt=2, tokens_per_step=512, lr=2e-3)


@pytest.fixture(scope="module")
def whole(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("states")
    extract(asked(toy, out))
    return out


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    out = tmp_path / "copy"
    out.mkdir()
    for path in whole.iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    return out


def test_a_file_holds_what_speculators_reads(toy: Path, whole: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(toy / "target", dtype=torch.float32).eval()
    docs = prepared.read(toy / "data")
    for number in (0, 5, 95):
        found = load_file(whole / f"hs_{number}.safetensors")
        tokens = list(docs.token_ids[docs.starts[number] : docs.starts[number + 1]])[:LENGTH]
        assert {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in found.items()} == {
            "hidden_states": (torch.bfloat16, (len(tokens), 4, 64)),
            "token_ids": (torch.int64, (len(tokens),)),
            "loss_mask": (torch.bool, (len(tokens),)),
        }
        assert found["token_ids"].tolist() == tokens
        with torch.no_grad():
            said = model(torch.tensor([tokens]), output_hidden_states=True)
            of_layers = torch.stack([said.hidden_states[k][0] for k in default_boundaries(7)], dim=1)
            close = {"rtol": 1e-2, "atol": 1e-2}  # bf16
            torch.testing.assert_close(found["hidden_states"][:, :3].float(), of_layers, **close)
            last = found["hidden_states"][:, 3].float()
            torch.testing.assert_close(model.model.norm(last), said.hidden_states[7][0], rtol=2e-2, atol=2e-2)
            assert not torch.allclose(last, said.hidden_states[7][0], **close)  # the norm does something


def test_an_extraction_that_is_killed_goes_on_to_the_same_bytes(toy: Path, whole: Path, tmp_path: Path) -> None:
    """A pipe that nobody reads stands where the next file is written, so that the kill comes before it is whole."""
    moments = {
        "manifest.json": [],
        "hs_20.safetensors": ["shard-00004.json"],
        "shard-00010.json": [f"hs_{number}.safetensors" for number in range(40, 44)],
    }
    for writing, written in moments.items():
        half = tmp_path / f"{writing}.new"
        half.unlink(missing_ok=True)
        os.mkfifo(half)
        child = started(command(toy, tmp_path))
        assert child.stderr is not None
        while "shards are there" not in child.stderr.readline() and child.poll() is None:
            pass
        while child.poll() is None and not all((tmp_path / name).exists() for name in written):
            time.sleep(0.001)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert not (tmp_path / writing).exists()
        half.unlink()
        half.write_bytes(b"half")
    assert len(list(tmp_path.glob("shard-*.json"))) == 10
    extract(asked(toy, tmp_path))
    assert content(tmp_path) == content(whole)


def test_two_processes_write_the_same_files_and_go_on(toy: Path, whole: Path, copy: Path) -> None:
    for number in (1, 2, 3, 6, 7, 20):
        (copy / f"shard-{number:05d}.json").unlink()
        (copy / f"hs_{number * SHARD}.safetensors").unlink()
    child = started(command(toy, copy, "--nproc", "2"))
    _, said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert "18 of 24 shards are there" in said
    assert content(copy) == content(whole)


def test_a_cut_or_missing_file_is_extracted_again(toy: Path, whole: Path, copy: Path, capsys) -> None:
    (copy / "hs_3.safetensors").write_bytes(b"cut")
    (copy / "hs_40.safetensors").unlink()
    (copy / "shard-00020.json").write_text("{")
    extract(asked(toy, copy))
    said = capsys.readouterr().err
    assert "21 of 24 shards are there" in said
    assert re.search(r"about \d+\.\d min: \d+ tokens/s a process", said)
    assert content(copy) == content(whole)


@pytest.mark.parametrize("damage", ["changed", "missing", "record", "manifest"])
def test_damage_is_told_in_one_line_when_it_is_read(toy: Path, copy: Path, damage: str) -> None:
    path = copy / {"record": "shard-00020.json", "manifest": "manifest.json"}.get(damage, "hs_3.safetensors")
    if damage == "changed":
        path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    elif damage == "missing":
        path.unlink()
    else:
        path.write_text("{")
    with pytest.raises(UsageError, match=r"sha256 is not|No such file|cannot be read|can be read") as told:
        FileStates(copy, Corpus(prepared.read(toy / "data"), LENGTH, 0), {}).document(3)
    assert str(copy) in str(told.value)
    assert "\n" not in str(told.value)


def test_another_extractions_folder_is_refused_and_left_as_it_is(toy: Path, whole: Path, copy: Path) -> None:
    with pytest.raises(UsageError, match=r"another extraction \(data_sha256, documents, shards differ\)"):
        extract(asked(toy, copy, data=str(toy / "held-out"), nproc=2))
    other = copy.parent / "other"
    other.symlink_to(toy / "target")
    with pytest.raises(UsageError, match=r"another extraction \(target differ\)"):
        extract(asked(toy, copy, target=str(other)))
    (copy / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match="not extracted states"):
        extract(asked(toy, copy))
    assert content(copy) == content(whole)


def test_states_of_another_target_at_the_same_path_are_refused(toy: Path, tmp_path: Path) -> None:
    target, out = tmp_path / "target", tmp_path / "states"
    shutil.copytree(toy / "target", target)
    extract(asked(toy, out, target=str(target)))
    held = json.loads((out / "manifest.json").read_text())["target_identity"]
    assert set(held) == {"config_sha256", "weights_sha256"}
    weights = load_file(target / "model.safetensors")
    save_file({name: each + 1e-3 for name, each in weights.items()}, target / "model.safetensors", {"format": "pt"})
    plan = replace(training(toy, tmp_path / "draft", str(out)), target=str(target))
    with pytest.raises(UsageError, match=r"states of another target than the one given .*: its weights differ"):
        launch(plan)
    with pytest.raises(UsageError, match=r"begun with another target at .*: its weights changed"):
        extract(asked(toy, out, target=str(target)))


def test_states_that_do_not_say_their_target_are_taken(toy: Path, copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    kept = {name: value for name, value in manifest.items() if name not in LATER}
    (copy / "manifest.json").write_text(json.dumps(kept))
    extract(asked(toy, copy))
    identity = {"weights_sha256": "another"}
    FileStates(copy, Corpus(prepared.read(toy / "data"), LENGTH, 0), {}, identity).document(3)


def test_data_of_another_tokenizer_is_refused(toy: Path, tmp_path: Path) -> None:
    target, data = tmp_path / "target", tmp_path / "data"
    shutil.copytree(toy / "target", target)
    (target / "tokenizer.json").write_text("{}")
    data.mkdir()
    docs = prepared.documents([([5, 6, 7, 8], [False, True, True, True])])
    told = {"asked": {"target": {"tokenizer_sha256": "0" * 64}}}
    prepared.write_manifest(data, [prepared.write_shard(data, 0, docs)], told)
    with pytest.raises(UsageError, match="prepared with another tokenizer than that of"):
        extract(asked(toy, tmp_path / "out", data=str(data), target=str(target)))


def test_a_disk_that_is_too_small_is_refused_before_the_start(toy: Path, whole: Path, tmp_path: Path) -> None:
    needed = sum(path.stat().st_size for path in whole.glob("hs_*")) + SPARE
    with pytest.raises(UsageError, match=r"GB are needed and .* GB are free"):
        extract(asked(toy, tmp_path), free=needed - 4096)
    assert list(tmp_path.iterdir()) == []


def test_a_shard_without_a_token_that_counts_is_finished_without_files(toy: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    docs = prepared.documents([([5, 6, 7, 8], [False] * 4), ([5, 6, 7, 8], [False, True, True, True])])
    prepared.write_manifest(data, [prepared.write_shard(data, 0, docs)], {})
    extract(asked(toy, tmp_path / "out", data=str(data), shard=1))
    assert [path.name for path in (tmp_path / "out").glob("hs_*")] == ["hs_1.safetensors"]


def test_training_from_files_is_training_from_the_target(toy: Path, whole: Path, tmp_path: Path) -> None:
    told = []
    for name, states in (("target", None), ("files", str(whole))):
        launch(training(toy, tmp_path / name, states))
        lines = map(json.loads, (tmp_path / name / "record.jsonl").read_text().splitlines())
        told.append([[line["step"], line["loss"], *line["joint"]] for line in lines if "loss" in line])
    assert told[0][-1][0] == 12
    for one, other in zip(*told, strict=True):
        assert other == pytest.approx(one, rel=1e-2)  # files hold bf16, the target computes in float32 on the CPU


def test_training_refuses_files_that_are_cut_shorter(toy: Path, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cut to 32 tokens: give --length 32 or less"):
        launch(training(toy, tmp_path, str(whole), length=64))
