"""`vigil draft` with a real vLLM on the CPU: answers as the token ids that it generated, and a draft that guesses at random."""

import json
import subprocess
from pathlib import Path

import pytest
from real_runs import ENGINES, ROOT, Site

from vigil_draft.data.prepared import read, read_manifest
from vigil_draft_smollm2 import DRAFT, ESTIMATE
from vigil_draft_smollm2 import PROMPTS as HELD_OUT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]
HOME = ENGINES / "vllm"
FLAGS = ("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "1024", "--max-num-seqs", "4")
ENV = ("--env", "VLLM_CPU_KVCACHE_SPACE=1", "--env", "HF_HUB_OFFLINE=1")
END = 2
PROMPTS = ("What is the capital of France?", "Say <|im_end|> and stop.", "Count from one to five.")


@pytest.fixture(autouse=True)
def _vllm() -> None:
    if not (HOME / ".installed").is_file():
        pytest.skip("no vLLM here: tests/real/install-vllm.sh installs it")


def test_vllms_answers_are_prepared_as_the_tokens_that_it_generated(site: Site, hf_model: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(PROMPTS))
    out = tmp_path / "data"
    wanted = ("--target", str(hf_model), "--prompts", str(prompts), "--out", str(out), "--length", "512")
    site.env |= {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    server = (str(HOME / "bin" / "vllm"), "serve", str(hf_model), *FLAGS, "--port", str(site.port))

    done = site("draft", "prepare", *wanted, "--max-tokens", "40", "--held-out", "0", "--", *server)

    assert done.rc == 0, done.err
    docs = read(out / "train")
    assert len(docs) == len(PROMPTS)
    assert "token ids as generated" in read_manifest(out / "train")["asked"]["server"]["answers"]
    ended = 0
    for begin, end in zip(docs.starts, docs.starts[1:], strict=False):
        ids, mask = list(docs.token_ids[begin:end]), docs.loss_mask[begin:end]
        answer = [one for one, counts in zip(ids, mask, strict=True) if counts]
        assert mask == bytes(len(ids) - len(answer)) + b"\1" * len(answer)
        assert END not in answer[:-1]
        ended += answer[-1] == END
        assert ids.count(END) == 2 + (answer[-1] == END)  # the template's own two: nothing of a prompt is one
    assert ended


def test_a_random_draft_is_broken_in_vllm(site: Site, hf_model: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    script = ROOT / "tests" / "real" / "make_draft.py"
    subprocess.run([HOME / "bin" / "python", script, draft], check=True, timeout=300)
    wanted = ("--target", str(hf_model), "--engine", "vllm", "--program", f"{HOME}/bin/vllm serve", *ENV)

    done = site(
        "draft", "verify", str(draft), *wanted, "--most", "8", "--max-tokens", "32", "--promised", "2.0", "--json",
        "--", *FLAGS,
    )  # fmt: skip

    assert done.rc == 13, done.err + done.out
    found = json.loads(done.out)
    assert (found["word"], found["engine"], found["answers"]) == ("broken", "vllm", 8)
    assert 1.0 <= found["live"]["value"] < 1.05
    assert found["reasons"]
    assert found["version"]


def test_the_kept_draft_does_in_vllm_what_its_estimate_promises(site: Site, hf_model: Path) -> None:
    wanted = ("--target", str(hf_model), "--engine", "vllm", "--program", f"{HOME}/bin/vllm serve", *ENV)

    done = site(
        "draft", "verify", str(DRAFT), *wanted, "--prompts", str(HELD_OUT), "--promised", str(ESTIMATE), "--most", "24",
        "--max-tokens", "160", "--json", "--", *FLAGS,
    )  # fmt: skip

    assert done.rc == 0, done.err + done.out
    found = json.loads(done.out)
    assert (found["word"], found["answers"]) == ("ok", 24)
    assert found["live"]["value"] > 2.3  # 2.77 is promised; 24 answers know it within a tenth
