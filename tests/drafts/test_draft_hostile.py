"""Broken and hostile folders, a full disk, a kill: one line each, and never half a draft."""

import errno
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from drafts import make
from vigil_draft.convert.convert import convert
from vigil_draft.convert.wish import Wish
from vigil_draft.errors import DraftError, NotADraftError, RefusedError
from vigil_draft.formats.folders import read_folder
from vigil_draft.formats.writing import appearing
from vigil_draft.inspect.inspection import RELEASES, inspect
from vigil_draft.inspect.text import text_of

VIGIL = (sys.executable, "-m", "vigil", "draft")
KILLED = """
import os, signal, sys
from pathlib import Path
from vigil_draft.formats.writing import appearing
with appearing(Path(sys.argv[1]), 0) as beside:
    (beside / "model.safetensors").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
sys.argv[0] = "vigil"
from vigil.cli.app import main
main()
"""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def header(told: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(told).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(begin: int, end: int, shape: list[int]) -> dict[str, Any]:
    return {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}


HOSTILE = {
    "2^60": struct.pack("<Q", 1 << 60) + b"{}",
    "deep": struct.pack("<Q", 200_000) + b'{"a":' + b"[" * 199_994 + b"}",
    "overlap": header({"a": tensor(0, 8, [4]), "b": tensor(4, 12, [4])}, bytes(12)),
    "gap": header({"a": tensor(0, 8, [4]), "b": tensor(16, 24, [4])}, bytes(24)),
    "beyond": header({"a": tensor(0, 1 << 50, [1 << 49])}),
    "negative": header({"a": tensor(-8, 8, [4])}, bytes(8)),
    "huge shape": header({"a": tensor(0, 8, [1 << 62, 1 << 62])}, bytes(8)),
    "no json": struct.pack("<Q", 8) + b"\xff" * 8,
    "empty": b"",
    "pickle inside": pickle.dumps({"a": 1}),
    "a page": b"<!DOCTYPE html><html></html>",
    "a list": header([]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", list(HOSTILE))
def test_a_hostile_file_is_one_line_for_both(what: str, tmp_path: Path) -> None:
    folder = make.sglang().write(tmp_path / "d")
    (folder / "model.safetensors").write_bytes(HOSTILE[what])
    for look in (
        lambda: inspect(str(folder), None),
        lambda: convert(str(folder), tmp_path / "out", Wish(to="vllm"), None, ()),
    ):
        with pytest.raises(DraftError) as error:
            look()
        assert "model.safetensors" in str(error.value)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(DraftError):
        read_folder(folder)


def test_a_pickle_is_refused_and_never_loaded(tmp_path: Path) -> None:
    folder = make.sglang().write(tmp_path / "d")
    (folder / "model.safetensors").unlink()

    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "loaded"),))

    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    done = subprocess.run([*VIGIL, "inspect", str(folder)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "holds pickles alone (pytorch_model.bin): they are never loaded" in done.stderr
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("[" * 100_000, "cannot be read"),
        ("[]", "no JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "5000 digits"),
        ("{", "no JSON"),
    ],
)
def test_a_hostile_config_is_one_line(config: str, line: str, tmp_path: Path) -> None:
    folder = make.sglang().write(tmp_path / "d")
    (folder / "config.json").write_text(config)
    with pytest.raises(DraftError) as error:
        inspect(str(folder), None)
    assert line in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8}, "a model of its own"),
        ({"architectures": ["DFlashDraftModel"], "dflash_config": {}}, "a draft of another kind"),
    ],
)
def test_what_is_no_eagle3_draft_is_said_in_a_line(change: dict[str, Any], line: str, tmp_path: Path) -> None:
    draft = make.sglang()
    draft.config.update(change)
    if "num_hidden_layers" in change:
        draft.tensors = {**make.EMBEDDING, "layers.0.input_layernorm.weight": ("BF16", (64,))}
    with pytest.raises(NotADraftError, match=line):
        inspect(str(draft.write(tmp_path / "d")), None)


def test_nothing_at_all_is_said_in_a_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises((NotADraftError, DraftError)):
            inspect(str(path), None)
    with pytest.raises(NotADraftError, match="--target"):
        inspect(str(make.sglang().write(tmp_path / "d")), str(tmp_path / "nowhere"))


def test_names_and_settings_of_others_cannot_move_the_terminal(tmp_path: Path) -> None:
    draft = make.sglang()
    draft.tensors["\x1b[2Jevil.weight"] = ("BF16", (64,))
    draft.config["rope_parameters"] = {"rope_type": "\x1b]0;evil\x07"}
    shown = text_of(inspect(str(draft.write(tmp_path / "d")), None, RELEASES))
    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize("nasty", [{}, [], "x", -1, 0, 1 << 60, None, True, 1.5, ["x"], {"a": {}}])
def test_any_value_of_any_setting_gives_an_answer(nasty: Any, tmp_path: Path) -> None:
    draft = make.specforge()
    names = (
        *draft.config, "target_hidden_size", "eagle_aux_hidden_state_layer_ids", "norm_output", "rope_parameters", "rope_scaling",
        "layer_types", "sliding_window", "num_aux_hidden_states", "transformer_layer_config", "fc_norm",
    )  # fmt: skip
    for name in names:
        changed = make.specforge()
        changed.config[name] = nasty
        folder = changed.write(tmp_path / "d")
        try:
            text_of(inspect(str(folder), None, RELEASES))
            convert(str(folder), tmp_path / "out" / name, Wish(to="vllm"), None, ())
        except (DraftError, NotADraftError, RefusedError):
            continue


def test_a_kill_leaves_no_half_draft(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert [one.name.endswith(".part") for one in tmp_path.glob(".out.*")] == [True]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DraftError, match="the disk is full"), appearing(tmp_path / "out", 0):
        raise OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(DraftError, match="left: nothing was written"),
        appearing(tmp_path / "out", 1 << 60),
    ):
        raise AssertionError
    assert not list(tmp_path.glob("*out*"))


def test_a_write_that_ends_early_leaves_nothing(tmp_path: Path) -> None:
    folder = make.sglang().write(tmp_path / "d")
    words = ["draft", "convert", str(folder), str(tmp_path / "out"), "--to", "vllm"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "File too large" in done.stderr
    assert not list(tmp_path.glob("*out*")) + list(tmp_path.glob(".out*"))


def test_the_command_line_says_what_it_found(tmp_path: Path) -> None:
    folder = make.CASES["norm-before-residual"]().write(tmp_path / "d")
    told = subprocess.run(
        [*VIGIL, "inspect", str(folder), "--json"], capture_output=True, text=True, check=True, timeout=60
    )
    found = json.loads(told.stdout)
    assert (found["schema"], found["format"], len(found["readings"])) == (1, "sglang", len(RELEASES))
    refused = subprocess.run(
        [*VIGIL, "convert", str(folder), str(tmp_path / "out"), "--to", "sglang"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("vigil: not written: DRAFT005: SGLang 0.5.23 does not read norm_before_residual")
    old = subprocess.run(
        [*VIGIL, "inspect", str(make.speculators().write(tmp_path / "s")), "--engine", "sglang", "--engine-version", "0.5.10"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert old.returncode == 3
    assert "SGLang 0.5.10               ends in an error (DRAFT001)" in old.stdout
