"""A package that is installed from a working copy: its commit, and which tracked files differ from it. Git is not run.

A repository may name programs that git would run for us (`core.fsmonitor`, filters), so its files are read instead: HEAD, refs,
and the index with the sizes, times and hashes of what was checked out.
"""

import hashlib
import os
import re
import struct
from typing import Any, Dict, Iterator, NamedTuple, Optional
from urllib.parse import unquote, urlsplit

from .digest import Budget, read_small
from .packages import Package, origin

HIGHEST = 8  # folders above the package in which .git may lie
INDEX_BYTES = 32 << 20
REF_BYTES = 4 << 20
MOST_DIRTY = 100
LARGEST_READ = 8 << 20
ENTRY_BYTES = 62
NAME_MASK = 0x0FFF
EXTENDED = 0x4000
REGULAR = 0o100000
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")


class Entry(NamedTuple):
    """A file as it was checked out. `mtime_ns` and `size` are those of then; `sha1` is git's own hash of it."""

    name: str
    mtime_ns: int
    size: int
    sha1: bytes


def editable(package: Package, budget: Budget) -> Optional[Dict[str, Any]]:
    """Return where a package that is no plain install came from: its folder, commit, and changed files; None for a plain one."""
    told = origin(package)
    vcs, folder = told.get("vcs_info"), told.get("dir_info")
    if isinstance(vcs, dict) and isinstance(vcs.get("commit_id"), str):
        return {"commit": vcs["commit_id"][:80]}
    if not isinstance(folder, dict) or folder.get("editable") is not True:
        return None
    url = urlsplit(str(told.get("url")))
    path = os.path.normpath(unquote(url.path))
    if url.scheme != "file" or not path.startswith("/") or "\0" in path:
        return {"path": "?", "commit": None}
    return {"path": path[:500], **working_copy(path, budget)}


def working_copy(path: str, budget: Budget) -> Dict[str, Any]:
    """Return the commit of the working copy around a folder, and its changed files with a short hash of each."""
    for _ in range(HIGHEST):
        git = _git_folder(path)
        if git is not None:
            return {"commit": _commit(git), "dirty": _dirty(path, git, budget)}
        path = os.path.dirname(path)
    return {"commit": None}


def _git_folder(path: str) -> Optional[str]:
    """Return `.git`, or the folder that the file of this name points to (a worktree, a submodule)."""
    git = os.path.join(path, ".git")
    if os.path.isdir(git):
        return git
    text = (read_small(git, 4096) or b"").decode("utf-8", "replace").strip()
    return os.path.join(path, text[8:].strip()) if text.startswith("gitdir: ") else None


def _commit(git: str) -> Optional[str]:
    head = _text(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return head if _COMMIT.match(head) else None
    ref = head[5:].strip()
    if not ref.startswith("refs/") or ".." in ref:
        return None
    shared = os.path.join(git, _text(os.path.join(git, "commondir")) or ".")
    for folder in (git, shared):
        found = _text(os.path.join(folder, ref))
        if _COMMIT.match(found):
            return found
    for line in (
        (read_small(os.path.join(shared, "packed-refs"), REF_BYTES) or b"").decode("utf-8", "replace").splitlines()
    ):
        if line.endswith(" " + ref) and _COMMIT.match(line[:40]):
            return line[:40]
    return None


def _text(path: str) -> str:
    return (read_small(path, 4096) or b"").decode("utf-8", "replace").strip()


def _dirty(root: str, git: str, budget: Budget) -> Optional[Dict[str, str]]:
    """Return the tracked files that are not as they were checked out; None where the index cannot be read, or not in time."""
    data = read_small(os.path.join(git, "index"), INDEX_BYTES) or b""
    if data[:4] != b"DIRC" or len(data) < 12 or struct.unpack(">I", data[4:8])[0] not in (2, 3):  # noqa: PLR2004
        return None
    found: Dict[str, str] = {}
    for entry in entries(data):
        if budget.spent:
            return None
        if len(found) >= MOST_DIRTY:
            break
        told = _differs(os.path.join(root, entry.name), entry, budget)
        if told is not None:
            found[entry.name] = told
    return found


def _differs(path: str, entry: Entry, budget: Budget) -> Optional[str]:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return "missing"
    except OSError:
        return None
    same_size = status.st_size & 0xFFFFFFFF == entry.size
    if same_size and status.st_mtime_ns == entry.mtime_ns:
        return None
    data = read_small(path, LARGEST_READ)
    if data is None or status.st_size > LARGEST_READ:
        return None if same_size else "%d bytes instead of %d" % (status.st_size, entry.size)
    budget.left_bytes -= len(data)
    found = hashlib.sha1(b"blob %d\0" % len(data) + data).digest()  # noqa: S324 - it is git's
    return None if found == entry.sha1 else found.hex()[:16]


def entries(data: bytes) -> Iterator[Entry]:
    """Yield the regular files of an index of version 2 or 3 (Documentation/gitformat-index.txt)."""
    count, at = struct.unpack(">I", data[8:12])[0], 12
    for _ in range(count):
        if at + ENTRY_BYTES > len(data):
            return
        _, _, seconds, nanos, _, _, mode, _, _, size = struct.unpack(">10I", data[at : at + 40])
        flags = struct.unpack(">H", data[at + 60 : at + 62])[0]
        begin = at + ENTRY_BYTES + (2 if flags & EXTENDED else 0)
        end = data.find(b"\0", begin)
        if end < 0:
            return
        name = data[begin:end].decode("utf-8", "surrogateescape")
        at += (end - at + 8) & ~7
        if mode & 0o170000 == REGULAR and not name.startswith("/") and ".." not in name.split("/"):
            yield Entry(name, seconds * 10**9 + nanos, size, data[at_sha1(begin, flags) : at_sha1(begin, flags) + 20])


def at_sha1(begin: int, flags: int) -> int:
    """Return where an entry's hash stands: twenty bytes, then the flags, then the name."""
    return begin - 22 - (2 if flags & EXTENDED else 0)
