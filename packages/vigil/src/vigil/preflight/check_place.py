"""Check that a model is where the command says: a path, or a repository that can be fetched."""

from collections.abc import Iterator

from vigil.preflight.check_fetch import check_fetch
from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.placing import renamed
from vigil.preflight.seen_models import ModelSeen

NO_FOLDERS = ("llamacpp",)
MOST_NAMED = 20  # of the parts that the scout names
_FETCHED = ("-hf", "-hfr", "--hf-repo", "-hfd", "-hfrd", "--spec-draft-hf", "--hf-repo-draft")


def check_place(command: Command, model: ModelSeen) -> Iterator[Finding]:
    """Find a model that is not there, or that is of the wrong kind for this engine."""
    if model.path is None:
        yield from _absent(command, model)
    elif model.kind == "folder" and command.engine in NO_FOLDERS and (is_path(command, model) or not model.cached):
        yield from _folder_for_a_file(command, model)
    elif model.kind == "file" and command.engine not in NO_FOLDERS:
        yield from _file_for_a_folder(command, model)
    for name in model.parts_missing[:1]:
        count = len(model.parts_missing) if len(model.parts_missing) < MOST_NAMED else f"{MOST_NAMED} or more"
        text = f"{count} parts of {model.given} are not there, the first is {name}."
        yield Finding(code="FILE003", severity=Severity.FATAL, text=text, advice="Fetch all parts.")


def _absent(command: Command, model: ModelSeen) -> Iterator[Finding]:
    if not model.sure:
        return
    if not is_path(command, model):
        yield from check_fetch(command, model)
        return
    joined = _joined(model.given, model.near[0]) if len(model.near) == 1 else ""
    where = f"{model.parent} is there" if model.parent not in {"", "/"} else "nothing of its path is there"
    like = f", and has {', '.join(model.near)}" if model.near else ""
    if model.near and model.given.rstrip("/").rpartition("/")[2] == model.near[0]:
        joined, where, like = "", "it is a link that leads nowhere", ""
    yield Finding(
        code="FILE001",
        severity=Severity.FATAL,
        text=f"{model.given} is not there: {where}{like}.",
        advice="Give the path as this host has it; a path of a container is not that of its host.",
        edits=renamed(command, model, joined) if joined else (),
    )


def is_path(command: Command, model: ModelSeen) -> bool:
    """Tell whether what was given can only be a path: no repository has such a name."""
    if command.engine == "llamacpp":
        return model.what not in _FETCHED and not _stands_for_a_repository(command, model)
    return (
        model.given.startswith(("/", "./", "../", "~", "\\")) or model.given.count("/") > 1 or model.given.endswith("/")
    )


def _stands_for_a_repository(command: Command, model: ModelSeen) -> bool:
    """Tell whether llama-server is told by a flag or a variable to fetch the model.

    Beside a repository or a URL --model is a name: of a file in the repository, or of the file to be written (common/arg.cpp).
    """
    if model.what != "model":
        return False
    elsewhere = ("-hf", "-hfr", "--hf-repo", "--model-url", "-mu", "--docker-repo", "-dr")
    named = any(command.env.get(name) for name in ("LLAMA_ARG_HF_REPO", "LLAMA_ARG_MODEL_URL", "LLAMA_ARG_DOCKER_REPO"))
    return named or command.last(*elsewhere) is not None


def _joined(given: str, name: str) -> str:
    head, slash, _ = given.rstrip("/").rpartition("/")
    return f"{head}{slash}{name}"


def _folder_for_a_file(command: Command, model: ModelSeen) -> Iterator[Finding]:
    names = [one.name for one in model.files if one.gguf is not None]
    has = f"it has {', '.join(names[:5])}" if names else "it has no GGUF file"
    edits: tuple[Edit, ...] = (
        renamed(command, model, f"{model.given.rstrip('/')}/{names[0]}") if len(names) == 1 else ()
    )
    yield Finding(
        code="FILE001",
        severity=Severity.FATAL,
        text=f"{model.given} is a folder, and llama-server takes a GGUF file: {has}.",
        advice="Name the file; a model of safetensors is converted first (convert_hf_to_gguf.py).",
        edits=edits,
    )


def _file_for_a_folder(command: Command, model: ModelSeen) -> Iterator[Finding]:
    if not model.given.endswith((".safetensors", ".bin", ".pt", ".pth")):
        return
    folder = model.given.rpartition("/")[0] or "."
    yield Finding(
        code="FILE001",
        severity=Severity.FATAL,
        text=f"{model.given} is one file of weights: this engine takes the folder with its config.json.",
        advice="Name the folder.",
        edits=renamed(command, model, folder) if model.config_beside else (),
    )
