"""What the scout sees of a host, and what the checks make of it: real sockets, folders and files, in this process."""

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from engine_homes import make_home, site_of
from vigil.plan import Plan
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Report, Severity
from vigil.preflight.seen_host import HostSeen
from vigil.preflight.sight import Sight
from vigil.scout import desk, gpus, machine, weights
from vigil.supervise.ahead import command_of, question_of, sight_of

VLLM = ("-m", "vllm.entrypoints.openai.api_server")
SGLANG = ("-m", "sglang.launch_server")


def look(*command: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> Report:
    """Return the report on a command, as `vigil check` makes it, with the scout in this process."""
    plan = Plan(command=tuple(map(str, command)), env=env or {}, cwd=str(cwd) if cwd else None)
    checked = command_of(plan)
    request = json.loads(json.dumps(question_of(plan, checked, deep=False)))
    seen = sight_of(json.loads(json.dumps(desk.answer(desk.question_of(request), ["host"]))))
    assert seen.troubles == ()
    return examine(checked, seen)


def found(report: Report, code: str) -> Finding:
    return next(one for one in report.findings if one.code == code)


def codes(report: Report) -> list[str]:
    return [one.code for one in report.findings]


# --- the port


def test_port_of_a_stranger_is_named_while_he_holds_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        taken = found(look("llama-server", "-m", "x.gguf", "--port", port), "PORT001")
    assert taken.text.startswith(f"port {port} is already taken by pid {os.getpid()} (")
    assert taken.advice == f"give another --port, or end it (kill {os.getpid()}) where it is not needed"
    assert "PORT001" not in codes(look("llama-server", "-m", "x.gguf", "--port", port))


def test_port_of_another_address_is_free() -> None:
    with socket.create_server(("127.0.0.2", 0)) as stranger:
        port = stranger.getsockname()[1]
        assert "PORT001" not in codes(look("llama-server", "-m", "x.gguf", "--port", port))


def test_port_inside_a_container_is_none_of_this_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        image = ("vllm/vllm-openai:v0.11.0", "--model", "M", "--port", stranger.getsockname()[1])
        assert codes(look("docker", "run", *image)) == []
        assert codes(look("docker", "run", "--network", "host", *image)) == ["PORT001"]
        assert codes(look("ssh", "gpu7", "vllm", "serve", "M", "--port", stranger.getsockname()[1])) == []


# --- the program


def test_edited_file_of_the_engine_is_named(tmp_path: Path) -> None:
    files = {"sglang/srt/eagle_worker.py": "FAST = True\n", "sglang/srt/eagle_worker_v2.py": "FAST = True\n"}
    python = make_home(tmp_path / "home", "sglang", "0.5.10", files=files)
    assert "EDIT001" not in codes(look(python, *SGLANG, "--model-path", "M"))
    (site_of(python) / "sglang" / "srt" / "eagle_worker.py").write_text("FAST = 1234567\n")
    edited = found(look(python, *SGLANG, "--model-path", "M"), "EDIT001")
    assert edited.severity is Severity.NOTE
    assert edited.text == "1 file of the installed sglang differs from its wheel: sglang/srt/eagle_worker.py"


def test_interpreter_without_the_engine_before_one_that_has_it(tmp_path: Path) -> None:
    first = make_home(tmp_path / "first", "requests", "2.32.0")
    second = make_home(tmp_path / "second", "sglang", "0.5.10")
    report = look("python", *SGLANG, "--model-path", "M", env={"PATH": f"{first.parent}:{second.parent}"})
    other = found(report, "PATH001")
    assert (other.severity, other.at) == (Severity.WARNING, 0)
    assert other.text == f"{first} will run, and sglang is not installed for it; {second} has sglang 0.5.10"
    assert report.corrected is not None
    assert report.corrected[0] == str(second)


def test_path_that_is_set_before_the_command_keeps_what_was_on_it(tmp_path: Path) -> None:
    first, second = (make_home(tmp_path / name, "vllm", name) for name in ("0.32.0", "0.11.0"))
    words = (f"PATH={first.parent}:$PATH", "python", *VLLM, "--model", "M")
    other = found(look(*words, env={"PATH": str(second.parent)}), "PATH001")
    assert other.text == f"{first} will run, with vllm 0.32.0; {second} has vllm 0.11.0"


def test_two_versions_of_the_engine_on_path(tmp_path: Path) -> None:
    first, second = (make_home(tmp_path / name, "vllm", name) for name in ("0.32.0", "0.11.0"))
    env = {"PATH": f"{first.parent}:{second.parent}"}
    other = found(look("python", *VLLM, "--model", "M", env=env), "PATH001")
    assert (other.severity, other.text) == (
        Severity.NOTE,
        f"{first} will run, with vllm 0.32.0; {second} has vllm 0.11.0",
    )
    assert "PATH001" not in codes(look(first, *VLLM, "--model", "M"))


def test_torch_that_lies_in_a_folder_beside_is_found(tmp_path: Path) -> None:
    first, second = (
        make_home(tmp_path / "a", "sglang", "0.5.23"),
        make_home(tmp_path / "b", "vllm", "0.32.0", torch="13.0"),
    )
    (site_of(first) / "beside.pth").write_text(f"# a comment\nimport os\n{site_of(second)}\n")
    plan = Plan(command=(str(first), *SGLANG, "--model-path", "M"))
    request = question_of(plan, command_of(plan), deep=False)
    program = machine.see(desk.question_of(request))["program"]
    assert program["torch"] == {"version": "2.9.1+cu130", "cuda": "13.0", "rocm": None}


# --- settings


def test_proxy_that_catches_localhost_is_told_without_its_password(tmp_path: Path) -> None:
    python = make_home(tmp_path / "home", "sglang", "0.5.10")
    proxy = {"http_proxy": "http://user:hunter2hunter2@proxy.example.com:3128", "no_proxy": "localhost,.example.com"}
    caught = found(look(python, *SGLANG, "--model-path", "M", env=proxy), "HANG001")
    assert "no_proxy=localhost,.example.com does not name 127.0.0.1" in caught.text
    assert "hunter2" not in caught.text + caught.advice
    for excepted in ("127.0.0.1", "*", "127.0.0.0/8", "10.0.0.1, 127.0.0.1"):
        fine = look(python, *SGLANG, "--model-path", "M", env={**proxy, "no_proxy": excepted})
        assert "HANG001" not in codes(fine)
    named = look(python, *SGLANG, "--model-path", "M", "--host", "localhost", env=proxy)
    assert "HANG001" not in codes(named)


def test_gated_model_wants_a_token_that_is_never_shown(tmp_path: Path) -> None:
    python = make_home(tmp_path / "home", "vllm", "0.32.0")
    command = (python, *VLLM, "--model", "meta-llama/Llama-3.1-8B-Instruct")
    clean = {"HOME": str(tmp_path), "HF_TOKEN": "", "HF_HOME": "", "HF_TOKEN_PATH": "", "XDG_CACHE_HOME": ""}
    gated = found(look(*command, env=clean), "AUTH001")
    assert (gated.severity, gated.at) == (Severity.FATAL, 4)
    secret = "hf_0123456789abcdefghij"
    told = json.dumps(machine.see(desk.question_of({"engine": "vllm", "env": {**clean, "HF_TOKEN": secret}})))
    assert (secret in told, json.loads(told)["settings"]["token"]) == (False, True)
    token = tmp_path / ".cache" / "huggingface" / "token"
    token.parent.mkdir(parents=True)
    token.write_text(secret)
    assert "AUTH001" not in codes(look(*command, env=clean))
    assert "AUTH001" not in codes(look(*command, "--download-dir", tmp_path, env={**clean, "HOME": "/nowhere"}))


# --- sizes


def test_size_of_a_model_is_that_of_the_files_that_are_loaded(tmp_path: Path) -> None:
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "consolidated.safetensors"):
        sized(tmp_path / name, 1000)
    sized(tmp_path / "pytorch_model.bin", 5000)
    assert weights.size_of(str(tmp_path)) == 2000
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 1900}, "weight_map": {}}')
    assert weights.size_of(str(tmp_path)) == 1900
    for part in (1, 2):
        sized(tmp_path / f"m-0000{part}-of-00002.gguf", 300)
    assert weights.size_of(str(tmp_path / "m-00001-of-00002.gguf")) == 600


