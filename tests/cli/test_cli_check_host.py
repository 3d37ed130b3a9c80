"""What `vigil check` finds on this machine: real collisions, limits, full disks, and GPUs by a stand-in driver."""

import json
import os
import shutil
import socket
import subprocess
from typing import Any

import pytest
from vigil_cli import COMMAND, FAKES, Vigil

from engine_homes import make_home

VLLM = ("-m", "vllm.entrypoints.openai.api_server")
SGLANG = ("-m", "sglang.launch_server")


def check(
    vigil: Vigil, *command: object, before: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the report of `vigil check` on a command, run behind `before`."""
    done = subprocess.run(
        [*before, *COMMAND, "check", "--json", "--", *map(str, command)],
        env={**vigil.env, **(env or {})},
        cwd=vigil.folder,
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode in {0, 3}, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode == 3) == any(one["severity"] == "fatal" for one in report["findings"])
    return dict(report)


def found(report: dict[str, Any], code: str) -> dict[str, Any]:
    """Return the finding of a code."""
    return next(one for one in report["findings"] if one["code"] == code)


def codes(report: dict[str, Any]) -> list[str]:
    return [one["code"] for one in report["findings"]]


# --- the port


def test_port_of_a_server_of_ours_is_named_with_how_to_end_it(vigil: Vigil) -> None:
    vigil.up("--name", "first", fake=("--load", "0.1s", "--warmup", "0s"))
    report = check(vigil, "llama-server", "-m", "x.gguf", "--port", vigil.port)
    taken = found(report, "PORT001")
    assert (taken["severity"], taken["at"], taken["count"]) == ("fatal", 3, 2)
    assert f"port {vigil.port} is already taken by pid " in taken["text"]
    assert str(FAKES / "server.py") in taken["text"]
    assert taken["text"].endswith("which vigil started as first")
    assert taken["advice"] == "give another --port, or end it with `vigil stop first`"


def test_start_on_a_taken_port_is_refused_with_the_same_words(vigil: Vigil) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = vigil("up", "--json", "--", "llama-server", "-hf", "someone/x-GGUF", "--port", str(port))
    assert (done.rc, done.word, done.verdict["cause"]["code"]) == (3, "refused", "PORT001")
    assert f"already taken by pid {os.getpid()}" in done.verdict["reason"]


# --- limits and rooms


def test_few_open_files_are_told(vigil: Vigil) -> None:
    few = check(vigil, "llama-server", "-m", "x.gguf", before=("sh", "-c", 'ulimit -n 300; exec "$@"', "sh"))
    assert "at most 300 open files" in found(few, "LIM001")["text"]


def mounted(size: str, place: object) -> tuple[str, ...]:
    """Return what runs a command with a small tmpfs at a place; skip where nothing can be mounted."""
    inside = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} tmpfs {place} && exec "$@"', "sh")
    if subprocess.run([*inside, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("nothing can be mounted here")
    return inside


def test_small_shared_memory_is_told_for_several_ranks(vigil: Vigil) -> None:
    python, inside = make_home(vigil.folder / "home", "sglang", "0.5.10"), mounted("64m", "/dev/shm")
    report = check(vigil, python, *SGLANG, "--model-path", "M", "--tp", "4", before=inside)
    assert found(report, "SHM001")["text"] == "/dev/shm has 64.0 MiB of 64.0 MiB free, and 4 ranks talk through it"


def test_full_cache_is_told_with_what_is_written_there(vigil: Vigil) -> None:
    cache = vigil.folder / "cache"
    cache.mkdir()
    report = check(
        vigil,
        "llama-server",
        "-m",
        "x.gguf",
        before=mounted("1m", cache),
        env={"XDG_CACHE_HOME": str(cache / "not" / "yet")},
    )
    assert (
        found(report, "DISK001")["text"]
        == f"{cache} has 1.0 MiB of 1.0 MiB free; the server writes there: {cache}/not/yet"
    )


# --- GPUs

DRIVER = """
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned long long total, free, used; } M; typedef struct { unsigned gpu, memory; } U;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } P;
static unsigned long long number(const char *name) { return strtoull(getenv(name), 0, 10); }
int nvmlInit_v2(void) { return 0; } int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(unsigned long)(i + 1); return 0; }
int nvmlDeviceGetMemoryInfo(void *d, M *m) {
    m->total = 80ull << 30; m->free = d == (void *)1 ? number("FREE_GIB") << 30 : 79ull << 30;
    m->used = m->total - m->free; return 0; }
