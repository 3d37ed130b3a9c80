"""llama-server's flags, read from what its `--help` prints. Only a binary is run for that: a script might start a server."""

import os
import re
import subprocess
import time
from typing import Any, Dict, List, Optional

from ..survey.digest import ends_sha256
from ..survey.interpreter import Program
from . import parser_kept
from .literals import Flag
from .parser_asked import end, read_until
from .parser_place import Engine

PATIENCE_S = 10.0
HELP_BYTES = 1 << 20
LEAST = 40  # fewer flags than any llama-server ever had
_NAME = re.compile(r"-{1,2}[A-Za-z0-9][A-Za-z0-9_.-]*")
_BUILD = re.compile(rb"version: (?:b|v)?(\d{1,6})\b")
_HINTS = re.compile(r"(?:<[^>]*>|[^\s<])+")  # one value may be `<tensor name pattern>=<buffer type>,...`
_REMOVED = re.compile(r"argument has been removed\. (.*?)(?:\(env|$)")
_CHOICES = re.compile(r"\{([a-z0-9_-]+(?:,[a-z0-9_-]+)+)\}\Z")


def see_help(program: Program) -> Dict[str, Any]:
    """Return what was seen, as a `ParserSeen`."""
    if program.python or not os.path.basename(program.path).startswith("llama-server"):
        why = "%s is not llama-server's own binary: it was not run" % (program.script or program.path)
        return {"trouble": why, "foreign": True}
    real = os.path.realpath(program.path)
    base = {"interpreter": program.path}
    key = parser_kept.key_of(real, Engine("llamacpp", ends_sha256(real), real, "", None, {}))
    kept = parser_kept.load(key)
    if kept is not None:
        return {**kept, **base, "kept": True}
    text = _printed(program.path, "--help")
    flags = flags_of((text or b"").decode("utf-8", "replace"))
    if len(flags) < LEAST:
        return {**base, "trouble": "%s --help told no flags within %d s" % (program.path, PATIENCE_S)}
    told = _BUILD.search(_printed(program.path, "--version") or b"")
    version = told.group(1).decode() if told is not None else None
    found: Dict[str, Any] = {**base, "how": "help", "version": version, "flags": flags, "files": {}}
    parser_kept.save(key, found)
    return found


def _printed(path: str, word: str) -> Optional[bytes]:
    """Return what a program prints, or None where it takes too long."""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "LLAMA_OFFLINE": "1"}
    try:
        process = subprocess.Popen(
            [path, word],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        return (
            read_until(process.stdout.fileno(), time.monotonic() + PATIENCE_S, HELP_BYTES) if process.stdout else None
        )
    finally:
        end(process)
        if process.stdout:
            process.stdout.close()


def flags_of(text: str) -> List[Flag]:
    """Return the flags of a help text: `-c,    --ctx-size N      size of ...`, what it says below them included."""
    found: List[Flag] = []
    told: List[str] = []  # what is said of each
    for line in text.splitlines():
        if line.startswith("---"):  # a heading
            continue
        flag = _flag(line) if line.startswith("-") else None
        if flag is not None:
            found.append(flag)
            told.append("")
        if found:
            told[-1] += " " + line.strip()
    for flag, words in zip(found, told):  # noqa: B905 - Python 3.9
        removed = _REMOVED.search(words)
        if removed is not None:
            flag.update(instead=removed.group(1).strip(), dead=True)
        elif "DEPRECATED" in words:
            flag["instead"] = ""
    return found


def _flag(line: str) -> Optional[Flag]:
    """Return the flag of one line: its names with commas between them, the words that stand for its values, two blanks."""
    rest = line
    names: List[str] = []
    while True:
        told = _NAME.match(rest)
        if told is None:
            break
        names.append(told.group(0))
        rest = rest[told.end() :]
        if not rest.startswith(","):
            break
        rest = rest[1:].lstrip(" ")
    hint = re.split(r"\s{2,}", rest.strip(" ") if rest.startswith(" ") and not rest.startswith("  ") else "")[0]
    if not names:
        return None
    flag: Flag = {"names": names, "nargs": str(len(_HINTS.findall(hint)))}
    choices = _CHOICES.match(hint)
    if choices is not None:
        flag["choices"] = choices.group(1).split(",")
    return flag
