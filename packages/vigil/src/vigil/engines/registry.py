"""Which engine it is: by name, by command line, or by what it prints."""

from collections.abc import Sequence

from vigil.engine_table import EngineTable, printed_by, version_in
from vigil.engines import generic, llamacpp, sglang, vllm
from vigil.engines.commandline import flatten, program, until_end, values
from vigil.errors import UsageError

TABLES: dict[str, EngineTable] = {one.name: one for one in (sglang.TABLE, vllm.TABLE, llamacpp.TABLE, generic.TABLE)}
"""All tables by name."""

_OTHER_NAMES = {"llama-server": "llamacpp", "llama.cpp": "llamacpp", "llama": "llamacpp", "job": "generic"}
_HEAD_CHARS = 400


def table(name: str) -> EngineTable:
    """Return the table of the engine called `name`; raise `UsageError` where there is none."""
    plain = name.strip().lower()
    found = TABLES.get(_OTHER_NAMES.get(plain, plain))
    if found is None:
        raise UsageError(f"there is no engine {name!r}: choose one of {', '.join(TABLES)}")
    return found


def detect(argv: Sequence[str]) -> EngineTable:
    """Return the engine that a command line starts, however it is wrapped; the generic table where none is seen."""
    return find(argv)[0]


def find(argv: Sequence[str]) -> tuple[EngineTable, tuple[str, ...], tuple[str, ...]]:
    """Return the engine of `argv`, the words before its own arguments, and its own arguments.

    Where no engine is seen: the generic table, no words, all words.
    """
    words = flatten(argv)
    for one in TABLES.values():
        for command in one.commands:
            at = _command_at(words, command.split())
            if at is not None:
                return one, words[:at], until_end(words[at:])
    for one in TABLES.values():  # an image says less than a command: the command that follows it may be another one
        for index, word in enumerate(words):
            if _is_image(word, one.images):
                begin = _behind_image(words, index, one)
                return (one, words[:begin], until_end(words[begin:])) if begin else (one, (), words)
    return TABLES["generic"], (), words


def _behind_image(words: Sequence[str], image: int, table: EngineTable) -> int:
    """Return where the engine's own words begin behind its image; 0 where another entry point reads them."""
    entries = values(words[:image], ("--entrypoint",))
    if not entries or not entries[-1]:
        return image + 1
    for command in table.commands:
        first, *rest = command.split()
        if _names(entries[-1], first) and list(words[image + 1 : image + 1 + len(rest)]) == rest:
            return image + 1 + len(rest)
    return 0


def detect_text(line: str) -> EngineTable | None:
    """Return the engine that printed `line`, where the line can be nobody else's, else None."""
    return printed_by(line[:_HEAD_CHARS], TABLES.values())


def engine_version(line: str) -> str | None:
    """Return the engine's version where `line` states it, else None."""
    head = line[:_HEAD_CHARS]
    return next((found for one in TABLES.values() if (found := version_in(head, one)) is not None), None)


def _command_at(words: Sequence[str], command: Sequence[str]) -> int | None:
    """Return the index after the words of `command` in `words`, or None."""
    for index, word in enumerate(words):
        if not _names(word, command[0]):
            continue
        if len(command) == 1:
            if _may_be_program(words, index):
                return index + 1
            continue
        if tuple(words[index + 1 : index + len(command)]) == tuple(command[1:]):
            return index + len(command)
    return None


def _names(word: str, name: str) -> bool:
    """Say whether `word` is the program or Python module `name`, or the file of that module."""
    if "://" in word:
        return False
    if "." in name and "/" in word:
        return word.endswith("/" + name.replace(".", "/") + ".py")
    return word == name or program(word) == name


def _may_be_program(words: Sequence[str], index: int) -> bool:
    """Say whether the word stands where a program can: not as the value of a long flag (`--name llama-server`)."""
    before = words[index - 1] if index else ""
    return (
        not before.startswith("--") or before == "--" or "=" in before or before in {"--rm", "--init", "--privileged"}
    )


def _is_image(word: str, images: Sequence[str]) -> bool:
    """Say whether `word` is one of `images`, with any registry before it and any tag or digest after it."""
    if "://" in word or "=" in word:
        return False
    for image in images:
        at = word.find(image)
        if at < 0 or (at and word[at - 1] != "/"):
            continue
        rest = word[at + len(image) :]
        if not rest or rest[0] in ":@-":
            return True
    return False
