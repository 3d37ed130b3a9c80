"""States from a server: equal to those in process, gone on with after a kill, and each way to be wrong in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
import torch
from safetensors.torch import load_file
from served_toy import Server, Toy
from transformers import AutoModelForCausalLM

from vigil.errors import UsageError, VigilError
from vigil_draft.states.asked import Asked
from vigil_draft.states.extract import extract
from vigil_draft.states.files import read_manifest
from vigil_draft.states.part import Part
from vigil_draft.states.served import vllm
from vigil_draft.states.served.extraction import Wanted, extract_served, there

LENGTH, SHARD = 32, 4
IDS = {"vllm": (2, 3, 4, 7), "sglang": (2, 3, 4, 6)}
"""Boundaries that each is asked for: the target has seven layers, and SGLang gives nothing after the last."""


@pytest.fixture(scope="module")
def target(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy target with a final norm that weighs: with weights of 1, as it is made, a norm twice is a norm once."""
    folder = tmp_path_factory.mktemp("weighed")
    whole = AutoModelForCausalLM.from_pretrained(toy / "target")
    torch.nn.init.normal_(whole.model.norm.weight, generator=torch.Generator().manual_seed(3))
    whole.save_pretrained(folder)
    return folder


class Base(NamedTuple):
    """What all tests here share: the target, its data, and what it really computes."""

    target: Path
    data: Path
    model: Toy


@pytest.fixture(scope="module")
def base(toy: Path, target: Path) -> Base:
    return Base(target, toy / "data", Toy(target))


