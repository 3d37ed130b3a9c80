"""Check the target's layers that a draft is fed from: engines count them in two ways, and read them in different places.

"boundary k" is the hidden state after k layers. vLLM's numbers are boundaries; SGLang adds one to its own (0.5.23: llama.py,
set_eagle3_layers_to_capture); both take the boundaries 2, L // 2 and L - 3 where no list is read.
"""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import architectures, integer, text_part
from vigil.preflight.placing import title
from vigil.preflight.seen_models import ModelSeen

# These count in ways of their own in SGLang (#25454, #32334).
OWN_WAYS = (
    "GptOss",
    "Deepseek",
    "Glm4MoeLite",
    "Kimi",
    "MistralLarge3",
    "MiniMaxM3",
    "GlmMoeDsa",
    "Longcat",
    "Pixtral",
)


# Read in the wheels of vLLM 0.8.5, 0.9.2, 0.10.2, 0.11.2, 0.13.0, 0.19.1, 0.23.0, 0.27.1, 0.30.0 and 0.32.0.
NO_LIST = (0, 10, 2)
"""vLLM up to this release takes the default layers, whatever a draft says."""
NO_NESTED_LIST = (0, 19, 1)
"""vLLM up to this release reads no list in eagle_config."""
NEW_RUNNER = (0, 30)
"""vLLM from here on runs v1/worker/gpu where Triton is there, which reads no list in eagle_config."""


def check_layers(command: Command, draft: Draft, target: ModelSeen | None, version: str | None) -> Iterator[Finding]:
    """Find layers that are not there, and lists that mean other layers to this engine than to the one that wrote them."""
    if draft.inputs != draft.fed_from:
        yield _uncounted(command, draft, version)
        return
    text = text_part(target.config or {}) if target is not None else {}
    layers = integer(text, "num_hidden_layers")
    own = any(one.startswith(OWN_WAYS) for one in architectures((target.config if target is not None else None) or {}))
    if own and command.engine == "sglang" and draft.nested_layers is not None:
        yield _its_own_way(command, draft, version)
    if own:
        return
    told = (
        _by_sglang(draft, layers)
        if command.engine == "sglang"
        else _by_vllm(draft, layers, releases.numbers_of(version))
    )
    if told is None:
        return
    severity, text_of, advice = told
    yield Finding(
        code="DRAFT001" if severity is Severity.FATAL else "DRAFT004",
        severity=severity,
        text=f"{title(command, version)}: {text_of}",
        advice=advice,
        seen="reference: the two conventions; sgl-project/sglang#25454, vllm-project/vllm#43671",
    )


def _default(layers: int | None) -> str:
    """Return in words the boundaries of a target of so many layers, None where they are not known."""
    return _list(usual(layers)) if layers is not None else "2, L // 2 and L - 3 of L"


def _its_own_way(command: Command, draft: Draft, version: str | None) -> Finding:
    """Say that SGLang may not add one to the ids: whether it does hangs on the class of the target, and on the ids."""
    return Finding(
        code="DRAFT004",
        severity=Severity.NOTE,
        text=f"{title(command, version)} adds one to the layer ids {_list(draft.nested_layers or ())} of {draft.given}, or does "
        "not: for DeepSeek's classes and GLM-4-MoE-Lite only where the first is 1, for GPT-OSS unless the last is the number of "
        "layers.",
        advice="Compare what comes of it with the layers that it was trained on.",
        seen="SGLang 0.5.23: deepseek_v2.py, glm4_moe_lite.py, gpt_oss.py; sgl-project/sglang#25454, #32334",
    )


