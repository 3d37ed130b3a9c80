"""Check the settings of an EAGLE-3 draft that change what it computes: those that an engine does not read, or reads as another.

Read in the engines' llama_eagle3.py (SGLang 0.5.23, vLLM 0.32), in speculators 0.9.0 and in SpecForge 0.2.0.
"""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import part
from vigil.preflight.placing import title

# Settings that change what the draft computes, by the word by which a release shows that it reads them.
SETTINGS = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "attention_bias")
USUAL_THETA = 10_000
"""What transformers before 5 takes where a config has no rope_theta (LlamaConfig)."""
NO_WINDOW = (0, 9, 2)
"""vLLM up to this release reads no layer_types; of those between it and 0.10.2 it was not looked up."""
# What their wheels pin: 0.5.6 transformers 4.57.1 (0.5.10: 5.3.0), 0.13.0 less than 5 (0.16.0 was not looked up).
OLD_TRANSFORMERS = {"sglang": (0, 5, 6), "vllm": (0, 13, 0)}


def asks(draft: Draft, name: str) -> bool:
    """Tell whether the draft's config asks for something, in eagle_config or beside it."""
    return part(draft.config, "eagle_config").get(name, draft.config.get(name)) is True


def check_settings(
    command: Command, draft: Draft, version: str | None, reads: frozenset[str] | None
) -> Iterator[Finding]:
    """Find settings with which an engine computes something else than was trained. `reads`: None where it is not known."""
    name = title(command, version)
    if reads is not None and (draft.is_llama or draft.is_qwen3):
        yield from _unread(draft, reads, name)
        yield from _unsaid(command, draft, reads, name)
        yield from _norm_output(draft, reads, name)
    yield from _passed_over(command, draft, name)
    yield from _window(command, draft, version, name)
    yield from _theta(command, draft, version, name)


def _finding(text: str, advice: str, seen: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(code="DRAFT005", severity=severity, text=text, advice=advice, seen=seen)


def _unread(draft: Draft, reads: frozenset[str], name: str) -> Iterator[Finding]:
    """Find settings that this release does not read."""
    unread = [one for one in SETTINGS if asks(draft, one) and one not in reads]
    if unread:
        yield _finding(
            f"{name} does not read {', '.join(unread)} of {draft.given}: it computes something else than was "
            "trained, without a word, and accepts less.",
            "Train the draft without it, or take an engine that reads it.",
            "llama_eagle3.py does not name it",
        )


def _unsaid(command: Command, draft: Draft, reads: frozenset[str], name: str) -> Iterator[Finding]:
    """Find a config of speculators that leaves out what vLLM then takes for true, and speculators for false."""
    silent = draft.speculators and "norm_before_residual" not in draft.config
    if silent and command.engine == "vllm" and "norm_before_residual" in reads:
        yield _finding(
            f"config.json of {draft.given} does not say norm_before_residual: {name} takes that for true, and speculators, which "
            "wrote it, for false.",
            'Write "norm_before_residual": false into it, if speculators trained it so.',
            "vLLM 0.32: speculators/algos.py, update_eagle3; speculators 0.9.0: Eagle3SpeculatorConfig",
        )


def _norm_output(draft: Draft, reads: frozenset[str], name: str) -> Iterator[Finding]:
    """Find norm_output of SpecForge, which norms what the head is given; to engines it is what the next step is given."""
    by_specforge = not draft.speculators and any(one.startswith("midlayer.") for one in draft.tensors)
    told = draft.config.get("norm_output")
    if not by_specforge or not isinstance(told, bool) or (told and "norm_output" not in reads):
        return
    what = "feeds the normed state into its next step" if told else "norms the state before its head"
    yield _finding(
        f"{draft.given} has SpecForge's names and norm_output {str(told).lower()}: {name} {what}, and SpecForge did not.",
        "If SpecForge trained it: leave norm_output out of its config.json."
        if told
        else "If SpecForge trained it: train it again without norm_output; no engine leaves that norm out.",
        "SpecForge 0.2.0: llama3_eagle.py, compute_logits; SGLang 0.5.23 and vLLM 0.32: llama_eagle3.py, norm_output",
    )


def _passed_over(command: Command, draft: Draft, name: str) -> Iterator[Finding]:
    """Find a draft as wide as all its inputs together: SGLang tells by that width whether fc has been applied."""
    wide, into = draft.hidden_size, draft.target_hidden_size
    if command.engine == "sglang" and wide is not None and into is not None and wide == draft.fed_from * into:
        yield Finding(
            code="DRAFT002",
            severity=Severity.WARNING,
            text=f"{draft.given} is {wide} wide, as are its {draft.fed_from} inputs of {into} together: {name} takes them for a "
            "state that has been through fc, passes fc.weight over without a word, and accepts less.",
            advice="Train a draft of another width.",
            seen="SGLang 0.4.9 to 0.5.23: llama_eagle3.py, hidden_states.shape[-1] != embeds.shape[-1]",
        )


def _window(command: Command, draft: Draft, version: str | None, name: str) -> Iterator[Finding]:
    """Find a draft that was trained to look back so far only, where an engine lets it look at everything."""
    flag, sglang = "--speculative-draft-window-size", command.engine == "sglang"
    unread = sglang or () < releases.numbers_of(version) <= NO_WINDOW
    if draft.window is None or not unread or command.last(flag) is not None:
        return
    yield _finding(
        f"{draft.given} was trained with a window of {draft.window} tokens (sliding_window), and {name} does not read "
        "that: it attends to everything, and in longer texts accepts less.",
        f"Give {flag} {draft.window} (0.5.12 or later)." if sglang else "Take 0.10.2 or a later release.",
        "SGLang 0.5.23: llama_eagle3.py takes the window from speculative_draft_window_size alone"
        if sglang
        else "vLLM 0.9.2: llama.py reads no layer_types, 0.10.2 does",
    )


def _theta(command: Command, draft: Draft, version: str | None, name: str) -> Iterator[Finding]:
    """Find a rope_theta that transformers before 5 does not find."""
    told = part(draft.config, "rope_parameters").get("rope_theta")
    numbers = releases.numbers_of(version)
    old = () < numbers <= OLD_TRANSFORMERS.get(command.engine, ())
    if old and "rope_theta" not in draft.config and isinstance(told, int | float) and told != USUAL_THETA:
        yield _finding(
            f"rope_theta {told:g} of {draft.given} stands in rope_parameters alone: {name}, whose transformers is older than 5, "
            f"takes {USUAL_THETA}, and hardly a token is accepted.",
            f'Write "rope_theta": {told:g} into its config.json, beside rope_parameters.',
            "transformers 4: LlamaConfig reads no rope_parameters",
        )
