"""Check the files of a model: its config, its tokenizer, its weights against their index, and whether each file is whole."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import architectures
from vigil.preflight.placing import renamed
from vigil.preflight.seen_models import FileSeen, ModelSeen

SHOWN = 3
# Formats that read something else than the files that are looked at here (both engines' --load-format).
PLAIN_FORMATS = ("auto", "safetensors", "hf", "fastsafetensors", "instanttensor")
NO_TOKENIZER = ("--skip-tokenizer-init",)
OF_TEXT = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
# Any of these lets transformers or the engine make a tokenizer.
VOCABULARIES = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json", "spiece.model", "tiktoken.model",
    "sentencepiece.bpe.model", "vocab.bpe", "tokenizer.tok.json",
)  # fmt: skip


def check_files(command: Command, model: ModelSeen) -> Iterator[Finding]:
    """Find what is missing or broken among a model's files."""
    if model.path is None:
        return
    served = model.what == "model"
    if model.kind == "folder" and command.engine != "llamacpp":
        config = list(_config(command, model))
        yield from config
        if config and model.config is None:
            return
        yield from _tokenizer(command, model) if served else ()
    if reads_files(command, served=served):
        yield from _weights(command, model)


def reads_files(command: Command, *, served: bool) -> bool:
    """Tell whether the engine will read the safetensors and GGUF files that lie there."""
    flag = command.last("--load-format") if served else None
    return flag is None or (flag.value or "auto") in PLAIN_FORMATS


def _config(command: Command, model: ModelSeen) -> Iterator[Finding]:
    if model.config_broken and "config.json" not in model.pointers:
        text = f"config.json of {model.given} cannot be read: {model.config_trouble}."
        yield Finding(code="FILE002", severity=Severity.FATAL, text=text, advice="Fetch or write it again.")
    if "config.json" in model.pointers:
        text = f"config.json of {model.given} is a pointer of Git LFS: the file itself was never fetched."
        advice = "In that folder: git lfs pull. Or fetch it with hf download."
        yield Finding(code="FILE002", severity=Severity.FATAL, text=text, advice=advice)
    whole = model.config is not None or model.config_trouble is not None or model.more
    if (
        whole
        or model.gguf is not None
        or set(model.others) - {"adapter_config.json"}
        or (model.cached and not model.offline)
    ):
        return
    yield _no_config(command, model)


def _no_config(command: Command, model: ModelSeen) -> Finding:
    below = model.snapshots[0] if len(model.snapshots) == 1 else ""
    advice = "Name the folder that holds config.json."
    text = f"{model.given} has no config.json: it is no model."
    if model.snapshots:
        text = f"{model.given} has no config.json; {', '.join(model.snapshots[:SHOWN])} below it has."
    elif "adapter_config.json" in model.others:
        text = f"{model.given} has an adapter_config.json and no config.json: it is a LoRA adapter, and no model."
        advice = "Serve the model that it was made for, and give the adapter to --lora-modules or --lora-paths."
    edits = renamed(command, model, f"{model.given.rstrip('/')}/{below}") if below else ()
    return Finding(code="FILE001", severity=Severity.FATAL, text=text, advice=advice, edits=edits)


def _tokenizer(command: Command, model: ModelSeen) -> Iterator[Finding]:
    if command.last("--tokenizer", "--tokenizer-path", *NO_TOKENIZER) is not None:
        return
    for name in [one for one in model.pointers if one in VOCABULARIES][:1]:
        text = f"{name} of {model.given} is a pointer of Git LFS: the file itself was never fetched."
        advice = "In that folder: git lfs pull. Or fetch it with hf download."
        yield Finding(code="TOK001", severity=Severity.FATAL, text=text, advice=advice)
    has = any(one in VOCABULARIES or one.endswith((".tiktoken", ".py")) for one in model.tokenizer)
    speaks = model.config is not None and any(one.endswith(OF_TEXT) for one in architectures(model.config))
    if has or not speaks or model.more or model.gguf is not None or (model.cached and not model.offline):
        return
    yield Finding(
        code="TOK001",
        severity=Severity.FATAL,
        text=f"{model.given} has no tokenizer: none of {', '.join(VOCABULARIES[:4])}, and no other is named.",
        advice="Copy the tokenizer's files from the model that it was made from, or name it with "
        f"{'--tokenizer-path' if command.engine == 'sglang' else '--tokenizer'}.",
    )


def _weights(command: Command, model: ModelSeen) -> Iterator[Finding]:
    if model.index is not None and not (model.cached and not model.offline):
        yield from _index(model)
    broken = [one for one in model.files if one.trouble]
    if broken and _read_by(command, model):
        yield Finding(
            code="FILE002",
            severity=Severity.FATAL,
            text=_all_of(broken, model),
            advice=_advice(broken[0]),
        )
    if model.pickles and not model.files and model.config is not None:
        text = f"The weights of {model.given} are pickles ({', '.join(model.pickles[:SHOWN])}): they were not opened."
        yield Finding(code="FILE005", severity=Severity.NOTE, text=text)
    here = model.config is not None and model.kind == "folder" and command.engine != "llamacpp"
    if here and not (model.files or model.pickles or model.more or model.others or model.index):
        if model.cached and not model.offline:
            return
        text = f"{model.given} has a config.json, and no weights: no safetensors, GGUF or .bin file."
        yield Finding(code="FILE003", severity=Severity.FATAL, text=text, advice="Fetch the weights.")


def _read_by(command: Command, model: ModelSeen) -> bool:
    """Tell whether the engine reads these files: one that finds a folder takes safetensors first."""
    return model.kind == "file" or command.engine != "llamacpp"


def _index(model: ModelSeen) -> Iterator[Finding]:
    index = model.index
    if index is None:
        return
    if index.trouble is not None and "was not read" not in index.trouble:
        text = f"{index.name} of {model.given} cannot be read: {index.trouble}."
        yield Finding(code="FILE002", severity=Severity.FATAL, text=text, advice="Fetch it again.")
    if not index.missing_count or model.more:
        return
    # An index that names nothing of what is there may be left from another form of the model.
    stale = index.missing_count == index.shards and bool(model.files or model.pickles)
    some = ", ".join(index.missing[:SHOWN]) + (", ..." if index.missing_count > SHOWN else "")
    yield Finding(
        code="FILE003",
        severity=Severity.WARNING if stale else Severity.FATAL,
        text=f"{index.missing_count} of the {index.shards} files that {index.name} names are not in {model.given}: {some}.",
        advice="Fetch the rest: hf download goes on where it stopped.",
    )


def _all_of(broken: list[FileSeen], model: ModelSeen) -> str:
    first = f"{broken[0].name} of {model.given} cannot be loaded: {broken[0].trouble}."
    if len(broken) == 1:
        return first
    others = ", ".join(one.name for one in broken[1 : 1 + SHOWN]) + (", ..." if len(broken) > 1 + SHOWN else "")
    return f"{first} {len(broken) - 1} more of its {len(model.files)} files cannot be loaded either: {others}."


def _advice(broken: FileSeen) -> str:
    if broken.trouble and "Git LFS" in broken.trouble:
        return "In that folder: git lfs pull. Or fetch it with hf download."
    if broken.wanted_bytes is not None and broken.wanted_bytes > broken.size_bytes:
        return f"Fetch it again: {broken.wanted_bytes - broken.size_bytes} bytes are missing."
    return "Fetch it again, and compare its hash with the one that is published."
