"""What is loaded and called like something that is not: a newer file of that name, or the same file of another folder."""

import difflib
import os
from typing import Iterable, List

MOST_ALIKE = 3
LIKENESS = 0.75


def modules_alike(name: str, loaded: Iterable[str]) -> List[str]:
    """Return the modules whose last part is that of `name`, else those whose names are like it; the nearest first."""
    known = [one for one in loaded if one]
    last = name.rpartition(".")[2]
    same = [one for one in known if one.rpartition(".")[2] == last]
    return _nearest(name, same) if same else difflib.get_close_matches(name, known, MOST_ALIKE, LIKENESS)


def files_alike(path: str, loaded: Iterable[str]) -> List[str]:
    """Return the files of that name elsewhere; those first whose folders are called the same."""
    base = os.path.basename(path)
    return _nearest(path, [one for one in loaded if os.path.basename(one) == base])


def _nearest(name: str, found: List[str]) -> List[str]:
    return sorted(found, key=lambda one: (-_common_end(name, one), one))[:MOST_ALIKE]


def _common_end(one: str, other: str) -> int:
    """Return how many letters two names share at their ends."""
    shortest = min(len(one), len(other))
    return next((at for at in range(shortest) if one[-1 - at] != other[-1 - at]), shortest)