int nvmlDeviceGetUtilizationRates(void *d, U *u) { u->gpu = 40; return 0; }
int nvmlDeviceGetName(void *d, char *name, unsigned n) { snprintf(name, n, "NVIDIA Stand-In"); return 0; }
int nvmlDeviceGetUUID(void *d, char *name, unsigned n) { snprintf(name, n, "GPU-%lu-aaaa", (unsigned long)d); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { snprintf(text, n, "%s", getenv("DRIVER")); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *n) { *n = 12040; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, P *p) {
    *n = d == (void *)1 && number("HOLDER"); p[0].pid = number("HOLDER"); p[0].used = (80 - number("FREE_GIB")) << 30; return 0; }
"""


@pytest.fixture
def gpus(vigil: Vigil) -> Vigil:
    """Two GPUs of 80 GiB, by a library in the place of the driver's; the first has FREE_GIB free, and HOLDER holds the rest."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler to build a stand-in for the driver's library")
    (vigil.folder / "driver.c").write_text(DRIVER)
    library = vigil.folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, vigil.folder / "driver.c"], check=True)
    vigil.env.update(LD_LIBRARY_PATH=str(vigil.folder), HOLDER="0", FREE_GIB="79", DRIVER="550.54.15")
    return vigil


def test_leftover_that_vigil_started_holds_the_gpu(gpus: Vigil) -> None:
    python = make_home(gpus.folder / "home", "vllm", "0.32.0", torch="12.8")
    gpus.up("--name", "old", fake=("--load", "0.1s", "--warmup", "0s"))
    holder = json.loads(gpus("show", "old", "--json").out)["life"]["main"]["pid"]
    gpus.env.update(HOLDER=str(holder), FREE_GIB="20")
    report = check(gpus, python, *VLLM, "--model", "M")
    short = found(report, "MEM001")
    assert short["severity"] == "fatal"
    assert short["text"].startswith("GPU 0 has 20.0 GiB of 80.0 GiB free, less than 0.9 x 80.0 GiB = 72.0 GiB")
    assert f"60.0 GiB by pid {holder} (" in short["text"]
    assert short["text"].endswith("which vigil started as old")
    assert short["advice"] == "end it with `vigil stop old`; --gpu-memory-utilization 0.23 would fit what is free"
    assert found(report, "GPU002")["severity"] == "warning"
    other = check(gpus, "env", "CUDA_VISIBLE_DEVICES=1", python, *VLLM, "--model", "M")
    assert codes(other) == []


def test_more_ranks_than_gpus_and_numbers_that_are_not_there(gpus: Vigil) -> None:
    python = make_home(gpus.folder / "home", "sglang", "0.5.10", torch="12.8")
    many = check(gpus, python, *SGLANG, "--model-path", "M", "--tp", "4")
    assert found(many, "FLAG003")["text"] == "tp 4 needs 4 GPUs on this host, and 2 can be seen"
    wrong = check(gpus, "env", "CUDA_VISIBLE_DEVICES=1,2", python, *SGLANG, "--model-path", "M", "--tp", "2")
    named = found(wrong, "ENV001")
    assert (named["severity"], named["at"]) == ("fatal", 1)
    assert "names 2, which is not there: this host has 2 GPUs (0 to 1)" in named["text"]
    by_uuid = check(gpus, "env", "CUDA_VISIBLE_DEVICES=GPU-2,GPU-1", python, *SGLANG, "--model-path", "M", "--tp", "2")
    assert codes(by_uuid) == []


def test_driver_that_is_too_old_for_torch(gpus: Vigil) -> None:
    python = make_home(gpus.folder / "home", "vllm", "0.32.0", torch="13.0")
    old = found(check(gpus, python, *VLLM, "--model", "M"), "CUDA001")
    assert old["severity"] == "fatal"
    assert old["text"] == (
        "NVIDIA's driver is 550.54.15 (it runs CUDA 12.4 at most), and torch 2.9.1+cu130 was built for CUDA 13.0, which needs "
        "580 or newer"
    )


def test_weights_and_cache_are_held_against_the_gpu(gpus: Vigil) -> None:
    python, model = make_home(gpus.folder / "home", "vllm", "0.32.0", torch="12.8"), gpus.folder / "m"
    model.mkdir()
    shape = {
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "hidden_size": 4096,
    }
    (model / "config.json").write_text(
        json.dumps({**shape, "max_position_embeddings": 1 << 20, "torch_dtype": "bfloat16"})
    )
    with (model / "model.safetensors").open("wb") as weights:
        weights.truncate(15 << 30)
    cache = found(check(gpus, python, *VLLM, "--model", model), "MEM002")
    assert cache["severity"] == "warning"
    assert cache["text"] == (
        "weights 15.0 GiB + cache 128.0 GiB of one request of 1048576 tokens > 0.92 x 80.0 GiB on each GPU"
    )
    with (model / "model.safetensors").open("wb") as weights:
        weights.truncate(200 << 30)
    heavy = found(check(gpus, python, *VLLM, "--model", model), "MEM001")
    assert heavy["severity"] == "fatal"
    assert heavy["text"].startswith("weights 200.0 GiB on each GPU (files: model 200.0 GiB) > 0.92 x 80.0 GiB")
    assert "MEM001" not in codes(check(gpus, python, *VLLM, "--model", model, "-tp", "4"))
