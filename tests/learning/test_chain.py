"""From data to a draft and its estimate, over the command line; killed and resumed; with two processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from speculate import speculate

from vigil_draft.data import prepared
from vigil_draft.evaluate.acceptance import served
from vigil_draft.evaluate.guesses import guess
from vigil_draft.evaluate.report import evaluate
from vigil_draft.learn import folder
from vigil_draft.states.batch import Corpus
from vigil_draft.states.target import Target

SMALL = ["--draft-vocab", "128", "--length", "64", "--tokens-per-step", "512", "--lr", "2e-3", "--ttt", "3"]


def command(toy: Path, out: Path, *more: str) -> list[str]:
    given = ["--target", str(toy / "target"), "--data", str(toy / "data"), "--out", str(out)]
    return [sys.executable, "-m", "vigil_draft", "train", *given, *SMALL, *more]


def run(asked: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        asked, capture_output=True, text=True, timeout=150, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    return done


def record(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "record.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def trained(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "draft"
    said = run(command(toy, out, "--epochs", "12")).stderr
    (out.parent / "said").write_text(said)
    return out


def test_what_it_will_take_is_said_before_and_how_far_it_is_while_it_goes_on(trained: Path) -> None:
    said = [
        line for line in (trained.parent / "said").read_text().splitlines() if line and "Loading weights" not in line
    ]
    assert said[0].startswith(
        "96 documents, 2,924 tokens; 12 epochs, 72 steps of 512 tokens; disk: checkpoint 772.0 KiB, draft"
    )
    assert re.search(
        r"s a step, .* s of it for the target's states until they are kept: ends in about .*; memory .* MiB", said[1]
    )
    assert re.search(
        r"^step 72/72  \d+ tokens/s  loss .*  accuracy .*  acceptance length .* \(k 3\)  0\.0 s left$", said[-1]
    )
    assert (trained / "training/checkpoint.safetensors").stat().st_size == pytest.approx(772 * 1024, rel=0.02)


def test_a_draft_learns_and_is_a_folder_that_engines_know(trained: Path) -> None:
    last = record(trained)[-1]
    assert last["step"] == last["of"]
    assert last["joint"][0] > 0.3
    assert last["joint"] == sorted(last["joint"], reverse=True)
    tensors = load_file(trained / "model.safetensors")
    assert tensors["midlayer.self_attn.q_proj.weight"].shape == (64, 128)
    assert tensors["fc.weight"].shape == (64, 192)
    assert tensors["lm_head.weight"].dtype == torch.bfloat16
    words = tensors["d2t"] + torch.arange(128)
    assert torch.equal(tensors["t2d"].nonzero().squeeze(1), words)
    assert not any("embed" in name for name in tensors)
    config = json.loads((trained / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert config["tie_word_embeddings"] is False
    assert json.loads((trained / "vigil.json").read_text())["boundaries"] == [2, 3, 4]


def test_the_estimate_is_what_speculative_decoding_does(toy: Path, trained: Path) -> None:
    target = Target(str(toy / "target"), torch.device("cpu"), torch.float32)
    draft, _ = folder.read(trained, target)
    docs = prepared.read(toy / "held-out")
    found = guess(draft, target, Corpus(docs, 64, 0), 3, 8)
    runs = {each.document: each for each in found.answers}
    for number in range(6):
        span = slice(docs.starts[number], docs.starts[number + 1])
        tokens, first = list(docs.token_ids[span]), docs.loss_mask[span].index(1)
        said, steps = speculate(target, draft, tokens[:first], len(tokens) - first, 3)
        assert said == tokens[first:]
        assert served(runs[number], 3) == (len(said) - 1, steps)


def test_eval_says_both_lengths_and_the_same_twice(toy: Path, trained: Path) -> None:
    asked = [
        sys.executable,
        "-m",
        "vigil_draft",
        "eval",
        str(trained),
        "--target",
        str(toy / "target"),
        "--data",
        str(toy / "held-out"),
    ]
    told = json.loads(run([*asked, "--length", "64", "--json"]).stdout)
    assert told["answers_are_greedy"] == 1.0
    assert told["another_target"] is False
    assert 0.5 < told["coverage"] <= 1.0
    three = told["acceptance_length"]["3"]
    assert three["all_positions"]["with_bonus"] == pytest.approx(1 + sum(told["joint"][:3]), abs=1e-3)
    assert three["served"]["low"] <= three["served"]["with_bonus"] <= three["served"]["high"]
    assert three["served"]["without_bonus"] == pytest.approx(three["served"]["with_bonus"] - 1)
    assert run([*asked, "--length", "64", "--json"]).stdout == json.dumps(told) + "\n"


def test_eval_says_that_a_draft_was_trained_for_another_target(
    toy: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(toy / "target", other)
    weights = load_file(other / "model.safetensors")
    save_file({name: each + 1e-3 for name, each in weights.items()}, other / "model.safetensors", {"format": "pt"})
    told = evaluate(trained, str(other), toy / "held-out", k=2, length=64)
    assert told["another_target"] is True
    assert f"was trained for another target than {other}: its weights differ" in capsys.readouterr().err


def test_a_training_that_is_killed_goes_on_bit_for_bit(toy: Path, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(command(toy, whole, "--epochs", "4"))
    asked = command(toy, broken, "--epochs", "4", "--save-minutes", "0")
    for _ in range(2):
        child = subprocess.Popen(
            asked, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        before = (
            (broken / "training/checkpoint.safetensors").stat().st_mtime_ns
            if (broken / "training/checkpoint.safetensors").exists()
            else 0
        )
        while child.poll() is None and not (
            (broken / "training/checkpoint.safetensors").exists()
            and (broken / "training/checkpoint.safetensors").stat().st_mtime_ns != before
        ):
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert "goes on after step" in run(asked).stderr
    one, other = (
        load_file(whole / "training/checkpoint.safetensors"),
        load_file(broken / "training/checkpoint.safetensors"),
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()


def test_another_trainings_checkpoint_is_refused(toy: Path, trained: Path) -> None:
    done = subprocess.run(
        command(toy, trained, "--epochs", "13"), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode != 0
    assert "is of another training (epochs differ)" in done.stderr
    assert "Traceback" not in done.stderr


def test_two_processes_train_one_draft(toy: Path, tmp_path: Path) -> None:
    run(command(toy, tmp_path, "--epochs", "8", "--nproc", "2"))
    last = record(tmp_path)[-1]
    assert last["step"] == last["of"]
    assert last["joint"][0] > 0.2


def test_a_loss_that_is_no_number_ends_it_in_one_line(toy: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        command(toy, tmp_path, "--epochs", "4", "--lr", "1e30"),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode != 0
    assert "the gradient is no number" in done.stderr
    assert "Traceback" not in done.stderr
