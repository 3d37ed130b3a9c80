"""Open a log, by its path or by the name of the server that wrote it, and read it to its end for the diagnosis."""

import io
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from vigil.diagnosis.cause import End
from vigil.diagnosis.postmortem import Log, Postmortem, Story
from vigil.diagnosis.rules import Rule
from vigil.engines import TABLES
from vigil.errors import UsageError
from vigil.hosts import Reach, call
from vigil.launcher import state
from vigil.supervise.around import look_around, with_host
from vigil.supervise.start import show

READ_BYTES = 1 << 20
LOOK_BYTES = 4096
MOST_CONTROL = 0.05
"""Of the first bytes: a log has next to no control characters, and a program or a tensor many."""
TAIL_BYTES = 4 << 20
_CONTROL = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27})
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


def read_file(path: str, *, engine: str | None = None, rules: Sequence[Rule] = ()) -> Story:
    """Say what the log in a file or pipe tells; raise `UsageError` where it is none or cannot be read."""
    return _read_path(path, Log(file=path, table=TABLES.get(engine or "")), rules)


def read_stream(log: BinaryIO, name: str, *, engine: str | None = None, rules: Sequence[Rule] = ()) -> Story:
    """Say what the log in an open file or pipe tells; raise `UsageError` where it is none or cannot be read."""
    return _read(log, Log(file=name, table=TABLES.get(engine or "")), rules)


def is_server_here(name: str) -> bool:
    """Tell whether a server of that name is known on this machine."""
    try:
        return state.current_start(name) is not None
    except state.Refused:  # it is no name
        return False


async def read_server(name: str, reach: Reach, *, rules: Sequence[Rule] = ()) -> Story:
    """Say why the newest start of a server ended: by its log from where that began, and its end as its launcher saw it.

    Of a log elsewhere the last 4 MiB are read.
    """
    known = await show(name, reach)
    engine = known["plan"].get("engine")
    end = (_end_of(known["exit"]) if known["exit"] else None) or End()
    views = await look_around(known, reach)
    about = Log(
        file=str(known["life"].get("log", "")),
        table=TABLES.get(engine) if engine != "generic" else None,
        end=msgspec.structs.replace(end, seen=views.whole),
    )
    if reach.local:
        story = _read_path(str(about.file), about, rules, skip=int(known["life"].get("log_offset", 0)))
    else:
        tail = await call(reach, "tail", name=name, limit_bytes=TAIL_BYTES)
        story = _read_all(io.BytesIO(tail["text"].encode()), about, rules)
    return await with_host(story, views, known, reach)


def _read_path(path: str, about: Log, rules: Sequence[Rule], skip: int = 0) -> Story:
    """Read a file here, but for its first `skip` bytes, which earlier starts wrote."""
    try:
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder: give the log of a server")
        with Path(path).open("rb", buffering=0) as log:
            before = _lines_in(log, skip)
            return _read(log, msgspec.structs.replace(about, lines_before=before), rules)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _read(log: BinaryIO, about: Log, rules: Sequence[Rule]) -> Story:
    """Read what is a file or a pipe; refuse what may never end, and what is no text."""
    mode = os.fstat(log.fileno()).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise UsageError(f"{about.file} is no file and no pipe: give the log of a server")
    return _read_all(log, about, rules)


def _read_all(log: BinaryIO, about: Log, rules: Sequence[Rule]) -> Story:
    postmortem = Postmortem(tuple(TABLES.values()), about, rules)
    data = log.read(READ_BYTES)
    _check_text(data[:LOOK_BYTES], str(about.file))
    data = data.removeprefix(_UTF8_MARK)
    while data:
        postmortem.feed(data)
        data = log.read(READ_BYTES)
    return postmortem.close()


def _lines_in(log: BinaryIO, size: int) -> int:
    """Read `size` bytes; return how many lines they hold."""
    left, lines = size, 0
    while left > 0 and (data := log.read(min(left, READ_BYTES))):
        left -= len(data)
        lines += data.count(b"\n")
    return lines


def _end_of(told: Mapping[str, object]) -> End | None:
    """Return the end as the launcher wrote it down; one that somebody asked for is no failure."""
    if told.get("asked_by"):
        return End(code=0)
    try:
        how = {"code": told.get("code"), "signal": told.get("signal"), "oom_killed": told.get("oom_killed") is True}
        return msgspec.convert(how, End)
    except msgspec.ValidationError:
        return None


def _check_text(data: bytes, name: str) -> None:
    """Refuse what is no text. A file that was truncated under its writer has a hole, and is one."""
    text = re.sub(rb"\0{16,}", b"", data)
    if text.startswith(_PACKED):
        raise UsageError(f"{name} is compressed: zcat (or xz -dc, zstd -dc) {name} | vigil diagnose -")
    if text.startswith(_UTF16):
        raise UsageError(f"{name} is UTF-16: iconv -f UTF-16 -t UTF-8 {name} | vigil diagnose -")
    control = len(text) - len(text.translate(None, _CONTROL))
    if text.startswith(b"\x7fELF") or control > len(text) * MOST_CONTROL:
        raise UsageError(f"{name} is no text: give the log of a server")
