"""Names that are almost another one: written otherwise for certain, or only like it."""

from collections.abc import Sequence
from difflib import get_close_matches


def meant_by(name: str, known: Sequence[str]) -> tuple[str, bool] | None:
    """Return the known name that one is like, and whether it surely stands for it; None where it is known, or like none.

    Sure are other capitals, `-`, `_` and letters in another order: a newer engine may know a name that differs by a letter.
    """
    if name in known:
        return None
    plain = {_plain(one): one for one in known}
    if _plain(name) in plain:
        return plain[_plain(name)], True
    near = get_close_matches(_plain(name), list(plain), 1, 0.8)
    return (plain[near[0]], sorted(near[0]) == sorted(_plain(name))) if near else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
