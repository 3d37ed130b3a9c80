"""See the models that a command names: where each lies, what its config says, which files it has, and whether they are whole."""

import difflib
import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..survey import models
from ..survey.interpreter import Place, elsewhere, scheduled
from . import builds, hub, llama_names, shards, vocabularies
from .pieces import is_pointer, parsed, piece, plain, shape_of, trimmed
from .remembered import Remembered

if TYPE_CHECKING:
    from .desk import Question

CONFIG_BYTES = 1 << 20
MOST_MODELS = 8
MOST_NEAR = 5
MOST_BELOW = 500
NEAR = 0.75
TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "merges.txt", "tekken.json",
    "spiece.model", "tiktoken.model", "sentencepiece.bpe.model", "vocab.bpe", "tokenizer.tiktoken", "tokenizer.tok.json",
)  # fmt: skip
# What makes a folder a model of another kind than those with a config.json.
OTHER_KINDS = (
    "params.json", "model_index.json", "adapter_config.json", "head.pt", "config.yaml", "hparams.yaml", "consolidated.00.pth",
)  # fmt: skip
# vLLM's file of names and paths; where transformers 4 looks before the hub's own cache.
ELSEWHERE = ("VLLM_MODEL_REDIRECT_PATH", "TRANSFORMERS_CACHE")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}\Z")
# Words that go to another folder, or to another user's, before the engine starts.
_MOVERS = {"cd", "pushd", "-C", "su", "runuser"}
_MOVING = ("--chdir", "--directory", "--workdir", "--working-directory")


def see(question: "Question") -> Optional[List[Dict[str, Any]]]:
    """Return what was seen of each model; None where the command runs elsewhere (a container): its paths are not ours."""
    if elsewhere(question.before):
        return None
    build = builds.Build(question) if question.models else None
    found = [_seen(one, question, build) for one in question.models[:MOST_MODELS]]
    vocabularies.see(found)
    return found


def _seen(asked: Dict[str, str], question: "Question", build: Optional["builds.Build"]) -> Dict[str, Any]:
    given, place = str(asked.get("given") or "")[:1000], question.place
    told: Dict[str, Any] = {"what": str(asked.get("what") or "model"), "given": plain(given)}
    path = models.find(given, asked.get("revision"), _where(given, question))
    if path is None or (not os.access(path, os.R_OK) and _by_another_user(question)):
        return {**told, "path": None, **_missing(given, question), "hub": _of_hub(asked, question)}
    memory = Remembered(path)
    want = shards.Want(told["what"] != "model", question.deep)
    found = _folder(path, memory, want) if os.path.isdir(path) else _file(path, memory, want)
    if question.engine == "llamacpp":
        found["build"] = llama_names.see(question, _architecture(found["files"]))
    elif build is not None:
        found["build"] = build.of(found.get("config"))
    memory.save()
    cached = "/snapshots/" in path and "/models--" in path
    if cached:
        found["hub"] = _of_hub(asked, question)
    return {**told, "path": plain(path), "cached": cached, "offline": hub.offline(place.env), **found}


def _of_hub(asked: Dict[str, str], question: "Question") -> Optional[Dict[str, Any]]:
    """Return what is known of a repository; None for what is none."""
    name = question.place.fill(str(asked.get("given") or "")[:1000])
    known = bool(_REPOSITORY.match(name.partition(":")[0])) and ".." not in name
    return hub.see(question.place, name, asked.get("revision")) if known else None


def _architecture(files: List[Dict[str, Any]]) -> str:
    """Return the architecture of the first GGUF file that is a model of language, "" where there is none."""
    told = (one["gguf"]["metadata"].get("general.architecture") for one in files if one.get("gguf"))
    return next((str(one) for one in told if one and one != "clip"), "")


def _missing(given: str, question: "Question") -> Dict[str, Any]:
    """Return why a model is not there: what lies beside its name, and whether it could be fetched."""
    place = question.place
    filled = place.fill(given)
    # What a variable stands for, or where a shell goes before, may not be what we see.
    sure = "$" not in given and "://" not in given and not moved(given, question) and not _by_another_user(question)
    sure = sure and not any(place.env.get(name) for name in ELSEWHERE) and not scheduled(question.before, place.env)
    path = place.resolve(given)
    parent = os.path.dirname(path)
    while parent != "/" and not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    names = shards.listing_of(os.path.dirname(path)).names if os.path.dirname(path) == parent else []
    cached = [
        name[len("models--") :].replace("--", "/")
        for name in shards.listing_of(hub.cache_of(place)).names
        if name.startswith("models--")
    ]
    repository = bool(_REPOSITORY.match(filled)) and not filled.startswith(".")
    return {
        "sure": sure,
        "repository": repository,
        "parent": plain(parent),
        "near": [plain(one) for one in _near(os.path.basename(path), names)],
        "near_cached": [plain(one) for one in _near(filled, cached)] if repository else [],
        "offline": hub.offline(place.env),
    }


def _where(given: str, question: "Question") -> Place:
    """Return where a model's name is looked up: of one that is read in a folder that we cannot know only the cache is."""
    return Place(question.place.env, "/dev/null") if moved(given, question) else question.place


