"""Check an EAGLE-3 draft: whether an engine takes it at all, then layer by layer and tensor by tensor what it makes of it."""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.draft_head_norms import check_class
from vigil.preflight.draft_kind import Draft
from vigil.preflight.draft_layers import check_layers
from vigil.preflight.draft_pair import check_pair
from vigil.preflight.draft_settings import check_settings
from vigil.preflight.draft_tensors import check_tensors, draft_reads
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import architectures
from vigil.preflight.placing import placed, title
from vigil.preflight.seen_models import ModelSeen

NO_SPECULATORS = (0, 9, 2)
"""vLLM up to this release knows no config of speculators; of those between it and 0.10.2 it was not looked up."""


def check_eagle3(
    command: Command, model: ModelSeen, draft: Draft, target: ModelSeen | None, version: str | None
) -> Iterator[Finding]:
    """Find what an engine cannot take of an EAGLE-3 draft, and what it would make of it without a word."""
    entry = [*_entry(command, model, draft, version)] or [*check_class(command, draft, version)]
    yield from entry
    if target is not None:
        yield from placed(command, target, _handed_out(command, target, version))
    if entry:
        return
    yield from check_pair(command, model, draft, target, version)
    yield from check_layers(command, draft, target, version)
    yield from check_settings(command, draft, version, draft_reads(command, model, version))
    if (draft.is_llama or draft.is_qwen3) and draft.tensors and not draft.quantised:
        yield from check_tensors(command, model, draft, version)


def _entry(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find a config that an engine cannot take: the form of speculators, or to SGLang another class's name."""
    if draft.speculators:
        yield from _of_speculators(command, model, version)
    elif command.engine == "sglang" and not draft.is_qwen3:
        yield from _of_another_class(command, model, draft, version)


def _of_speculators(command: Command, model: ModelSeen, version: str | None) -> Iterator[Finding]:
    text = f"{model.given} has the config of the speculators library, which {title(command, version)} does not read"
    if command.engine == "sglang":
        yield Finding(
            code="DRAFT001",
            severity=Severity.FATAL,
            text=f"{text}: what it needs stands in transformer_layer_config.",
            advice="`vigil draft convert --to sglang` writes a flat config.json: that part, architectures "
            "[LlamaForCausalLMEagle3], draft_vocab_size, and the layer ids less one in eagle_config.",
            seen="SGLang 0.5.23: nothing below srt names `speculators`",
        )
    elif () < releases.numbers_of(version) <= NO_SPECULATORS:
        yield Finding(
            code="DRAFT001",
            severity=Severity.FATAL,
            text=f"{text}.",
            advice="Take 0.10.2 or a later release, or `vigil draft convert --to vllm`.",
            seen="vLLM 0.9.2 has no transformers_utils/configs/speculators, 0.10.2 has",
        )


def _of_another_class(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find a draft whose class is that of a whole model, or none of this release."""
    names = architectures(draft.config)
    known = model.build.known if model.build is not None else None
    wrong = [one for one in names if "eagle3" not in one.lower()]
    if known is None:
        known = tuple(one for one in names if releases.serves("sglang", version, one))
    unknown = bool(names) and not wrong and not known
    if not (wrong and len(wrong) == len(names)) and not unknown:
        return
    what = "is the class of a whole model" if wrong else "is no class of this release"
    yield Finding(
        code="DRAFT001",
        severity=Severity.FATAL,
        text=f"{model.given} is an EAGLE-3 draft, and its config.json names {', '.join(names)}, which {what}: "
        f"{title(command, version)} would load that, and end in an error.",
        advice='In the draft\'s config.json: "architectures": ["LlamaForCausalLMEagle3"].'
        if wrong
        else "`vigil draft convert --to sglang` writes SGLang's class, and the layers as it counts them.",
        seen="sgl-project/sglang#9135" if wrong else f"SGLang's registry: {releases.span('sglang', names[0])}",
    )


def _handed_out(command: Command, target: ModelSeen, version: str | None) -> Iterator[Finding]:
    """Find a target whose class hands no hidden states out: the start ends in an error after the weights are loaded."""
    names = architectures(target.config) if target.config is not None else ()
    # vLLM before 0.10 had no such interface, and asked for "llama" in the name.
    before = command.engine == "vllm" and () < releases.numbers_of(version) < (0, 10)
    if not names or before:
        return
    if target.build is not None:
        told, seen = target.build.aux if target.build.known else None, "the installed engine's own files"
    elif releases.covers(command.engine, version):
        known = [releases.hands_out(command.engine, version, one) for one in names]
        told, seen = known[0], "the table of the engine's releases"
    else:
        return
    if told is not False:
        return
    table = releases.tables()[command.engine]
    later = [table.releases[one] for one in table.aux.get(names[0], ())]
    hook = "set_eagle3_layers_to_capture" if command.engine == "sglang" else "SupportsEagle3"
    yield Finding(
        code="DRAFT001",
        severity=Severity.FATAL,
        text=f"In {title(command, version)} {names[0]} hands out no hidden states to an EAGLE-3 draft (no {hook}).",
        advice=f"Take {later[0]} or a later release."
        if later
        else "No release in the table does: serve it without this draft.",
        seen=seen,
    )
