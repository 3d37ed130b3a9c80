"""Files of an installed package that are not what its wheel brought: compared with the hashes in its RECORD.

First by size, then by time: only a file that was written after the install (by its own word, or by the kernel's) is read. So ten
thousand files cost ten thousand looks and a few reads. What people edit most is read whatever its times say: they say nothing in
an image, or where a tree was copied (of SGLang 0.5.23: 74 files, 1.4 MB, a few milliseconds).
"""

import base64
import csv
import os
import re
import stat
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional

from .digest import Budget, read_small, whole_sha256
from .packages import Package

RECORD_BYTES = 32 << 20
MOST_ROWS = 200000
MOST_TOLD = 200
LARGEST_READ = 32 << 20
DIGEST_CHARS = 43  # of a SHA-256 in base64, without the filling
# Speculation, and the list of flags: of SGLang and of vLLM.
_READ_ALWAYS = re.compile(r"/(?:speculative|spec_decode)/[^/]+\.py\Z|/(?:server_args|arg_utils|speculative)\.py\Z")
INSTALL_S = 2.0  # an installer writes RECORD last, give or take the grain of a file system's clock


class Row(NamedTuple):
    """A file as RECORD has it: where it lies, its SHA-256 in base64 as it is written there, its size (None: not said)."""

    name: str
    path: str
    digest: str
    size: Optional[int]

    def holds(self, sha256: bytes) -> bool:
        """Tell whether this is the hash that RECORD has."""
        return base64.urlsafe_b64encode(sha256).rstrip(b"=").decode() == self.digest


def edited_files(packages: Iterable[Package], prefix: str, budget: Budget) -> Dict[str, Any]:
    """Return, by package, the files that differ from RECORD: a short hash of what they hold, or "missing", or a word on why not.

    `unchecked` counts files that the budget did not reach; `sites`: the folder that the names of a package's files begin at.
    """
    found: Dict[str, Dict[str, str]] = {}
    sites = {}
    later: List[Any] = []
    unchecked = 0
    for package in packages:
        written_s = _installed_s(package)
        sites[package.name] = package.site
        for row in read_record(package, prefix):
            if budget.spent:
                unchecked += 1
                continue
            told, reading = _look(row, written_s)
            if told is not None:
                _put(found, package, row, told)
            elif reading:
                later.append((reading, package, row))
    later.sort(key=lambda one: one[0])
    for _, package, row in later:
        if budget.spent:
            unchecked += 1
            continue
        told = _compared(row, budget)
        if told is not None:
            _put(found, package, row, told)
    return {"files": found, "unchecked": unchecked, "sites": {name: sites[name] for name in found}}


def _put(found: Dict[str, Dict[str, str]], package: Package, row: Row, told: str) -> None:
    """Keep what was seen of a file: those that are gone come first, and must not take the room of those that differ."""
    of_it = found.setdefault(package.name, {})
    if len(of_it) < (MOST_TOLD if told == "missing" else 2 * MOST_TOLD):
        of_it[row.name] = told


def _installed_s(package: Package) -> float:
    """Return when the package was installed: when its RECORD was written, or moved to where it is."""
    try:
        status = os.stat(os.path.join(package.info, "RECORD"))
    except OSError:
        return 0.0
    return max(status.st_mtime, status.st_ctime) + INSTALL_S


def _look(row: Row, written_s: float) -> "tuple[Optional[str], int]":
    """Return what is plain without reading, else how soon the file is to be read (0: it need not be)."""
    try:
        status = os.stat(row.path)
    except FileNotFoundError:
        return "missing", 0
    except OSError:
        return None, 0
    if not stat.S_ISREG(status.st_mode):
        return "no regular file", 0
    if row.size is not None and status.st_size != row.size:
        return None, 1
    if status.st_mtime > written_s:
        return None, 2
    return None, 3 if _READ_ALWAYS.search(row.name) else 4 if status.st_ctime > written_s else 0


def _compared(row: Row, budget: Budget) -> Optional[str]:
    """Return what a file holds where that differs from RECORD, else None."""
    found = whole_sha256(row.path, LARGEST_READ, budget)
    if found is not None:
        return None if row.holds(found) else found.hex()[:16]
    try:
        size = os.stat(row.path).st_size
    except OSError:
        return None
    if row.size is not None and size != row.size:
        return "%d bytes instead of %d" % (size, row.size)
    return None  # written later, of the same size, too large to read or not ours to read: nothing is known


def read_record(package: Package, prefix: str) -> Iterator[Row]:
    """Yield the files that RECORD has a hash of and that lie below `prefix`; the rest of the world is none of its business."""
    data = read_small(os.path.join(package.info, "RECORD"), RECORD_BYTES)
    if not data:
        return
    site = os.path.realpath(package.site)
    roots = (site + os.sep, os.path.realpath(prefix) + os.sep)
    rows = csv.reader(data.decode("utf-8", "replace").split("\n"))
    for _ in range(MOST_ROWS):
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error:  # a field without an end
            continue
        row = _row(fields, site)
        if row is not None and row.path.startswith(roots):
            yield row


def _row(fields: List[str], site: str) -> Optional[Row]:
    if len(fields) < 2 or not fields[1].startswith("sha256=") or "\0" in fields[0]:  # noqa: PLR2004 - path, hash, size
        return None
    name, digest = fields[0], fields[1][7:].rstrip("=")
    if len(digest) != DIGEST_CHARS:
        return None
    size = fields[2] if len(fields) > 2 else ""  # noqa: PLR2004
    known = int(size) if size.isascii() and size.isdigit() and len(size) < 16 else None  # noqa: PLR2004
    path = os.path.join(site, name)
    return Row(name, os.path.normpath(path) if "./" in name or "//" in name else path, digest, known)
