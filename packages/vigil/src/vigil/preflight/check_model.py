"""Check of the models that a command names: where they are, their files, and whether they go with the engine and the flags."""

from collections.abc import Iterator

from vigil.preflight.check_fetch import check_rest
from vigil.preflight.check_files import check_files
from vigil.preflight.check_fit import check_fit
from vigil.preflight.check_gguf import check_gguf
from vigil.preflight.check_llama_memory import check_llama_memory
from vigil.preflight.check_place import check_place
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding
from vigil.preflight.placing import DRAFTS, TOKENIZERS, draft_of, placed
from vigil.preflight.seen_models import ModelSeen
from vigil.preflight.sight import Sight


def check_model(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find what is wrong with the served model, its tokenizer, and the draft as far as it is a model like any other."""
    for model in sight.models or ():
        if model.what == "model" or model.what in DRAFTS.get(command.engine, ()):
            yield from placed(command, model, check_place(command, model))
            yield from placed(command, model, check_files(command, model))
            yield from placed(command, model, check_rest(command, model))
            yield from placed(command, model, check_gguf(command, sight, model))
        elif _is_named_path(model):
            yield from placed(command, model, check_place(command, model))
        if model.what == "model":
            yield from check_fit(command, sight, model)
            yield from check_llama_memory(command, sight.host, model, draft_of(command, sight))


def _is_named_path(model: ModelSeen) -> bool:
    """Tell whether a tokenizer is named by a path that is not there; what else a flag may name is not known well enough."""
    return model.what in TOKENIZERS and model.path is None
