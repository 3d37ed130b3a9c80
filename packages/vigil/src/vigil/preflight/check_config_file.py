"""The file behind `--config`: whether the engine reads it, and whether it can."""

from collections.abc import Iterator

from vigil.preflight.command import Command, Given
from vigil.preflight.config_text import Read, read
from vigil.preflight.filed import CONFIG, ENGINES, file_of
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.pointed import pointed
from vigil.preflight.sight import Sight
from vigil.screen import plain

ENDINGS = (".yaml", ".yml")
_SEEN = {"vllm": "vllm 0.32, FlexibleArgumentParser", "sglang": "SGLang 0.5.23, ConfigArgumentMerger"}


def check_config_file(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find a file that the engine cannot read, or that it does not read."""
    if command.engine in ENGINES:
        yield from _written(command)
        flag = file_of(command)
        if flag is not None and flag.value and "$" not in flag.value:
            yield from _named(command, flag, flag.value, sight)


def _written(command: Command) -> Iterator[Finding]:
    """Find the flag in a form in which nobody looks for it, and twice."""
    given, seen = [one for one in command.flags if one.name == CONFIG], _SEEN[command.engine]
    for one in given:
        if one.count == 1 and one.value:
            path = plain(one.value, 120)
            text = f"{CONFIG}={path}: the file is read only where {CONFIG} is a word of its own, so it is not"
            edits = (Edit(at=one.at, drop=1, put=(CONFIG, one.value)),)
            yield pointed(one, "FLAG002", Severity.WARNING, text, f"{CONFIG} {path}", edits=edits, seen=seen)
    if len([one for one in given if one.count > 1]) > 1:
        text = f"{CONFIG} is given more than once"
        yield pointed(given[0], "FLAG002", Severity.FATAL, text, "put all settings in one file", seen=seen)


def _named(command: Command, flag: Given, path: str, sight: Sight) -> Iterator[Finding]:
    """Find a file that is not there, or is no YAML."""
    name, seen = plain(path, 120), next((one for one in sight.files or () if one.given == path), None)
    told: list[tuple[str, str]] = []
    if not path.lower().endswith(ENDINGS):
        told.append((f"{CONFIG} {name}: its name must end with .yaml or .yml", "rename it; what is in it must be YAML"))
    if seen is not None and seen.text is not None:
        told += _text(name, read(seen.text), empty=not seen.text.strip() and command.engine == "vllm")
    elif seen is not None and seen.sure:
        why = plain(seen.trouble or "it cannot be read", 200)
        told.append((f"{CONFIG} {name}: {why}", "give the path of a YAML file, from the folder of the start"))
    if command.filed is not None and not _has_model(command):
        told.append(
            (
                f"neither the command nor {name} names a model",
                "put it behind `vllm serve`, or into the file: model: NAME",
            )
        )
    for text, advice in told:
        yield pointed(flag, "FLAG002", Severity.FATAL, text, advice, seen=_SEEN[command.engine])


def _has_model(command: Command) -> bool:
    """Tell whether `vllm serve` finds a model, which it looks for before all else; others say themselves what is missing."""
    before, own = command.words[command.own - 1 : command.own], command.words[command.own : command.own + 1]
    named = command.last("--model", "--model-tag") is not None or (bool(own) and not own[0].startswith("-"))
    return command.engine != "vllm" or before != ("serve",) or named


def _text(name: str, found: Read, *, empty: bool) -> Iterator[tuple[str, str]]:
    if found.wrong is not None:
        line, why = found.wrong
        yield f"{name}, line {line}: {plain(why, 200)}", "the engine ends over it"
    elif not found.mapping or empty:
        what = "is empty" if empty else "holds no settings, but a list or a word"
        yield f"{name} {what}", "write a flag without its dashes, a colon, its value, one a line"


def unread(command: Command, sight: Sight) -> tuple[str, ...]:
    """Return what of a file was not looked at, in a line."""
    flag = file_of(command)
    if flag is None or not flag.value:
        return ()
    name = f"{CONFIG} {plain(flag.value, 120)}"
    seen = next((one for one in sight.files or () if one.given == flag.value), None)
    if seen is None or (seen.text is None and not seen.sure):
        return (f"{name}: the file was not read, and its settings are not checked",)
    line = read(seen.text).unread if seen.text is not None else None
    return (f"{name}: from line {line} on it was not understood, and is not checked",) if line is not None else ()
