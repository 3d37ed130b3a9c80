"""See which files of the installed engine are not those of its release, and of what nothing says how it was.

A wheel says so by the hashes in RECORD, a working copy by git's index. conda, Nix and Guix write into binaries after RECORD was
made: of theirs only what is text is compared.
"""

import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..survey.checkout import editable
from ..survey.digest import Budget, read_small
from ..survey.edited import edited_files, read_record
from ..survey.packages import Package, Python, named

if TYPE_CHECKING:
    from .desk import Question

QUICK = (0.12, 16 << 20)
DEEP = (25.0, 256 << 20)
MOST_NAMED = 20
CODE = (".py", ".so", ".pyd", ".cu", ".cuh", ".h", ".cpp", ".jinja", ".json")
BINARY = (".so", ".pyd", ".a", ".o")
STORES = ("/nix/store/", "/gnu/store/")
MISSING = "missing"


def see(question: "Question", python: Python, sites: List[str], package: Optional[Package]) -> Dict[str, Any]:
    """Return `edited` (as `EditedSeen`s), `unlisted` (as `UnlistedSeen`s), and `unchecked`: files for which no time was left."""
    chosen = [package] if package else []
    if question.deep:
        chosen = [one for one in (named(sites, name) for name in question.packages) if one is not None]
    budget = Budget(*(DEEP if question.deep else QUICK))
    origins = {one.name: editable(one, budget) for one in chosen}
    copies = {name: one for name, one in origins.items() if one is not None and "path" in one}
    wheels = [
        one for one in chosen if one.name not in copies and next(read_record(one, python.prefix), None) is not None
    ]
    found = edited_files(wheels, python.prefix, budget)
    told = [_told(one, found["files"].get(one.name) or {}) for one in wheels]
    told += [_of_copy(one.name, copies[one.name]) for one in chosen if one.name in copies]
    return {
        "edited": [one for one in told if one["count"] or one["missing_count"]],
        "unlisted": [
            _unlisted(one, copies.get(one.name))
            for one in chosen
            if one not in wheels and not _is_known(copies.get(one.name))
        ],
        "unchecked": found["unchecked"],
    }


def _told(package: Package, files: Dict[str, str]) -> Dict[str, Any]:
    """Return the files of a wheel that differ, and those that are gone, each with what could be loaded first."""
    changed = [name for name, what in files.items() if what != MISSING]
    if _rewritten(package):
        changed = [name for name in changed if not name.endswith(BINARY) and "/bin/" not in name]
    return {
        "package": package.name,
        **_named("", changed),
        **_named("missing_", [one for one in files if files[one] == MISSING]),
    }


def _rewritten(package: Package) -> bool:
    """Tell whether an installer wrote into the files after their hashes were taken."""
    by = (read_small(os.path.join(package.info, "INSTALLER"), 100) or b"").strip().lower()
    return by == b"conda" or package.site.startswith(STORES)


def _named(kind: str, names: List[str]) -> Dict[str, Any]:
    first = sorted(names, key=lambda name: (not name.endswith(CODE), name))
    code = sum(name.endswith(CODE) for name in names)
    return {"%sfiles" % kind: first[:MOST_NAMED], "%scount" % kind: len(names), "%scode" % kind: code}


def _of_copy(name: str, copy: Dict[str, Any]) -> Dict[str, Any]:
    """Return the files of a working copy that are not as its commit has them."""
    dirty = copy.get("dirty") or {}
    changed = [one for one, what in dirty.items() if what != MISSING]
    about = {"package": name, "copy": copy["path"], "commit": copy.get("commit")}
    return {**about, **_named("", changed), **_named("missing_", [one for one in dirty if dirty[one] == MISSING])}


def _is_known(copy: Optional[Dict[str, Any]]) -> bool:
    """Tell whether git says how the files of a working copy were."""
    return copy is not None and copy.get("commit") is not None and copy.get("dirty") is not None


def _unlisted(package: Package, copy: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """Return where nothing says how a package's files were."""
    return {
        "package": package.name,
        "copy": copy is not None,
        "path": copy["path"] if copy is not None else package.info,
    }
