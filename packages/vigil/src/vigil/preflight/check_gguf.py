"""Check a GGUF file against llama-server: whether that build knows its architecture, and whether it is a model at all."""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.placing import title, version_for
from vigil.preflight.seen_models import GgufSeen, ModelSeen
from vigil.preflight.sight import Sight

# `general.type` of files that are no model (gguf 0.19, GGUFType), and the flag that takes each.
OTHERS = {"adapter": ("a LoRA adapter", "--lora"), "mmproj": ("the eye or ear of a model", "--mmproj")}

_ENDS = {
    Severity.FATAL: ': it ends with "unknown model architecture"',
    Severity.WARNING: ", as far as the table of builds goes",
    Severity.NOTE: ", unless it came after the last build of the table",
}


def check_gguf(command: Command, sight: Sight, model: ModelSeen) -> Iterator[Finding]:
    """Find a file that is no model, and an architecture that this build cannot load."""
    if command.engine != "llamacpp":
        return
    seen = [one.gguf for one in model.files if one.gguf is not None]
    other = seen[0].other if model.kind == "file" and seen else ""
    if other:
        yield _no_model(model, *OTHERS[other])
        return
    whole = next((one for one in seen if not one.other and one.architecture), None)
    if whole is not None:
        yield from _architecture(command, sight, model, whole)


def _no_model(model: ModelSeen, what: str, flag: str) -> Finding:
    return Finding(
        code="FILE001",
        severity=Severity.FATAL,
        text=f"{model.given} is {what}, and no model that can be served alone.",
        advice=f"Name the model that it was made for, and give this file to {flag}.",
        seen="general.type and general.architecture in the file",
    )


def _architecture(command: Command, sight: Sight, model: ModelSeen, gguf: GgufSeen) -> Iterator[Finding]:
    """Find an architecture that is not among the build's.

    Sure are the strings of the installed library, and a build that the user names. A build that is only known by its number may
    be a branch that has more than the release of that number.
    """
    name, version, build = gguf.architecture, version_for(model, sight), model.build
    if build is not None:
        known, severity = bool(build.known), Severity.FATAL
        seen = "the names of architectures in the installed libllama"
    else:
        known = releases.serves("llamacpp", version, name)
        covered = releases.covers("llamacpp", version)
        severity = Severity.FATAL if covered and command.version is not None else Severity.WARNING
        newer = releases.numbers_of(version) > releases.numbers_of(releases.tables()["llamacpp"].releases[-1])
        severity = Severity.NOTE if newer else severity
        seen = f"LLM_ARCH_NAMES of llama.cpp's builds: {releases.span('llamacpp', name)}"
    if known:
        return
    yield Finding(
        code="ARCH001",
        severity=severity,
        text=f"{title(command, version)} does not know the architecture {name} of {model.given}{_ENDS[severity]}.",
        advice=f"Take a build that has it: {releases.span('llamacpp', name)}."
        if releases.tables()["llamacpp"].serves.get(name)
        else "A newer build may have it; a fork that made the file does.",
        seen=seen,
    )
