"""Check of the draft model: whether it is what was asked for, and what this engine will make of it."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.draft_eagle3 import check_eagle3
from vigil.preflight.draft_gguf import check_gguf
from vigil.preflight.draft_kind import Draft, draft_from
from vigil.preflight.draft_method import check_method
from vigil.preflight.draft_pair import check_pair
from vigil.preflight.finding import Finding
from vigil.preflight.placing import draft_of, placed, served, version_for
from vigil.preflight.seen_models import ModelSeen
from vigil.preflight.sight import Sight


def check_draft(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find what is wrong with the draft, alone and beside its target."""
    model, target = draft_of(command, sight), served(sight)
    if model is None or model.path is None:
        return
    if command.engine == "llamacpp":
        yield from placed(command, model, check_gguf(command, model, target, version_for(model, sight)))
        return
    draft, version = draft_from(model), version_for(model, sight)
    if draft is not None and draft.kind not in {"other", ""}:
        yield from placed(command, model, _by_kind(command, model, draft, target, version))


def _by_kind(
    command: Command, model: ModelSeen, draft: Draft, target: ModelSeen | None, version: str | None
) -> Iterator[Finding]:
    wrong = list(check_method(command, model, draft, version))
    yield from wrong
    if wrong or draft.kind == "model":
        yield from () if wrong else check_pair(command, model, draft, target, version)
        return
    if draft.kind == "eagle3":
        yield from check_eagle3(command, model, draft, target, version)
