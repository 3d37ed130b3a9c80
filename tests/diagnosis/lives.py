"""Reads the kept logs of real starts, and says what a careful reader finds in each: code and words of the root line."""

from pathlib import Path
from typing import NamedTuple

from vigil.diagnosis import End
from vigil.facts import Line

LOGS = Path(__file__).parents[1] / "data" / "logs"
BAD = End(code=1)
ASKED = End(code=0, ready=True)


class Death(NamedTuple):
    end: End
    code: str
    words: str


class Flaw(NamedTuple):
    code: str
    words: str


BAD_HEADER = "SafetensorError: Error while deserializing header: incomplete metadata"
OUT_OF_FILE = "error loading model: tensor 'blk.2.ffn_up.weight' data is not within the file bounds"
NO_REPO = "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "

# Written by reading the logs, before any of them was diagnosed.
DEATHS = {
    "llamacpp/bad-magic-gguf": Death(BAD, "FILE002", "invalid magic characters: 'XXXX'"),
    "llamacpp/bad-spec-type": Death(BAD, "FLAG002", 'argument "--spec-type": unknown speculative type: ngram-simpel'),
    "llamacpp/draft-mtp-none": Death(BAD, "DRAFT001", "doesn't contain MTP layers"),
    "llamacpp/lfs-pointer-gguf": Death(BAD, "FILE002", "invalid magic characters: 'vers'"),
    "llamacpp/missing-draft": Death(
        BAD, "FILE001", "failed to open GGUF file '/opt/llm/models/gguf/does-not-exist-draft.gguf'"
    ),
    "llamacpp/missing-model": Death(
        BAD, "FILE001", "failed to open GGUF file '/opt/llm/models/gguf/does-not-exist.gguf'"
    ),
    "llamacpp/misspelt-flag": Death(BAD, "FLAG001", "invalid argument: --spec-draft-nmax"),
    "llamacpp/not-a-number": Death(BAD, "FLAG002", 'argument "-c": stoi'),
    "llamacpp/ok-draft-self-synth": Death(BAD, "FLAG004", "synthetic acceptance requires an initialized speculative"),
    "llamacpp/oom-huge-ctx": Death(BAD, "MEM003", "insufficient memory (attempted to allocate 87890.62 MB)"),
    "llamacpp/port-in-use": Death(BAD, "PORT001", "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080"),
    "llamacpp/removed-flag": Death(BAD, "FLAG002", '"--draft-max": the argument has been removed'),
    "llamacpp/removed-flag-no-mmap": Death(BAD, "FLAG001", "invalid argument: --no-mmap"),
    "llamacpp/sigkill-during-load": Death(End(signal=9), "SIG001", "killed by SIGKILL"),
    "llamacpp/sigkill-when-ready": Death(End(signal=9, ready=True), "SIG001", "killed by SIGKILL"),
    "llamacpp/sigterm-during-load": Death(End(signal=15), "SIG001", "killed by SIGTERM"),
    "llamacpp/truncated-draft": Death(BAD, "FILE002", OUT_OF_FILE),
    "llamacpp/truncated-gguf": Death(BAD, "FILE002", OUT_OF_FILE),
    "llamacpp/truncated-gguf-load-none": Death(BAD, "FILE002", OUT_OF_FILE),
    "llamacpp/unknown-flag": Death(BAD, "FLAG001", "invalid argument: --no-such-flag"),
    "sglang/a2_dummy_eagle3_no_deep_gemm": Death(End(signal=9), "IMP001", "No module named 'deep_gemm'"),
    "sglang/broken-torchvision": Death(BAD, "IMP001", "RuntimeError: Only a single TORCH_LIBRARY"),
    "sglang/d15_draft_missing": Death(BAD, "FILE001", NO_REPO + "'/tmp/nosuchdraft'"),
    "sglang/d1_unknown_flag": Death(End(code=2), "FLAG001", "unrecognized arguments: --num-speculative-tokens 16"),
    "sglang/d2_missing_model": Death(BAD, "FILE001", NO_REPO + "'/tmp/nosuch'"),
    "sglang/d4_wrongkeys_draft": Death(End(signal=9), "SIG001", "detokenizer (pid=979) crashed with exit code -9"),
    "sglang/d8_port_in_use": Death(BAD, "PORT001", "address ('127.0.0.1', 31008): address already in use"),
    "sglang/e1_base": Death(End(signal=9, ready=True), "SIG001", "scheduler_0 (pid=3002) crashed with exit code -9"),
    "sglang/f1_ngram_sampler_missing": Death(
        End(signal=9, ready=True), "IMP001", "module 'flashinfer.sampling' has no attribute 'top_k_renorm_probs'"
    ),
    "sglang/eagle3-random": Death(
        End(signal=9), "CUDA001", "RuntimeError: 0 active drivers ([]). There should only be one."
    ),
    "sglang/timeout-130s": Death(End(signal=15), "SIG001", "killed by SIGTERM"),
    "sglang/unknown-flag": Death(End(code=2), "FLAG001", "unrecognized arguments: --no-such-flag 5"),
    "vllm/bad-spec-method": Death(BAD, "FLAG002", "ValidationError: 1 validation error for SpeculativeConfig"),
    "vllm/missing-model": Death(BAD, "FILE001", NO_REPO + "'/opt/llm/models/does-not-exist'"),
    "vllm/misspelt-flag": Death(End(code=2), "FLAG001", "unrecognized arguments: --max-modle-len 512"),
    "vllm/no-vllm-metadata": Death(BAD, "IMP001", "PackageNotFoundError: No package metadata was found for vllm"),
    "vllm/port-in-use": Death(BAD, "PORT001", "OSError: [Errno 98] Address already in use"),
    "vllm/slow-compile-sigterm": Death(End(signal=9), "SIG001", "killed by SIGKILL"),
    "vllm/truncated-safetensors": Death(BAD, "FILE002", BAD_HEADER),
    "vllm/unknown-flag": Death(End(code=2), "FLAG001", "unrecognized arguments: --no-such-flag 5"),
}

