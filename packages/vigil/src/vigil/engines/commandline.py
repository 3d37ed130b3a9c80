"""The words of a command line, through shells, wrappers and containers, and the values of its flags."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "su", "runuser", "script"})
_PACKERS = frozenset({"ssh", "tmux", "screen", "watch"})
"""Programs that take a whole command line as one word."""
_WRAP = "--wrap"
"""sbatch's flag for a command line as one word."""
_DEEPEST = 5
_LONGEST = 65536
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,100})=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w{0,100})|\{([A-Za-z_]\w{0,100})(?::?-([^{}]{0,200}))?\})")
_ENDS = frozenset({";", "&", "&&", "|", "||"})


def flatten(argv: Sequence[str], depth: int = 0) -> tuple[str, ...]:
    """Return the words of `argv`, those of a shell text (`bash -c "..."`, `ssh host "..."`) in place of the text."""
    words: list[str] = []
    shell = packer = False
    dashed_c = False
    for word in unglued(argv):
        name = program(word)
        text = " " in word.strip() or "\n" in word
        if text and depth < _DEEPEST and ((shell and dashed_c) or packer):
            words.extend(flatten(split(word), depth + 1))
            continue
        words.append(word)
        if name in _SHELLS or name in _PACKERS or word == _WRAP:
            shell, packer, dashed_c = name in _SHELLS, name in _PACKERS or word == _WRAP, False
        elif name.startswith("python"):
            shell = packer = False
        elif re.fullmatch(r"-[a-z]{0,6}c", word):
            dashed_c = True
    return tuple(words)


def unglued(argv: Sequence[str]) -> tuple[str, ...]:
    """Return `argv` with sbatch's `--wrap=TEXT` as two words."""
    found: list[str] = []
    batch = False
    for word in argv:
        glued = batch and word.startswith(f"{_WRAP}=")
        found += word.split("=", 1) if glued else [word]
        batch = batch or program(word) == "sbatch"
    return tuple(found)


def reglued(argv: Sequence[str], like: Sequence[str]) -> tuple[str, ...]:
    """Return `argv` with that flag and its text as one word, where they are one in another command line."""
    if unglued(like) == tuple(like):
        return tuple(argv)
    at = list(argv).index(_WRAP)
    return (*argv[:at], "=".join(argv[at : at + 2]), *argv[at + 2 :])


def split(text: str) -> tuple[str, ...]:
    """Return the words of a shell text; `;`, `&` and `|` are words of their own, redirections stay. Never raises."""
    text = text[:_LONGEST]
    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return tuple(lexer)
    except ValueError:  # an open quote: the shell would refuse it, but we only look
        return tuple(text.split())


def program(word: str) -> str:
    """Return the program that a word names: without folder and without `.exe`."""
    return PurePath(word).name.removesuffix(".exe") if "/" in word or word.endswith(".exe") else word


def until_end(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words up to the end of one command (`;`, `&&`, `|`)."""
    for index, word in enumerate(words):
        if word in _ENDS:
            return tuple(words[:index])
    return tuple(words)


def assignments(words: Iterable[str]) -> dict[str, str]:
    """Return the `NAME=value` words: what a shell, `env` or `docker run -e` would put into the environment."""
    found: dict[str, str] = {}
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is not None:
            found[match.group(1)] = match.group(2)
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with `$NAME`, `${NAME}` and `${NAME:-default}` filled in; an unknown name becomes empty."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return variables.get(name) or match.group(3) or ""

    return _VARIABLE.sub(value, text)


def values(words: Sequence[str], flags: Iterable[str]) -> list[str]:
    """Return the values given to `flags` in order: `--flag value`, `--flag=value`; an empty string where none follows.

    `_` and `-` are the same within a long flag, as vLLM takes it; `--flag.key value` counts as `--flag`.
    """
    wanted = {_plain(flag) for flag in flags}
    found: list[str] = []
    for index, word in enumerate(words):
        if not word.startswith("-"):
            continue
        flag, equals, value = word.partition("=")
        if _plain(flag) not in wanted and _plain(flag.partition(".")[0]) not in wanted:
            continue
        following = words[index + 1] if index + 1 < len(words) else ""
        found.append(value if equals else "" if _is_flag(following) else following)
    return found


def _plain(flag: str) -> str:
    return "--" + flag[2:].replace("_", "-") if flag.startswith("--") else flag


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word)
