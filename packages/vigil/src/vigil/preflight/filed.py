"""The settings of the file behind `--config`, as words of the command: the engine makes them so, and each keeps its line.

vllm 0.32: utils/argparse_utils.py, FlexibleArgumentParser. SGLang 0.5.23: srt/utils/server_args_config_parser.py.
"""

import json
from collections.abc import Iterator

import msgspec

from vigil.preflight.command import Command, Filed, Given
from vigil.preflight.config_text import FILLED, Entry, read
from vigil.preflight.finding import Finding
from vigil.preflight.sight import FileSeen
from vigil.preflight.tables import table_of
from vigil.screen import plain

CONFIG = "--config"
ENGINES = ("sglang", "vllm")


def file_of(command: Command) -> Given | None:
    """Return the flag that names the file that the engine reads: both look for a word that is `--config` and nothing else."""
    given = [one for one in command.flags if one.name == CONFIG and one.count > 1]
    return given[0] if command.engine in ENGINES and len(given) == 1 else None


def with_file(command: Command, files: tuple[FileSeen, ...] | None) -> Command:
    """Return the command with the settings of its file as words of its own; as it is where there is none to be read."""
    given = file_of(command)
    seen = next((one for one in files or () if given is not None and one.given == given.value), None)
    if given is None or seen is None or seen.text is None:
        return command
    own = command.words[command.own : command.own + 1]
    start = command.own + (1 if own and not own[0].startswith("-") else 0)
    words, lines, found = list[str](), list[int](), read(seen.text)
    for entry in found.entries:
        if command.engine == "vllm" and entry.key == "model" and start > command.own:
            continue  # the word in the command counts
        made = list(_words(command.engine, entry))
        words += made
        lines += [entry.line] * len(made)
    end = command.end + len(words) if command.end is not None else None
    whole = found.mapping and found.wrong is None and found.unread is None and FILLED not in words
    filed = Filed(file=plain(seen.given, 200), at=given.at, start=start, lines=tuple(lines), whole=whole)
    return msgspec.structs.replace(
        command, words=(*command.words[:start], *words, *command.words[start:]), end=end, filed=filed
    )


def _words(engine: str, entry: Entry) -> Iterator[str]:
    flag, value = f"--{entry.key}", entry.value
    if isinstance(value, bool):
        yield from _switch(engine, entry.key, on=value)
    elif isinstance(value, list):
        yield from (flag, *map(str, value)) if value else ()
    elif isinstance(value, dict):
        yield from (flag, json.dumps(value))
    else:
        yield from (flag, str(value))


def _switch(engine: str, key: str, *, on: bool) -> Iterator[str]:
    """Yield what a truth becomes: vLLM's False is `--no-KEY` where there is one, SGLang's a word where the flag wants one."""
    table, name = table_of(engine), key.replace("_", "-")
    rows = table.named(f"--{name}") if table is not None else ()
    if engine == "vllm":
        if on:
            yield f"--{key}"
        elif table is not None and table.named(f"--no-{name}"):
            yield f"--no-{key}"
    elif rows and rows[-1].nargs == "0":
        yield from [f"--{key}"] if on else []
    else:
        yield from (f"--{key}", str(on).lower())


def in_file(filed: Filed | None, at: int | None) -> int | None:
    """Return the line of the file in which a word stands, None for one of the command itself."""
    if filed is None or at is None or not filed.start <= at < filed.start + len(filed.lines):
        return None
    return filed.lines[at - filed.start]


def without_file(words: tuple[str, ...], filed: Filed | None) -> tuple[str, ...]:
    """Return words without those of the file."""
    return words if filed is None else (*words[: filed.start], *words[filed.start + len(filed.lines) :])


def told_of(finding: Finding, filed: Filed) -> Finding | None:
    """Return a finding as one on the words that were typed: one on the file's is about the flag that names it, and says the line.

    None: it is none there, since a word of the command stands over the file's.
    """
    count, line = len(filed.lines), in_file(filed, finding.at)
    edits = tuple(
        msgspec.structs.replace(one, at=one.at - count if one.at >= filed.start + count else one.at)
        for one in finding.edits
        if not filed.start <= one.at < filed.start + count
    )
    if line is not None:
        if finding.code == "FLAG005":
            return None
        return msgspec.structs.replace(
            finding, text=f"{filed.file}, line {line}: {finding.text}", at=filed.at, count=2, edits=edits
        )
    moved = finding.at - count if finding.at is not None and finding.at >= filed.start + count else finding.at
    return msgspec.structs.replace(finding, at=moved, edits=edits)
