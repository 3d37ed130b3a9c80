"""speculators as the trainer: what it is given, what is taken over of it, and what is said where it cannot be.

Its command itself runs where VIGIL_SPECULATORS_PYTHON names a Python that has it; elsewhere a program in its place reads
what it would be given and answers as it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from vigil.errors import UsageError, VigilError
from vigil_draft.learn import folder
from vigil_draft.learn.order import Plan
from vigil_draft.learn.speculators_lines import Lines
from vigil_draft.learn.speculators_run import launch, version_in
from vigil_draft.states.target import Target

SMALL = ["--draft-vocab", "128", "--length", "64", "--tokens-per-step", "512", "--lr", "2e-3", "--ttt", "3"]
PLAYED = """#!{python}
import json, sys
from pathlib import Path
if sys.argv[1] == "-c":
    print("{version}")
    sys.exit()
import torch
from safetensors.torch import save_file
job = json.loads(Path(sys.argv[3]).read_text())
said = job["arguments"]
of = lambda name: said[said.index(name) + 1]
print("loading the verifier", file=sys.stderr)
if {broken}:
    print("Traceback (most recent call last):\\nValueError: no such thing", file=sys.stderr)
    sys.exit(1)
config = json.loads(Path(of("--draft-config")).read_text())
width, inner, kv = config["hidden_size"], config["intermediate_size"], config["head_dim"] * config["num_key_value_heads"]
shapes = {{"fc": (width, 3 * width), "lm_head": (len(job["words"]), width), "norm": (width,)}}
for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
    shapes["layers.0." + name] = (width,)
for name, rows in (("q", width), ("k", kv), ("v", kv)):
    shapes["layers.0.self_attn." + name + "_proj"] = (rows, 2 * width)
shapes["layers.0.self_attn.o_proj"] = (width, width)
shapes |= {{"layers.0.mlp.gate_proj": (inner, width), "layers.0.mlp.up_proj": (inner, width)}}
shapes["layers.0.mlp.down_proj"] = (width, inner)
tensors = {{name + ".weight": torch.full(shape, 0.5, dtype=torch.bfloat16) for name, shape in shapes.items()}}
words = torch.tensor(job["words"])
tensors |= {{"d2t": words - torch.arange(len(words)), "embed_tokens.weight": torch.zeros(job["vocabulary"], width)}}
to = Path(of("--save-path")) / "0"
to.mkdir(parents=True)
save_file(tensors, to / "model.safetensors")
for step in range(1, int(of("--max-steps")) + 1 if "--max-steps" in said else 42, 10):
    accuracy = {{f"{{kind}}_acc_{{n}}": 0.5 for kind in ("full", "cond") for n in range(3)}}
    measured = {{"tokens": 500, "peak_gib": None, "loss": 1 / step, **accuracy}}
    print(json.dumps({{"at": 100 + step / 10, "step": step, **measured}}), flush=True)