# They served, and their speculation gives nothing: a reader who is asked whether all is well has to say so.
FLAWED = {
    "llamacpp/draft-eagle3-not-eagle": Flaw("SPEC001", "failed to initialize speculative decoding context"),
    "llamacpp/ok-draft-self": Flaw("SPEC001", "eval time ="),
    "vllm/eagle3-random": Flaw("SPEC002", "Mean acceptance length: 1.00"),
}

# Lives of the server in a log; one where nothing is said.
LIVES = {
    "llamacpp/crash-loop-then-recovers": 5,
    "llamacpp/crash-loop-truncated": 8,
    "llamacpp/crash-loop-unknown-flag": 8,
    "sglang/d10_restart_loop": 2,
}

# They served, and ended because somebody asked; but vllm/eagle3-wrong-hidden died silently: only its parent has words.
HEALTHY = frozenset({
    "llamacpp/bad-chat-template", "llamacpp/no-model-given", "llamacpp/ok-basic",
    "llamacpp/ok-draft-simple-self", "llamacpp/ok-draft-simple-synth",
    "llamacpp/ok-ngram-cache",
    "llamacpp/ok-ngram-simple", "llamacpp/ok-no-repack", "llamacpp/sigint-when-ready",
    "sglang/a1_dummy_base", "sglang/a2_dummy_eagle3", "sglang/b1_base", "sglang/cpu-torch-native",
    "sglang/d3_layers0_draft", "sglang/d7_memfrac_tiny", "sglang/e3_ngram",
    "transformers/ok-basic", "vllm/eagle3-wrong-hidden", "vllm/ok-eager", "xllamacpp/ok-basic",
})  # fmt: skip


def name_of(path: Path) -> str:
    """Return `engine/stem`; the folders of one engine (`vllm-cpu`, `sglang-h200`) are one engine here."""
    return f"{path.parent.name.partition('-')[0]}/{path.stem}"


def engine_of(path: Path) -> str | None:
    engine = path.parent.name.partition("-")[0]
    return {"xllamacpp": "llamacpp", "transformers": None}.get(engine, engine)


def kept_logs() -> list[Path]:
    return sorted(LOGS.glob("*/*.log"))


def read_lines(path: Path) -> list[Line]:
    """Read a log as the scanner does: updates by carriage return share the number of their line."""
    text = path.read_bytes().decode("utf-8", "replace")
    parts = ((n, part) for n, line in enumerate(text.split("\n"), 1) for part in line.split("\r"))
    return [Line(number, part) for number, part in parts if part]


def as_lines(text: str) -> list[Line]:
    return [Line(number, line) for number, line in enumerate(text.strip("\n").split("\n"), 1)]


def lives(lines: list[Line], first_words: str) -> list[list[Line]]:
    """Split a log at each line that holds `first_words`, a banner; leave out what is before the first."""
    found: list[list[Line]] = []
    for line in lines:
        if first_words in line.text:
            found.append([])
        if found:
            found[-1].append(line)
    return found
