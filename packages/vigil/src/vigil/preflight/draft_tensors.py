"""Check the tensors of an EAGLE-3 draft against what an engine's loader takes: their names, their shapes, the vocabulary maps.

The loaders: llama_eagle3.py of each release. SGLang leaves out what it has no name for without a word, and starts what is
missing with random numbers; vLLM ends at a name that it does not know, and is silent about what is missing.
"""

import re
from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.draft_head_norms import check_head_norms
from vigil.preflight.draft_kind import HEAD_NORMS, Draft
from vigil.preflight.draft_maps import check_maps
from vigil.preflight.draft_settings import asks
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import integer
from vigil.preflight.placing import title
from vigil.preflight.seen_models import ModelSeen

SHOWN = 10
SHOWN_SHAPES = 3
_LAYER = re.compile(r"(midlayer|layers\.(\d{1,4}))\.(.+)\Z")
_OF_LAYER = (
    "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
    "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight",
    "input_layernorm.weight", "hidden_norm.weight", "post_attention_layernorm.weight",
)  # fmt: skip
USUAL_INPUTS = 3
_HARMLESS = ("inv_freq", "t2d", "mask_hidden")
_OUTER_BIAS = "self_attn.o_proj.bias"
_BIASES = ("self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias")


def check_tensors(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find what this engine leaves out of a draft, lacks in it, or cannot load."""
    reads = draft_reads(command, model, version)
    if reads is None:
        yield from check_maps(command, model, draft, version)
        return
    normed = draft.head_norms
    left_out = [name for name in draft.tensors if name not in normed and not _taken(name, draft, reads, command.engine)]
    yield from check_head_norms(command, draft, version)
    yield from _left_out(command, model, left_out, version)
    yield from _prefixed(command, model, draft, version)
    yield from _inputs(command, model, draft, reads, version)
    yield from _missing(command, model, draft, reads, version)
    yield from _shapes(command, model, draft, version, left_out)
    yield from _layers(command, model, draft, reads, version)
    yield from check_maps(command, model, draft, version)


def draft_reads(command: Command, model: ModelSeen, version: str | None) -> frozenset[str] | None:
    """Return what this engine reads of a draft (`scout.registry.READS`), None where that is not known."""
    reads = (
        frozenset(model.build.draft_reads) if model.build is not None else releases.draft_reads(command.engine, version)
    )
    return reads if reads and releases.numbers_of(version) else None


def _taken(name: str, draft: Draft, reads: frozenset[str], engine: str) -> bool:
    """Tell whether a loader has a place for a tensor."""
    if name.endswith(_HARMLESS) or "d2t" in name or "t2d" in name:
        return True
    found = _LAYER.match(name)
    if found is not None:
        old = found.group(1) == "midlayer"
        there = (old and "midlayer" in reads) or (not old and "self.layers" in reads)
        inside = int(found.group(2) or 0) < (integer(draft.config, "num_hidden_layers") or 1)
        biased = found.group(3) in _BIASES and "attention_bias" in reads and asks(draft, "attention_bias")
        # The projection behind the attention is the plain Llama layer's in both engines.
        outer = found.group(3) == _OUTER_BIAS and asks(draft, "attention_bias")
        return there and inside and (found.group(3) in _OF_LAYER or biased or outer)
    if name.startswith(("fc_norm.", "aux_norm_")):
        asked = draft.config.get("fc_norm") or (engine == "sglang" and draft.config.get("use_aux_norm"))
        return "fc_norm" in reads and bool(asked)
    if name == "input_norm.weight":
        return "norm_before_fc" in reads and (asks(draft, "norm_before_fc") or engine == "vllm")
    if name == "fc.bias":
        return engine == "sglang" and draft.config.get("bias") is True
    if name == "lm_head.weight" and engine == "sglang":
        return draft.config.get("tie_word_embeddings") is not True
    return name in {"fc.weight", "norm.weight", "lm_head.weight", "embed_tokens.weight"}


def _prefixed(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find names with `model.` before them: vLLM puts one there itself, and SGLang knows none before lm_head."""
    silent = command.engine == "sglang"
    names = [one for one in draft.prefixed if not silent or one == "model.lm_head.weight"]
    if not names:
        return
    what = "drops it without a word: the head stays random" if silent else "puts another before it, and ends"
    yield Finding(
        code="DRAFT002" if silent else "DRAFT001",
        severity=Severity.WARNING if silent else Severity.FATAL,
        text=f"{names[0]} of {model.given} has `model.` before its name: {title(command, version)} {what}.",
        advice=f"`vigil draft convert --to {command.engine}` takes it away.",
        seen="llama_eagle3.py, load_weights: SGLang 0.5.23 and vLLM 0.32, tried",
    )


def _inputs(
    command: Command, model: ModelSeen, draft: Draft, reads: frozenset[str], version: str | None
) -> Iterator[Finding]:
    """Find more or fewer inputs than the three of every release that does not count them."""
    if draft.inputs == USUAL_INPUTS or "num_aux_hidden_states" in reads:
        return
    yield Finding(
        code="SHAPE001",
        severity=Severity.FATAL,
        text=f"{model.given} is fed from {draft.inputs} layers, and {title(command, version)} makes fc for {USUAL_INPUTS}: "
        "it does not fit, and the load ends.",
        advice="Take SGLang from 0.5.12, or vLLM from 0.23 on.",
        seen="llama_eagle3.py does not name num_aux_hidden_states",
    )


def _left_out(command: Command, model: ModelSeen, names: list[str], version: str | None) -> Iterator[Finding]:
    if not names:
        return
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    tensors = f"these {len(names)} tensors" if len(names) > 1 else "this tensor"
    layer = f"layers.0.{_OF_LAYER[0]}" in names and all(one.startswith("layers.0.") for one in names)
    tied = names == ["lm_head.weight"]
    silent = command.engine == "sglang"
    advice = "Take a release that reads them, or train the draft without them."
    if layer:
        advice = "Rename `layers.0.` to `midlayer.` in the draft's safetensors; from 0.5.12 on SGLang takes both."
    elif tied:
        advice = 'In its config.json: "tie_word_embeddings": false, so that its own head is loaded.'
    verb = f"drops {tensors} of {model.given} without a word" if silent else f"ends at {tensors} of {model.given}"
    yield Finding(
        code="DRAFT002" if silent else "DRAFT001",
        severity=Severity.WARNING if silent else Severity.FATAL,
        text=f"{title(command, version)} {verb}: {shown}."
        + (" The layer stays as random as it was made, and hardly a token is accepted." if layer and silent else ""),
        advice=advice,
        seen="llama_eagle3.py, load_weights",
    )


def _missing(
    command: Command, model: ModelSeen, draft: Draft, reads: frozenset[str], version: str | None
) -> Iterator[Finding]:
    layers = range(integer(draft.config, "num_hidden_layers") or 1)
    parts = (*_OF_LAYER, *HEAD_NORMS) if draft.is_qwen3 else _OF_LAYER
    has = {_LAYER.sub(lambda one: f"layers.{one.group(2) or 0}.{one.group(3)}", name) for name in draft.tensors}
    wanted = [f"layers.{layer}.{name}" for layer in layers for name in parts if layer < SHOWN]
    # The norm before the attention of a later layer: the other one is made, and never used.
    unused = "hidden_norm.weight" if command.engine == "vllm" else "input_layernorm.weight"
    wanted = [name for name in wanted if name.startswith("layers.0.") or not name.endswith(f".{unused}")]
    lacks = [name for name in (*wanted, "fc.weight", "norm.weight") if name not in has]
    if "fc_norm" in reads and draft.config.get("fc_norm") is True:
        lacks += [f"fc_norm.{one}.weight" for one in range(draft.fed_from) if not _normed(has, one)]
    if "norm_before_fc" in reads and asks(draft, "norm_before_fc") and "input_norm.weight" not in has:
        lacks.append("input_norm.weight")
    if lacks:
        shown = ", ".join(lacks[:SHOWN]) + (", ..." if len(lacks) > SHOWN else "")
        yield Finding(
            code="DRAFT003",
            severity=Severity.WARNING,
            text=f"{model.given} lacks {len(lacks)} tensors: {shown}. {title(command, version)} says nothing, and they stay "
            "as they were made.",
            advice=_again(command, lacks, has),
        )
    yield from _head(command, model, draft, version)


def _again(command: Command, lacks: list[str], has: set[str]) -> str:
    """Return what to do: of a later layer the norm before the attention may be there by the other engines' name."""
    sglang = command.engine == "sglang"
    ours, theirs = ("hidden_norm", "input_layernorm") if sglang else ("input_layernorm", "hidden_norm")
    if all(not one.startswith("layers.0.") and one.replace(ours, theirs) in has for one in lacks):
        return (
            f"`vigil draft convert --to {command.engine}` renames it: it is there as {lacks[0].replace(ours, theirs)}."
        )
    if all(one.endswith(HEAD_NORMS) for one in lacks):
        return 'If it was trained without them: "architectures": ["Eagle3LlamaForCausalLM"], "model_type": "llama".'
    return "Convert the draft again: without them hardly a token is accepted."


def _normed(has: set[str], layer: int) -> bool:
    old = ("aux_norm_low", "aux_norm_mid", "aux_norm_high")
    return f"fc_norm.{layer}.weight" in has or (layer < len(old) and f"{old[layer]}.weight" in has)


def _head(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find a draft without a head or an embedding of its own where the target's cannot take their place."""
    size, whole = draft.draft_vocabulary, integer(draft.config, "vocab_size")
    tied = draft.config.get("tie_word_embeddings") is True
    if "lm_head.weight" not in draft.tensors and not tied and size is not None and size != whole:
        silent = command.engine == "sglang"
        what = (
            "its head stays random" if silent else "the target's head takes its place, and the first request kills it"
        )
        yield Finding(
            code="DRAFT003" if silent else "DRAFT001",
            severity=Severity.WARNING if silent else Severity.FATAL,
            text=f"{model.given} has no lm_head.weight, and a draft_vocab_size of {size}: {what}.",
            advice="Convert the draft again with its head.",
        )
    narrow = draft.hidden_size != draft.target_hidden_size
    if narrow and "embed_tokens.weight" not in draft.tensors:
        silent = command.engine == "sglang"
        yield Finding(
            code="DRAFT003" if silent else "DRAFT001",
            severity=Severity.WARNING if silent else Severity.FATAL,
            text=f"{model.given} is {draft.hidden_size} wide and its target {draft.target_hidden_size}, so that it needs "
            f"embed_tokens.weight of its own, and has none: {'it stays random' if silent else 'the first request kills it'}.",
            advice="Convert the draft again with its embedding.",
        )
    if command.engine == "sglang" and not tied and "draft_vocab_size" not in draft.config:
        yield Finding(
            code="DRAFT001",
            severity=Severity.FATAL,
            text=f"config.json of {model.given} has no draft_vocab_size: {title(command, version)} ends in an AttributeError.",
            advice='Write "draft_vocab_size" into it: the rows of lm_head.weight, or null for the target\'s head.',
            seen="llama_eagle3.py: config.draft_vocab_size",
        )


def _shapes(
    command: Command, model: ModelSeen, draft: Draft, version: str | None, left_out: list[str]
) -> Iterator[Finding]:
    wrong = []
    for name, one in draft.tensors.items():
        wanted = shape_by_config(name, draft)
        if wanted is not None and name not in left_out and None not in wanted and one.shape != wanted:
            wrong.append(f"{name} is {_by(one.shape)} and not {_by(wanted)}")
    if not wrong:
        return
    yield Finding(
        code="SHAPE001",
        severity=Severity.FATAL,
        text=f"{model.given} does not have the shapes that its config.json says: {'; '.join(wrong[:SHOWN_SHAPES])}"
        f"{f'; and {len(wrong) - SHOWN_SHAPES} more' if len(wrong) > SHOWN_SHAPES else ''}. "
        f"{title(command, version)} ends at the first.",
        advice="Take the config.json that this draft was trained with.",
    )


def _by(shape: tuple[int | None, ...]) -> str:
    return " x ".join(map(str, shape))


def shape_by_config(name: str, draft: Draft) -> tuple[int | None, ...] | None:
    """Return the shape that a tensor must have by the config, None for one that is not known or has an unknown size."""
    config, wide, into = draft.config, draft.hidden_size, draft.target_hidden_size
    heads, inner = integer(config, "num_attention_heads"), integer(config, "intermediate_size")
    keys = integer(config, "num_key_value_heads") or heads
    if wide is None or into is None or heads is None or keys is None:
        return None
    each = integer(config, "head_dim") or wide // heads
    found = _LAYER.match(name)
    twice = wide if found is not None and int(found.group(2) or 0) else 2 * wide
    shapes: dict[str, tuple[int | None, ...]] = {
        "self_attn.q_proj.weight": (heads * each, twice),
        "self_attn.k_proj.weight": (keys * each, twice),
        "self_attn.v_proj.weight": (keys * each, twice),
        "self_attn.o_proj.weight": (wide, heads * each),
        "mlp.gate_proj.weight": (inner, wide),
        "mlp.up_proj.weight": (inner, wide),
        "mlp.down_proj.weight": (wide, inner),
        "input_layernorm.weight": (wide,),
        "hidden_norm.weight": (wide,),
        "post_attention_layernorm.weight": (wide,),
        **dict.fromkeys(HEAD_NORMS, (each,)),
        "fc.weight": (wide, draft.inputs * into),
        "norm.weight": (wide,),
        "lm_head.weight": (draft.draft_vocabulary or integer(config, "vocab_size"), wide),
        "embed_tokens.weight": (integer(config, "vocab_size"), wide),
    }
    shape = shapes.get(found.group(3) if found is not None else name)
    return None if shape is None or None in shape else shape


def _layers(
    command: Command, model: ModelSeen, draft: Draft, reads: frozenset[str], version: str | None
) -> Iterator[Finding]:
    layers = integer(draft.config, "num_hidden_layers") or 1
    if layers == 1 or "self.midlayer" not in reads or command.engine != "sglang":
        return
    yield Finding(
        code="DRAFT001",
        severity=Severity.FATAL,
        text=f"{model.given} has {layers} layers, and {title(command, version)} takes EAGLE-3 drafts of one layer alone.",
        advice="Take 0.5.12 or a later release.",
        seen="llama_eagle3.py: EAGLE3 currently only supports 1 layer",
    )