def usual(layers: int) -> tuple[int, ...]:
    """Return the boundaries that both engines take by themselves."""
    return (2, layers // 2, layers - 3)


def _by_sglang(draft: Draft, layers: int | None) -> tuple[Severity, str, str] | None:
    nested, outer = draft.nested_layers, draft.outer_layers
    default = usual(layers) if layers is not None else None
    if nested is None and outer is not None and tuple(sorted(outer)) != default:
        text = f"the layer ids {_list(outer)} of {draft.given} count below eagle_config only: "
        text += (
            f"it is fed from the layers {_default(layers)} without a word, and not from those that it was trained on."
        )
        less = _list([one - 1 for one in outer])
        advice = f'In its config.json: "eagle_config": {{"eagle_aux_hidden_state_layer_ids": {less}}} (SGLang adds one to each), '
        return Severity.WARNING, text, advice + "if they are counted as speculators and vLLM do."
    if nested is None or layers is None:
        return None
    # 0.5.23, llama.py: a state is taken before layer id + 1 runs, so that of the last layer never is.
    beyond = [one for one in nested if not -1 <= one < layers - 1]
    if beyond:
        text = (
            f"{draft.given} is fed from the layers {_list(nested)}, and of a target of {layers} layers it takes 0 to "
        )
        text += f"{layers - 2}: {_list(beyond)} is never met."
        return Severity.FATAL, text, "Take the draft that was trained for this target."
    if nested == default:
        text = (
            f"it adds one to the layer ids {_list(nested)} of {draft.given}, which look as vLLM and speculators count: "
        )
        text += "each layer would be one too far, and less is accepted."
        return (
            Severity.WARNING,
            text,
            f"If they are counted so: {_list([one - 1 for one in nested])}, or leave the list out.",
        )
    return None


def _uncounted(command: Command, draft: Draft, version: str | None) -> Finding:
    """Say that fc is made for another number of inputs than the config names: engines count them elsewhere."""
    return Finding(
        code="SHAPE001",
        severity=Severity.FATAL,
        text=f"{draft.given} is fed from {draft.inputs} layers, {_list(draft.outer_layers or ())}, and {title(command, version)} "
        f"counts {draft.fed_from}, since it counts those in eagle_config alone: fc.weight does not fit, and the load ends.",
        advice=f"`vigil draft convert --to {command.engine}` writes how many they are (num_aux_hidden_states, in a flat config), "
        "which SGLang reads from 0.5.12 and vLLM from 0.23 on.",
        seen="llama_eagle3.py of SGLang 0.5.23 and vLLM 0.32; vllm-project/vllm#54526",
    )


def _by_vllm(draft: Draft, layers: int | None, version: releases.Version) -> tuple[Severity, str, str] | None:
    found = draft.outer_layers or draft.nested_layers
    if found is None:
        return None
    if () < version <= (NO_NESTED_LIST if draft.outer_layers is None else NO_LIST):
        return _no_list(draft, found, layers, version)
    default = usual(layers) if layers is not None else None
    beyond = [one for one in found if one < 0 or (layers is not None and one > layers)]
    if beyond and layers is not None:
        text = f"{draft.given} is fed from the layers {_list(found)}, and the target has {layers}: "
        text += f"{_list(beyond)} is never met."
        return Severity.FATAL, text, "Take the draft that was trained for this target."
    if draft.outer_layers is None and default is not None and found == tuple(one - 1 for one in default):
        text = f"it takes the layer ids {_list(found)} of {draft.given} as they are, and they look as SGLang and "
        text += "SpecForge count: each layer would be one too early, and less is accepted"
        text += " (its new runner passes them over, and is right by chance)." if version >= NEW_RUNNER else "."
        return (
            Severity.WARNING,
            text,
            f"If they are counted so: {_list([one + 1 for one in found])}, or leave the list out.",
        )
    if draft.outer_layers is None and found != default:
        return _in_eagle_config(draft, found, layers, version)
    return None


def _counted(draft: Draft, found: tuple[int, ...]) -> tuple[int, ...]:
    """Return the boundaries that a list means: beside eagle_config, and to vLLM's own class, as it is; else less one."""
    plain = draft.outer_layers is not None or any(one.startswith("Eagle3") for one in architectures(draft.config))
    return found if plain else tuple(one + 1 for one in found)


def _no_list(
    draft: Draft, found: tuple[int, ...], layers: int | None, version: releases.Version
) -> tuple[Severity, str, str] | None:
    """Say that a list is not read, where it is not that of the default layers by any way of counting."""
    meant = _counted(draft, found)
    if layers is not None and usual(layers) in {tuple(sorted(meant)), found}:
        return None
    text = f"it does not read the layer ids {_list(found)} of {draft.given}, and feeds it from {_default(layers)} without a word."
    if version <= NO_LIST:
        return Severity.WARNING, text, "Take 0.11.2 or a later release."
    return Severity.WARNING, text, f'"eagle_aux_hidden_state_layer_ids": {_list(meant)} beside the other settings.'


def _in_eagle_config(
    draft: Draft, found: tuple[int, ...], layers: int | None, version: releases.Version
) -> tuple[Severity, str, str] | None:
    """Say what becomes of a list in eagle_config: the old runner takes it as it is, the new one passes it over."""
    right, passed = _counted(draft, found), not version or version >= NEW_RUNNER
    if right == found and not passed:
        return None
    text = f"the layer ids {_list(found)} of {draft.given} stand in eagle_config"
    text += ": " if right == found else ", where SGLang and SpecForge write them less one: "
    text += f"its new runner does not read them there and takes {_default(layers)}" if passed else ""
    if right != found:
        text += ", its old one takes them as they are" if passed else "it takes them as they are, one too early"
    advice = f'"eagle_aux_hidden_state_layer_ids": {_list(right)} beside the other settings'
    return Severity.WARNING, f"{text}.", f"{advice}." if right == found else f"{advice}, if they are counted so."


def _list(numbers: "tuple[int, ...] | list[int]") -> str:
    return "[" + ", ".join(map(str, numbers)) + "]"
