"""Check that the method of speculation that was asked for is that of the draft."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.placing import config_in, in_config, place_of, speculation, title
from vigil.preflight.pointed import with_value
from vigil.preflight.seen_models import ModelSeen

WORDS = {
    "eagle3": "an EAGLE-3 draft",
    "eagle": "a draft of EAGLE 1 or 2",
    "model": "a model of its own, and no EAGLE draft",
}
# What each engine calls the method of a kind of draft.
METHODS = {
    "sglang": {"eagle3": "EAGLE3", "eagle": "EAGLE", "model": "STANDALONE"},
    "vllm": {"eagle3": "eagle3", "eagle": "eagle", "model": "draft_model"},
}
KINDS = {"eagle3": "eagle3", "eagle": "eagle", "nextn": "eagle", "standalone": "model", "draft_model": "model"}
KEPT = ("eagle", "eagle3", "dflash", "dspark")


def check_method(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find a draft that is asked for as something else than it is."""
    named, flag = speculation(command)
    asked = KINDS.get(_by_vllm(named, model.given) if command.engine == "vllm" else named)
    if asked is None or asked == draft.kind or flag is None:
        return
    right = METHODS[command.engine][draft.kind]
    edits: tuple[Edit, ...] = ()
    if command.engine == "sglang":
        edits = with_value(flag, right) if flag.value else ()
    elif config_in(flag):
        edits = in_config(flag, {"method": right})
    at, count = (flag.at, flag.count) if edits else place_of(command, model)
    how = f"asks for {METHODS[command.engine][asked]}"
    if command.engine == "vllm" and not named:
        how = f"names no method, so that it is taken for {asked if asked != 'model' else 'an ordinary draft model'}"
    yield Finding(
        code="DRAFT001",
        severity=Severity.FATAL,
        text=f"{model.given} is {WORDS[draft.kind]}, and the command {how}: {_end(command, asked, draft, version)}.",
        advice=f"Ask for {right}."
        if draft.kind != "model"
        else f"Ask for {right}, if both have one tokenizer; or name an EAGLE draft.",
        at=at,
        count=count,
        edits=edits,
        seen=_shown(draft),
    )


def _by_vllm(named: str, path: str) -> str:
    """Return the method that vLLM comes to (0.32: SpeculativeConfig.__post_init__): a path may overrule what was asked for."""
    if named in KEPT or (named and named != "draft_model"):
        return named
    lower = path.lower()
    return "eagle" if "eagle-" in lower else "eagle3" if "eagle3" in lower else "draft_model"


def _end(command: Command, asked: str, draft: Draft, version: str | None) -> str:
    engine = title(command, version)
    if command.engine == "sglang" and (asked, draft.kind) == ("eagle", "eagle3"):
        # SGLang 0.5.23: is_eagle3() is false, so that the target hands out its last state only, `fc` is passed over, since
        # that is as wide as the embedding, and the target's head takes the place of the draft's.
        return f"{engine} would pass over its fc and its head without a word, and hardly a token would be accepted"
    return f"{engine} would end in an error, or accept nothing"


def _shown(draft: Draft) -> str:
    if not draft.tensors:
        return "its config.json"
    kinds = {
        "eagle3": "fc.weight, and a hidden_norm or d2t",
        "eagle": "fc.weight, and no hidden_norm",
        "model": "no fc.weight",
    }
    return f"its tensors: {kinds[draft.kind]}"
