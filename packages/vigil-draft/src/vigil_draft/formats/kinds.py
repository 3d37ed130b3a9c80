"""Which format a draft is in, by its config and the names of its tensors: who would have written it so."""

from collections.abc import Iterable

from vigil.preflight.model_config import Config, architectures

TITLES = {
    "original": "the original EAGLE-3 (SafeAILab)",
    "specforge": "SpecForge (TorchSpec writes the same)",
    "sglang": "SGLang's flat form",
    "speculators": "speculators",
    "vllm": "vLLM's flat form",
}
# How each counts the target's layers in its list of ids: a boundary is the state after so many layers.
IDS = {
    "original": "outputs of layers, as SGLang reads them: one less than the boundary",
    "specforge": "outputs of layers: one less than the boundary",
    "sglang": "outputs of layers: one less than the boundary",
    "speculators": "boundaries",
    "vllm": "boundaries",
}


def format_of(config: Config, names: Iterable[str]) -> str:
    """Return the format of a draft, a key of `TITLES`.

    The names of its class tell it, and beneath LlamaForCausalLMEagle3 those of its layer: trainers write `midlayer.`.
    """
    if "speculators_model_type" in config or isinstance(config.get("transformer_layer_config"), dict):
        return "speculators"
    classes = architectures(config)
    if any(one.startswith("Eagle3") for one in classes):
        return "vllm"
    if not any("eagle3" in one.lower() for one in classes):
        return "original"
    return "specforge" if any(one.removeprefix("model.").startswith("midlayer.") for one in names) else "sglang"
