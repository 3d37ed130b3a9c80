"""Check a model against the engine and the flags: its architecture, quantisation, how it is split, and its longest context."""

import re
from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import Config, architectures, integer, is_moe, longest_context, part, text_part
from vigil.preflight.placing import dropped, place_of, title, version_for
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.seen_models import ModelSeen
from vigil.preflight.sight import Sight

TP = {"sglang": ("--tp-size", "--tp", "--tensor-parallel-size"), "vllm": ("--tensor-parallel-size", "-tp")}
CONTEXT = {"sglang": ("--context-length",), "vllm": ("--max-model-len",)}
OVERRIDES = (
    "--hf-overrides",
    "--json-model-override-args",
    "--rope-scaling",
    "--decrypted-config-file",
    "--hf-config-path",
)
LONGER = {"sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN"}
# Methods that need weights that were made for them; others (fp8, bitsandbytes, torchao) can be made while loading.
MADE_BEFORE = ("awq", "gptq", "awq_marlin", "gptq_marlin")
# Checkpoints of these go with one method alone (`_verify_quantization` in SGLang 0.5.23 and vLLM 0.32).
ONE_METHOD = ("awq", "gptq", "bitsandbytes", "compressed-tensors", "fp8")
VOCABULARY_STEP = 64  # vLLM 0.32 pads a vocabulary to it: vocab_parallel_embedding.py
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)\Z")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def check_fit(command: Command, sight: Sight, model: ModelSeen) -> Iterator[Finding]:
    """Find where the model does not go with its engine or the flags."""
    if model.config is None or command.engine not in TP or command.last(*OVERRIDES) is not None:
        return
    yield from _architecture(command, sight, model, model.config)
    yield from _quantisation(command, model, model.config)
    yield from _split(command, model.config)
    yield from _context(command, sight, model.config)


def _architecture(command: Command, sight: Sight, model: ModelSeen, config: Config) -> Iterator[Finding]:
    names, version, build = architectures(config), version_for(model, sight), model.build
    at, count = place_of(command, model)
    if not names or command.last("--model-impl", "--encoder-only") is not None:
        return
    if build is not None:
        unknown, seen = not build.known and build.by_transformers is False, "the installed engine's own registry"
    else:
        unknown = releases.covers(command.engine, version) and not any(
            releases.serves(command.engine, version, one) for one in names
        )
        seen = f"the table of the engine's releases: {releases.span(command.engine, names[0])}"
    if not unknown or "auto_map" in config:
        return
    # From a table alone it is not certain: an engine falls back to what its transformers knows, and plugins add more.
    known_later = bool(releases.tables()[command.engine].serves.get(names[0]))
    yield Finding(
        code="ARCH001",
        severity=Severity.FATAL if build is not None or known_later else Severity.WARNING,
        text=f"{title(command, version)} does not know the architecture {names[0]} of {model.given}.",
        advice=f"Take a release that has it: {releases.span(command.engine, names[0])}.",
        at=at,
        count=count,
        seen=seen,
    )


def _quantisation(command: Command, model: ModelSeen, config: Config) -> Iterator[Finding]:
    flag = command.last("--quantization", "-q")
    if flag is None or not flag.value:
        return
    asked = flag.value.lower()
    has = part(config, "quantization_config").get("quant_method")
    is_in = has.lower().replace("_", "-") if isinstance(has, str) else ""
    if is_in in ONE_METHOD and _base(asked) in ONE_METHOD and _base(asked) != is_in:
        text = f"The weights of {model.given} are quantised with {is_in}, and --quantization asks for {asked}."
    elif not is_in and asked in MADE_BEFORE and not model.quantised_by and not model.cached:
        text = (
            f"--quantization {asked} needs weights that were made with it; the config.json of {model.given} names none."
        )
    else:
        return
    yield pointed(
        flag,
        "FLAG004",
        Severity.FATAL,
        text,
        "Leave the flag out: what the weights are is read from config.json.",
        edits=dropped(flag),
    )


def _base(method: str) -> str:
    return method.removesuffix("_marlin").replace("_", "-")


def _split(command: Command, config: Config) -> Iterator[Finding]:
    flag, size = command.last(*TP[command.engine]), command.number(*TP[command.engine])
    if flag is None or size is None or size != int(size) or size <= 1 or (command.text("--device") or "") == "cpu":
        return
    size = int(size)
    if command.last(
        "--enable-dp-attention", "--attention-context-parallel-size", "--attn-cp-size", "--enable-attention-dp"
    ):
        return
    text = text_part(config)
    heads = integer(text, "num_attention_heads")
    wrong = _uneven(command.engine, text, size)
    if not wrong or heads is None:
        return
    fit = [one for one in range(1, min(heads, 64) + 1) if not _uneven(command.engine, text, one)]
    yield pointed(
        flag,
        "FLAG003",
        Severity.FATAL,
        f"The model cannot be split {size} ways: it has {' and '.join(wrong)}.",
        f"Sizes that divide it: {', '.join(map(str, fit[:8]))}.",
    )


def _uneven(engine: str, text: Config, size: int) -> list[str]:
    """Return what of a model cannot be divided into so many equal parts; heads for keys and values are also copied."""
    found = []
    heads, keys = integer(text, "num_attention_heads"), integer(text, "num_key_value_heads")
    if heads is not None and heads % size:
        found.append(f"{heads} attention heads")
    if keys is not None and not integer(text, "kv_lora_rank") and keys % size and size % keys:
        found.append(f"{keys} heads for keys and values")
    inner = integer(text, "intermediate_size")
    if inner is not None and not is_moe(text) and inner % size:
        found.append(f"an intermediate size of {inner}")
    words = integer(text, "vocab_size")
    padded = -(-words // VOCABULARY_STEP) * VOCABULARY_STEP if words is not None else 0
    if engine == "vllm" and padded % size:  # SGLang pads further where it must
        found.append(f"{padded} tokens (padded)")
    return found


def _context(command: Command, sight: Sight, config: Config) -> Iterator[Finding]:
    flag, longest = command.last(*CONTEXT[command.engine]), longest_context(config)
    asked = length_of(flag.value) if flag is not None else None
    if flag is None or asked is None or longest is None or asked <= longest:
        return
    version, variable = version_for(next(iter(sight.models or ()), None), sight), LONGER[command.engine]
    if (command.env.get(variable) or "0").lower() not in {"0", "", "false"}:
        severity, what = (
            Severity.WARNING,
            f"{variable} lets it: answers beyond {longest} may be wrong, or end in an error of CUDA",
        )
    elif command.engine == "sglang" and releases.numbers_of(version) < (0, 5, 2):
        # SGLang 0.4.9 only warns: the variable is on by default there.
        severity, what = Severity.WARNING, "this release only warns of it"
    else:
        severity, what = Severity.FATAL, f"the start ends in an error, unless {variable}=1 is set"
    yield pointed(
        flag,
        "FLAG003",
        severity,
        f"A context of {asked} was asked for, and the model is made for {longest}: {what}.",
        f"{longest} is the most; a longer one needs rope scaling in the model's config.",
        edits=with_value(flag, str(longest)) if severity is Severity.FATAL else (),
    )


def length_of(text: str | None) -> int | None:
    """Return a length as vLLM reads it: 32k is 32000, 32K is 32768 (vLLM 0.32: human_readable_int); None for none, and for -1."""
    found = _LENGTH.match(text or "")
    return int(float(found.group(1)) * _UNITS[found.group(2) if found.group(2) in _UNITS else ""]) if found else None