def _by_another_user(question: "Question") -> bool:
    """Tell whether the engine runs as somebody who may see what we may not."""
    return any(word in {"sudo", "doas", "su", "runuser"} for word in question.words)


def moved(given: str, question: "Question") -> bool:
    """Tell whether a relative path is read in another folder than ours: something before the engine goes there."""
    goes = any(word in _MOVERS or word.startswith(_MOVING) for word in question.before)
    return goes and not given.startswith("/")


def _near(name: str, names: List[str]) -> List[str]:
    lower = {one.lower(): one for one in names}
    return [lower[one] for one in difflib.get_close_matches(name.lower(), list(lower), MOST_NEAR, NEAR)]


def _file(path: str, memory: Remembered, want: shards.Want) -> Dict[str, Any]:
    """See a model that is one file; of a split GGUF file all its parts."""
    folder, name = os.path.split(path)
    names, parts = [name], models.SPLIT.search(name)
    missing: List[str] = []
    if parts is not None:
        stem, count = name[: parts.start()], min(int(parts.group(2)), shards.MOST_FILES)
        names = ["%s-%05d-of-%s.gguf" % (stem, one, parts.group(2)) for one in range(1, count + 1)]
        missing = [one for one in names if not os.path.isfile(os.path.join(folder, one))]
    there = [one for one in names if one not in missing]
    beside = os.path.isfile(os.path.join(folder, "config.json"))
    found = shards.see(folder, there, memory, want)
    return {"kind": "file", "config_beside": beside, "parts_missing": missing[: shards.MOST_NAMED], **found}


def _folder(path: str, memory: Remembered, want: shards.Want) -> Dict[str, Any]:
    listing = shards.listing_of(path)
    names = listing.names
    if listing.more:  # what matters most is asked for by its name
        there = [one for one in ("config.json", *TOKENIZERS) if os.path.lexists(os.path.join(path, one))]
        names = sorted({*names, *there})
    tried = [] if "config.json" in names else names[:MOST_BELOW]
    below = [one for one in tried if os.path.isfile(os.path.join(path, one, "config.json"))]
    return {
        "kind": "folder",
        "more": listing.more,
        **_config(path, names, memory),
        "tokenizer": [one for one in names if one in TOKENIZERS or one.startswith(("tokenization_", "tokenizer_"))][
            :30
        ],
        "pointers": [
            one for one in ("config.json", *TOKENIZERS) if one in names and _is_pointer(os.path.join(path, one))
        ],
        "others": [one for one in OTHER_KINDS if one in names],
        "snapshots": _snapshots(path, names) + [plain(one) for one in below[:MOST_NEAR]],
        **shards.see(path, names, memory, want),
    }


def _snapshots(path: str, names: List[str]) -> List[str]:
    """Return the snapshots below a folder of Hugging Face's cache that was given as it is."""
    if "snapshots" not in names or "refs" not in names:
        return []
    found = shards.listing_of(os.path.join(path, "snapshots")).names
    there = [one for one in found if os.path.isfile(os.path.join(path, "snapshots", one, "config.json"))]
    return [plain(os.path.join("snapshots", one)) for one in there[:MOST_NEAR]]


def _is_pointer(path: str) -> bool:
    return is_pointer(piece(path, 0, 64) or b"")


def _config(path: str, names: List[str], memory: Remembered) -> Dict[str, Any]:
    """Return config.json, or why it cannot be read; with what it says of its quantisation in a file of its own."""
    quantised = [one for one in ("quantize_config.json", "quant_config.json", "hf_quant_config.json") if one in names]
    shape = shape_of(os.path.join(path, "config.json"))
    if "config.json" not in names or shape is None:
        return {"config": None, "config_trouble": None, "quantised_by": quantised}
    if not shape.regular:
        return {"config": None, "config_trouble": "it is no file", "config_broken": True, "quantised_by": quantised}
    found = memory.recall("config.json", shape)
    if found is None:
        found = read_config(os.path.join(path, "config.json"), shape.size)
        memory.keep("config.json", shape, found)
    return {**found, "quantised_by": quantised}


def read_config(path: str, size: int) -> Dict[str, Any]:
    """Return a config and None, or None and why it cannot be read. `config_broken`: no JSON parser could."""
    if size > CONFIG_BYTES:
        return {"config": None, "config_trouble": "it has %d bytes, and was not read" % size, "config_broken": False}
    data = piece(path, 0, CONFIG_BYTES)
    if data is None:
        return {"config": None, "config_trouble": "it cannot be read", "config_broken": False}
    try:
        told = parsed(data)
    except ValueError as error:
        return {"config": None, "config_trouble": plain(str(error))[:200], "config_broken": True}
    if not isinstance(told, dict):
        return {"config": None, "config_trouble": "it is no JSON object", "config_broken": True}
    try:
        return {"config": trimmed(told), "config_trouble": None, "config_broken": False}
    except ValueError as error:
        return {"config": None, "config_trouble": plain(str(error))[:200], "config_broken": False}
