"""Ask the engine's parser itself: make it in its own interpreter, without a GPU, without the network, within a time limit.

What runs is only what a start would run first: the import of the parser's module, and the making of the parser. No argument is
parsed, and no compiled file is left behind.
"""

import json
import os
import signal
import subprocess
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ..survey.interpreter import Place, Program
from .parser_place import Engine

PATIENCE_S = 40.0
ANSWER_BYTES = 8 << 20
# No GPU is seen, nothing is fetched or reported, nothing is written beside the sources.
_QUIET = {
    "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip

# Runs in the engine's interpreter, whichever Python that is. argv: pipe, engine, its folder, first place.
_SCRIPT = r"""
import os, sys
os.set_inheritable(int(sys.argv[1]), False)
pipe, engine, folder, first = int(sys.argv[1]), sys.argv[2], os.path.realpath(sys.argv[3]), sys.argv[4]
os.nice(10)
sys.argv[:] = ["-c"]
sys.path[0] = first
def sglang():
    import argparse
    from sglang.srt.server_args import ServerArgs
    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    return parser
def vllm():
    import importlib
    def first_of(names):
        for name in names:
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as error:
                if not name.startswith(error.name or "?"):
                    raise
                last = error
        raise last
    made = first_of(["vllm.entrypoints.%s.cli_args" % one for one in ("common", "launchers", "openai")])
    kind = first_of(["vllm.utils.argparse_utils", "vllm.utils"]).FlexibleArgumentParser
    return made.make_arg_parser(kind())
def kind_of(told):
    name = getattr(told, "__name__", "")
    if name in ("_optional_type", "_parse_type") and getattr(told, "__closure__", None):
        return kind_of(told.__closure__[0].cell_contents)
    if told in (int, float):
        return name
    return "json" if name == "loads" else "size" if name.startswith("human_readable_int") else None
def plain(told):
    return told is None or told is str or kind_of(told) in ("int", "float") or (
        getattr(told, "__name__", "") == "_optional_type" and plain(told.__closure__[0].cell_contents))
def flag(one):
    row = {"names": list(one.option_strings), "nargs": "1" if one.nargs is None else str(one.nargs)}
    if row["nargs"] not in ("0", "1", "?", "*", "+") and not row["nargs"].isdigit():
        row["nargs"] = "~"
    if kind_of(one.type) is not None:
        row["type"] = kind_of(one.type)
    if one.choices is not None and plain(one.type):
        row["choices"] = [str(choice)[:200] for choice in list(one.choices)[:400]]
    if one.required:
        row["required"] = True
    if isinstance(one.default, (str, int, float)) and one.default != "==SUPPRESS==":
        row["default"] = str(one.default)[:200]
    message, new = getattr(one, "error_message", None), getattr(one, "new_flag", None)
    if "Deprecated" in type(one).__name__ or getattr(one, "deprecated", False):
        row["instead"] = str(message or new or "")[:400]
        if message:
            row["dead"] = True
    return row
def broken(error):
    import traceback
    row = {"kind": type(error).__name__, "text": "%s: %s" % (type(error).__name__, str(error)[:400])}
    frames = traceback.extract_tb(error.__traceback__)
    frames = [one for one in frames if os.path.realpath(one.filename).startswith(folder + os.sep)]
    if isinstance(error, SyntaxError):
        row.update(file=error.filename, line=error.lineno)
    elif frames:
        row.update(file=frames[-1].filename, line=frames[-1].lineno)
    return row
import json
try:
    parser = (sglang if engine == "sglang" else vllm)()
    answer = {"flags": [flag(one) for one in parser._actions if one.option_strings]}
except BaseException as error:
    answer = {"broken": broken(error)}
paths = {os.path.realpath(getattr(one, "__file__", None) or "/") for one in list(sys.modules.values())}
answer["files"] = sorted(one for one in paths if one.startswith(folder + os.sep) and one.endswith(".py"))[:4000]
data = json.dumps(answer).encode() + b"\n"
while data:
    data = data[os.write(pipe, data):]
os._exit(0)
"""


class Asked(NamedTuple):
    """The answer: flags, or how the parser died, or why there is none. `files`: hashes of what was imported of it."""

    flags: Optional[List[Dict[str, Any]]]
    broken: Optional[Dict[str, Any]]
    files: Dict[str, str]
    trouble: Optional[str]


def ask(name: str, program: Program, place: Place, engine: Engine) -> Asked:
    """Make the parser and return what it takes."""
    reading, writing = os.pipe()
    first = os.path.dirname(program.script) if program.script else ""
    words = [program.path, "-c", _SCRIPT, str(writing), name, engine.folder, first]
    try:
        process = subprocess.Popen(
            words,
            env={**place.env, **_QUIET},
            cwd=place.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writing],
            start_new_session=True,
        )
    except OSError as error:
        os.close(reading)
        os.close(writing)
        return _no("%s could not be run: %s" % (program.path, error.strerror))
    os.close(writing)
    try:
        data = read_until(reading, time.monotonic() + PATIENCE_S, ending=b"\n")
    finally:
        os.close(reading)
        end(process)
    if data is None:
        return _no("the engine's parser was not made within %d s, or has more flags than any" % PATIENCE_S)
    return _answer(data, process.returncode)


def _answer(data: bytes, code: Optional[int]) -> Asked:
    from .parser_kept import hash_of  # noqa: PLC0415 - it needs the place, as we do

    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return _no("the engine's interpreter ended with %s and made no parser" % code)
    hashes = {path: hash_of(path) for path in found.get("files") or ()}
    files = {path: told for path, told in hashes.items() if told is not None}
    return Asked(found.get("flags"), found.get("broken"), files, None)


def _no(trouble: str) -> Asked:
    return Asked(None, None, {}, trouble)


def read_until(pipe: int, until_s: float, limit: int = ANSWER_BYTES, ending: bytes = b"\0") -> Optional[bytes]:
    """Return all that comes through a pipe until it is closed; None where that takes too long, or it is too much.

    `ending`: it ends there, too: what the engine forked may hold the pipe open for as long as it lives.
    """
    import select  # noqa: PLC0415 - only where something is asked

    parts: List[bytes] = []
    while limit > 0:
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
            return None
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
        if part.endswith(ending):
            return b"".join(parts)
        limit -= len(part)
    return None


def end(process: "subprocess.Popen[bytes]") -> None:
    """End what we started, and all that it started in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    process.wait()