def sized(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


HOSTILE = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 50_000,
    "no object": "[1, 2]",
    "numbers that are none": '{"num_hidden_layers": true, "num_attention_heads": -4, "head_dim": 1e308, "hidden_size": "x"}',
    "large numbers": '{"num_hidden_layers": 99999999999999999999999999, "num_attention_heads": 0}',
    "nothing": "",
    "bytes": "\0\udcff" * 10,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_config_tells_nothing_and_stops_nothing(tmp_path: Path, kind: str) -> None:
    python, model = make_home(tmp_path / "home", "vllm", "0.32.0"), tmp_path / "m"
    model.mkdir()
    (model / "config.json").write_bytes(HOSTILE[kind].encode("utf-8", "surrogateescape"))
    sized(model / "model.safetensors", 1 << 42 if kind == "deep" else 10)
    assert look(python, *VLLM, "--model", model).fatal == ()


def test_pipe_in_the_place_of_a_config_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    os.mkfifo(tmp_path / "model.safetensors.index.json")
    for part in (1, 2):
        os.mkfifo(tmp_path / f"model-0000{part}-of-00002.safetensors")
    assert weights.size_of(str(tmp_path)) == 0


# --- what hangs, what fails


def test_driver_that_never_answers_is_said_and_the_rest_is_there() -> None:
    never = threading.Event()
    late = machine.Late(lambda: {"gpus": [never.wait()]})
    assert late.within(0.01) is None
    never.set()
    assert late.within(10.0) == {"gpus": [True]}


def test_part_that_fails_is_said_and_the_rest_is_there() -> None:
    def fails() -> Any:
        raise RuntimeError("no")

    seen: dict[str, Any] = {"troubles": []}
    machine._put(seen, "memory", fails)
    machine._put(seen, "limits", machine.limits)
    assert seen["troubles"] == ["memory: RuntimeError: no"]
    assert set(seen["limits"]) == {"nofile", "nproc", "memlock"}


# --- words before the engine


def test_a_scheduler_sends_the_command_to_a_host_that_is_not_looked_at(tmp_path: Path) -> None:
    python = make_home(tmp_path / "home", "sglang", "0.5.10")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        words = ("srun", "--gres=gpu:8", python, *SGLANG, "--model-path", "M", "--port", stranger.getsockname()[1])
        report = look(*words)
        alone = look(*words, env={"SLURMD_NODENAME": "here", "SLURM_JOB_NUM_NODES": "1"})

    assert codes(report) == []
    assert (
        "behind srun: the port, GPUs, memory and limits of the host that it goes to were not looked at" in report.unseen
    )
    assert "PORT001" in codes(alone)  # a step of a job that has this host alone


def test_what_leads_into_a_container_is_said() -> None:
    report = look("docker", "run", "vllm/vllm-openai:v0.10.2", "--model", "M")

    assert "behind docker: the program, models, GPUs, memory and limits there were not looked at" in report.unseen


def test_a_value_that_is_called_like_a_container_leads_nowhere(tmp_path: Path) -> None:
    python = make_home(tmp_path / "home", "vllm", "0.32.0")

    assert not any(
        "behind" in one for one in look(python, *VLLM, "--model", "M", "--served-model-name", "docker").unseen
    )


def test_gpus_of_others_are_said_not_to_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind, vendor in (("0", "0x030000", "0x1a03"), ("1", "0x120000", "0x1002"), ("2", "0x020000", "0x8086")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "class").write_text(kind + "\n")
        (tmp_path / name / "vendor").write_text(vendor + "\n")
    monkeypatch.setattr(gpus, "DEVICES", str(tmp_path))

    assert gpus.others() == ["AMD"]  # neither the board's own display nor a network card
    seen = HostSeen(gpus=(), others=("AMD",))
    report = examine(command_of(Plan(command=("vllm", "serve", "M"))), Sight(host=seen))
    assert "GPUs of AMD: only NVIDIA's are looked at" in report.unseen
