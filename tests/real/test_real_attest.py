"""What the processes of real engines say that they run: SGLang and vLLM on the CPU, with a copy of their package to edit."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from overlay import overlay
from real_runs import ENGINES, Site

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]
EDIT = "\n# edited\n"


def edit(copy: Path, *names: str) -> None:
    for name in names:
        path = copy / name
        path.write_text(path.read_text() + EDIT)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Copy an engine's package into an environment of its own; return the copy."""

    def copy(package: str) -> Path:
        if not (ENGINES / package / ".installed").is_file():
            pytest.skip(f"no {package} here: make engines")
        return overlay(ENGINES / package, package, tmp_path / "overlay")

    return copy


def expecting(*wanted: str) -> tuple[str, ...]:
    return tuple(word for one in wanted for word in ("--expect", one))


def test_sglang_tells_which_edited_files_its_processes_loaded(
    site: Site, hf_model: Path, copied: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = copied("sglang")
    edit(copy, "srt/managers/scheduler.py", "srt/managers/detokenizer_manager.py", "srt/disaggregation/ascend/conn.py")
    wanted = (
        "module=sglang.srt.managers.scheduler",
        f"file={copy / 'srt/managers/detokenizer_manager.py'}",
        "class=Scheduler",
        "class=DetokenizerManager",
        "arg.max_running_requests=4",
        "arg.attention_backend=triton",
        "module=sglang.srt.disaggregation.ascend.conn",
        "speculation",
    )
    flags = (
        *(
            "--device",
            "cpu",
            "--attention-backend",
            "torch_native",
            "--disable-overlap-schedule",
            "--host",
            "127.0.0.1",
        ),
        *("--mem-fraction-static", "0.3", "--context-length", "1024", "--max-running-requests", "4"),
    )
    python = tmp_path / "overlay" / "bin" / "python"
    command = [
        str(python),
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(hf_model),
        *flags,
        "--port",
        str(site.port),
    ]
    done = site.up("sglang-attested", *command, options=expecting(*wanted), env={"HF_HUB_OFFLINE": "1"})
    table = json.loads(site("show", "s", "--args", "--json").out)
    site("stop", "s", "--grace", "20s")
    met = {one["expectation"]: one["met"] for one in done.verdict["expectations"]}
    found = {one["expectation"]: one["found"] for one in done.verdict["expectations"]}

    assert (done.rc, done.verdict["verdict"]) == (9, "degraded")
    assert [met[one] for one in wanted] == [True] * 5 + [False] * 3, found
    assert found["class=Scheduler"] == "alive in scheduler"
    assert found["class=DetokenizerManager"] == "alive in detokenizer"
    assert found["arg.max_running_requests=4"].startswith("max_running_requests is 4 (ServerArgs, ")
    assert "attention_backend is torch_native" in found["arg.attention_backend=triton"]
    assert found["speculation"].startswith("off: ")
    (warning,) = [one for one in done.verdict["warnings"] if "differ from the wheel" in one]
    assert warning.startswith("3 files of sglang differ from the wheel")
    assert "conn.py is loaded by none" in warning
    assert "detokenizer" in warning
    assert {row["flag"]: row["state"] for row in table["arguments"]}["--max-running-requests"] == "same"


def test_vllm_tells_which_edited_files_its_engine_core_and_worker_loaded(
    site: Site, hf_model: Path, copied: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = copied("vllm")
    edit(copy, "v1/engine/core.py", "v1/spec_decode/ngram_proposer.py", "model_executor/models/zamba2.py")
    program = tmp_path / "overlay" / "bin" / "vllm"
    python = tmp_path / "overlay" / "bin" / "python"
    program.write_text(
        (ENGINES / "vllm" / "bin" / "vllm").read_text().replace(str(ENGINES / "vllm/bin/python3.11"), str(python))
    )
    shutil.copymode(ENGINES / "vllm" / "bin" / "vllm", program)
    wanted = (
        "module=vllm.v1.engine.core",
        "class=EngineCoreProc",
        "class=NgramProposer",
        "arg.max_num_seqs=4",
        "arg.max_model_len=2048",
        "speculation",
    )
    draft = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
    flags = ("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "1024", "--max-num-seqs", "4")
    command = [str(program), "serve", str(hf_model), *flags, "--speculative-config", json.dumps(draft)]
    done = site.up(
        "vllm-attested",
        *command,
        "--port",
        str(site.port),
        options=expecting(*wanted),
        env={"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"},
    )
    table = json.loads(site("show", "s", "--args", "--json").out)
    site("stop", "s", "--grace", "20s")
    met = {one["expectation"]: one["met"] for one in done.verdict["expectations"]}
    found = {one["expectation"]: one["found"] for one in done.verdict["expectations"]}

    assert (done.rc, done.verdict["verdict"]) == (9, "degraded")
    assert [met[one] for one in wanted] == [True, True, True, True, False, True], found
    assert "EngineCore" in found["class=EngineCoreProc"]
    assert "max_model_len is 1024" in found["arg.max_model_len=2048"]
    assert found["speculation"].startswith("on: ")
    (warning,) = [one for one in done.verdict["warnings"] if "differ from the wheel" in one]
    assert "core.py is loaded by" in warning
    assert "is loaded by none" in warning
    rows = {row["flag"]: (row["in_force"], row["state"]) for row in table["arguments"]}
    assert rows["--max-model-len"] == ("1024", "same")
    assert rows["--speculative-config.num_speculative_tokens"] == ("3", "same")