@pytest.fixture(scope="module")
def whole(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The states in process."""
    out = tmp_path_factory.mktemp("states")
    extract(Asked(target=str(base.target), data=str(base.data), out=str(out), length=LENGTH, shard=SHARD))
    return out


def taken(base: Base, out: Path, server: Server, **more: object) -> list[str]:
    """Extract from a server; return what was told."""
    said: list[str] = []
    given = {"target": str(base.target), "data": str(base.data), "length": LENGTH, "shard": SHARD}
    asked = Asked(**{**given, "out": str(out), "by": server.engine, **more})
    wanted = Wanted(asked=asked, handed=server.handed, tell=said.append)
    try:
        anyio.run(extract_served, wanted, lambda: there(server.url, None, None))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return said


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_states_of_a_server_are_those_in_process(base: Base, whole: Path, tmp_path: Path, engine: str) -> None:
    out, handed = tmp_path / "out", tmp_path / "handed"
    handed.mkdir()
    with Server(base.model, engine, handed, ids=IDS[engine]) as server:
        said = taken(base, out, server)

    assert any("boundary 2 is the target's" in one and "next tokens follow" in one for one in said)
    assert list(handed.iterdir()) == []  # taken over
    ours, theirs = read_manifest(out), read_manifest(whole)
    differ = {name for name in ours if ours[name] != theirs[name]}
    assert differ <= {"states_by", "command", "versions"}
    assert ours["states_by"] == engine
    files = sorted(path.name for path in whole.glob("hs_*"))
    assert sorted(path.name for path in out.glob("hs_*")) == files
    for name in files:
        one, other = load_file(out / name), load_file(whole / name)
        assert {key: (each.dtype, each.shape) for key, each in one.items()} == {
            key: (each.dtype, each.shape) for key, each in other.items()
        }
        assert torch.equal(one["token_ids"], other["token_ids"])
        assert torch.equal(one["loss_mask"], other["loss_mask"])
        torch.testing.assert_close(one["hidden_states"], other["hidden_states"], rtol=3e-2, atol=3e-2)


WRONG = {
    ("vllm", "no flag"): r"hands no states over: start it with --speculative-config '.*\[2, 3, 4, 7\]",
    ("vllm", "layer"): r"other states than the target at boundary 2 \(off by 0\.[3-9].*: they are those of boundary 3",
    ("vllm", "shifted"): "other states than the target at boundary 2",
    ("vllm", "normed"): "after the final norm",
    ("vllm", "cached"): "its prefix cache leaves some out: start it with --no-enable-prefix-caching",
    ("vllm", "cuts"): r"read \d+ tokens of a document of \d+: it cuts",
    ("vllm", "NaN"): "no numbers",
    ("vllm", "context"): "context of 16 tokens, and documents have up to 32: give --length 15 or less",
    ("vllm", "path"): "strange name: /etc/passwd",
    ("vllm", "nothing written"): "give --handed its folder as this machine sees it",
    ("vllm", "other tokens"): "holds other tokens than were asked for",
    ("sglang", "no flag"): "start it with --enable-return-aux-hidden-states .* 1 2 3 5 ",
    ("sglang", "old"): "of a newer release",
    ("sglang", "chunks"): r"in chunks of 16, .*--chunked-prefill-size -1, or give --length 16 or less",
    ("sglang", "cached"): r"gave the states of 1 of \d+ tokens .*--disable-radix-cache",
    ("sglang", "cuts"): "it cuts or adds to prompts",
    ("sglang", "shifted"): "other states than the target at boundary 2",
    ("sglang", "NaN"): "no numbers",
}


@pytest.mark.parametrize(("engine", "fault"), WRONG)
def test_a_server_that_gives_something_else_is_refused_in_one_line(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, fault: str
) -> None:
    monkeypatch.setattr(vllm, "APPEARS_S", 0.05)
    with (
        Server(base.model, engine, tmp_path, fault, IDS[engine]) as server,
        pytest.raises(VigilError, match=WRONG[engine, fault]) as told,
    ):
        taken(base, tmp_path / "out", server)
    assert "\n" not in str(told.value)
    assert "hidden" not in str(told.value).replace("hidden_state", "").replace("hidden-state", "")  # the API key
    assert list((tmp_path / "out").glob("hs_*")) == []


def test_a_file_outside_of_the_folder_is_neither_read_nor_removed(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm, "APPEARS_S", 0.05)
    outside, handed = tmp_path / "elsewhere.safetensors", tmp_path / "handed"
    outside.write_bytes(b"kept")
    handed.mkdir()
    with (
        Server(base.model, "vllm", handed, "elsewhere") as server,
        pytest.raises(UsageError, match="give --handed its folder as this machine sees it"),
    ):
        taken(base, tmp_path / "out", server)
    assert outside.read_bytes() == b"kept"


def test_another_model_of_the_same_shape_is_refused(base: Base, tmp_path: Path) -> None:
    other = AutoModelForCausalLM.from_pretrained(base.target)
    for name, weight in other.named_parameters():
        if "layers.0." in name and weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.08)
    other.save_pretrained(tmp_path / "other")
    with (
        Server(Toy(tmp_path / "other"), "vllm", tmp_path) as server,
        pytest.raises(UsageError, match=r"at boundary 2 .*another model"),
    ):
        taken(base, tmp_path / "out", server)


def test_states_of_another_number_of_layers_are_refused(base: Base, tmp_path: Path) -> None:
    with (
        Server(base.model, "vllm", tmp_path, ids=(2, 3, 4)) as server,
        pytest.raises(UsageError, match=r"shape \[\d+, 3, 64\], not \[\d+, 4, 64\]: start it with"),
    ):
        taken(base, tmp_path / "out", server)


KEPT = r"\): no cause was found; finished shards are kept, the same command goes on"
WORDS = {"dies": r"gives no states any more \(dropped: .*" + KEPT, "broken": r"any more \(broken: 500: it broke" + KEPT}


@pytest.mark.parametrize("how", WORDS)
def test_a_server_that_dies_leaves_whole_shards_and_the_same_command_goes_on(
    base: Base, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    out = tmp_path / "out"
    with (
        Server(base.model, "vllm", tmp_path, how) as server,
        pytest.raises(VigilError, match=WORDS[how]),
    ):
        taken(base, out, server)
    kept = {path: path.stat().st_mtime_ns for path in out.glob("shard-*.json")}
    assert 0 < len(kept) < 24
    capsys.readouterr()
    with Server(base.model, "vllm", tmp_path) as server:
        taken(base, out, server)
    assert f"{len(kept)} of 24 shards are there" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(read_manifest(out)["boundaries"]) == 3


def test_an_extraction_that_is_killed_goes_on_to_the_same_bytes(base: Base, tmp_path: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}

    handed = tmp_path / "handed"
    handed.mkdir()
    with Server(base.model, "vllm", handed) as server:
        taken(base, tmp_path / "whole", server)
    out = tmp_path / "out"
    given = ["--target", str(base.target), "--data", str(base.data), "--out", str(out)]
    sizes = ["--length", str(LENGTH), "--shard", str(SHARD), "--handed", str(handed)]
    with Server(base.model, "vllm", handed, hold=40) as server:
        words = [sys.executable, "-m", "vigil_draft", "extract", *given, *sizes, "--served", server.url]
        child = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while not server.held.wait(0.1):
            assert child.poll() is None, child.communicate()[1]
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert 0 < len(list(out.glob("shard-*.json"))) < 24
    with Server(base.model, "vllm", handed) as server:
        taken(base, out, server)
    assert content(out) == content(tmp_path / "whole")


def test_states_in_process_are_not_gone_on_with_from_a_server(base: Base, whole: Path, tmp_path: Path) -> None:
    with (
        Server(base.model, "vllm", tmp_path) as server,
        pytest.raises(UsageError, match=r"another extraction \(states_by differ\)"),
    ):
        taken(base, whole, server)
    assert server.asked == 0


def test_a_part_of_the_target_computes_what_the_whole_does(base: Base) -> None:
    ids = torch.randint(3, 256, (40,), generator=torch.Generator().manual_seed(1))
    states, _ = base.model.of(ids.tolist())
    close = {"rtol": 3e-2, "atol": 3e-2}
    first = Part(base.target, 0, 3, words=True)
    torch.testing.assert_close(first.of_tokens(ids)[3].float(), states[:, 3], **close)
    torch.testing.assert_close(first.of_tokens(ids)[1].float(), states[:, 1], **close)
    last = Part(base.target, 6, 7)
    torch.testing.assert_close(last.of_states(states[:, 6]).float(), states[:, 7], **close)
    torch.testing.assert_close(last.normed(states[:, 7]).float(), base.model.normed(states[:, 7]), **close)