print(json.dumps({{"done": True, "device": "cpu", "arguments": said, "torch": "2.11.0"}}))
"""


@pytest.fixture(scope="module")
def states(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("states") / "states"
    given = ["--target", str(toy / "target"), "--data", str(toy / "data"), "--length", "64"]
    subprocess.run(
        [sys.executable, "-m", "vigil_draft", "extract", *given, "--out", str(out)], check=True, capture_output=True
    )
    return out


def played(home: Path, version: str = "0.9.0", *, broken: bool = False) -> str:
    program = home / "python"
    program.write_text(PLAYED.format(python=sys.executable, version=version, broken=broken))
    program.chmod(0o755)
    return str(program)


def plan(toy: Path, out: Path, states: Path | None, **more: Any) -> Plan:
    shape = {"draft_vocab": 128, "length": 64, "tokens_per_step": 512, "lr": 2e-3, "ttt": 3}
    data, kept = str(toy / "data"), str(states) if states else None
    return Plan(target=str(toy / "target"), data=data, out=str(out), states=kept, **{**shape, **more})


def test_its_draft_is_a_folder_that_engines_know_with_where_it_came_from(
    toy: Path, states: Path, tmp_path: Path
) -> None:
    out = tmp_path / "draft"
    launch(plan(toy, out, states, epochs=2), played(tmp_path), [])
    tensors = load_file(out / "model.safetensors")
    assert tensors["midlayer.self_attn.q_proj.weight"].shape == (64, 128)
    assert not any("embed" in name or name.startswith("layers.") for name in tensors)
    target = Target(str(toy / "target"), torch.device("cpu"), torch.float32)
    draft, _ = folder.read(out, target)
    assert float(draft.fc.weight[0, 0].detach()) == 0.5
    told = json.loads((out / "vigil.json").read_text())
    assert told["made_by"] == "vigil draft train --trainer speculators"
    assert told["versions"] == {"speculators": "0.9.0", "torch": "2.11.0"}
    assert not (out / "training" / "speculators").exists()
    line = json.loads((out / "record.jsonl").read_text())
    assert (line["step"], line["tokens_per_s"], line["acceptance_length_k3"]) == (41, 5000, 2.5)


def test_it_is_given_the_profile_that_all_engines_load_and_the_data_as_often_as_it_is_to_see_it(
    toy: Path, states: Path, tmp_path: Path
) -> None:
    out = tmp_path / "draft"
    with pytest.raises(VigilError):
        launch(plan(toy, out, states, epochs=5), played(tmp_path, broken=True), ["--lr=7"])
    job = json.loads((out / "training" / "speculators" / "job.json").read_text())
    said = " ".join(job["arguments"])
    for flag in (
        "--no-norm-before-residual",
        "--no-norm-before-fc",
        "--no-norm-output",
        "--target-layer-ids 2 3 4",
        "--lr=7",
    ):
        assert flag in said
    assert (job["times"], len(job["words"]), len(job["files"])) == (5, 128, 96)


def test_minutes_become_steps_by_the_speed_of_a_short_run(toy: Path, states: Path, tmp_path: Path) -> None:
    record = launch(plan(toy, tmp_path / "draft", states, minutes=0.5), played(tmp_path), [])
    assert record["step"] == record["of"] == 301  # it says that ten steps took a second


@pytest.mark.parametrize(
    ("version", "said"),
    [("", "has no speculators"), ("0.8.1", "has speculators 0.8.1"), ("1.0.0", "has speculators 1.0.0")],
)
def test_where_it_is_missing_or_of_another_series_one_line_says_so(
    toy: Path, states: Path, tmp_path: Path, version: str, said: str
) -> None:
    with pytest.raises(UsageError, match=rf"{said}: pip install 'speculators==0.9"):
        launch(plan(toy, tmp_path / "draft", states), played(tmp_path, version), [])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"states": None}, "reads --states"),
        ({"nproc": 2}, "in one process"),
        ({"length": 32}, "length 64, not 32"),
    ],
)
def test_what_it_cannot_do_is_one_line(
    toy: Path, states: Path, tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    asked = plan(toy, tmp_path / "draft", **{"states": states, **more})
    with pytest.raises(UsageError, match=said) as caught:
        launch(asked, played(tmp_path), [])
    assert "\n" not in str(caught.value)


def test_a_python_that_is_not_there_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"--trainer-python /nowhere/python: No such file or directory"):
        version_in("/nowhere/python")


def test_its_death_is_told_by_its_last_words_and_where_all_of_them_are(toy: Path, states: Path, tmp_path: Path) -> None:
    out = tmp_path / "draft"
    with pytest.raises(VigilError) as caught:
        launch(plan(toy, out, states), played(tmp_path, broken=True), [])
    where = f"{out}/training/speculators.log"
    assert str(caught.value) == f"speculators ended with 1: ValueError: no such thing (all of it: {where})"


def test_the_record_is_of_means_over_ten_seconds(tmp_path: Path) -> None:
    lines = Lines(Plan(target="t", data="d", out=str(tmp_path), ttt=1), 31)
    for step, at, right in ((1, 50.0, 0.1), (11, 55.0, 0.2), (21, 60.0, 0.4), (31, 65.0, 0.5)):
        lines.add(
            {
                "at": at,
                "step": step,
                "tokens": 8,
                "peak_gib": 1.0,
                "loss": 2.0,
                "full_acc_0": right,
                "cond_acc_0": right,
            }
        )
    last = lines.write()
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert [line["joint"] for line in record] == [[0.3], [0.5]]
    assert [line["tokens_per_s"] for line in record] == [16, 16]
    assert last == record[-1] == {**last, "step": 31, "seconds": 15.5, "acceptance_length": 1.5}


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("VIGIL_SPECULATORS_PYTHON"), reason="VIGIL_SPECULATORS_PYTHON names none")
def test_its_own_command_trains_a_draft_that_is_accepted(toy: Path, states: Path, tmp_path: Path) -> None:
    out = tmp_path / "draft"
    asked = [
        "train",
        "--target",
        str(toy / "target"),
        "--data",
        str(toy / "data"),
        "--out",
        str(out),
        *SMALL,
        "--epochs",
        "16",
    ]
    other = [
        "--trainer",
        "speculators",
        "--trainer-python",
        os.environ["VIGIL_SPECULATORS_PYTHON"],
        "--states",
        str(states),
    ]
    subprocess.run([sys.executable, "-m", "vigil_draft", *asked, *other], check=True, capture_output=True)
    held = ["--target", str(toy / "target"), "--data", str(toy / "held-out"), "--length", "64", "--k", "3", "--json"]
    asked = [sys.executable, "-m", "vigil_draft", "eval", str(out), *held]
    told = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    assert told["acceptance_length"]["3"]["served"]["with_bonus"] > 1.5
