"""What stays of a failure when everything that differs from life to life is taken out.

Kept: words, names, flags, the base names of paths (a missing `draft.gguf` and a missing `target.gguf` are two
failures, while the folder above may be a fresh snapshot or a temporary mount), and the small numbers that are names
themselves (`Errno 98`, `exit code -9`). Masked: prefixes, pids, ranks, addresses, ports, folders, times, sizes,
counts, uuids and other long random words. A number inside a word stays (`sm_120`, `eagle3`, `blk.2.` does not): it is
nearly always part of a name.
"""

import re
from hashlib import blake2s

from vigil.diagnosis.prefix import read_line

_COLOUR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_NAMED = r"(?:errno|exit\ code|exitcode|exit\ status|signal|signum|status\ code|error)"
_PARTS = re.compile(
    rf"""
    (?P<id>(?<![0-9a-zA-Z])[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?![0-9a-zA-Z]))
    | (?P<hex>\b0x[0-9a-fA-F]+\b)
    | (?P<path>(?<![\w/:.*])(?:~|\.{{1,2}})?(?:/[\w.@+~%=-]+)+/?)
    | (?P<random>
        (?<![0-9a-zA-Z])(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{{8,}}(?![0-9a-zA-Z])
        | (?<![0-9a-zA-Z])tmp(?=\w*\d|\w{{8}}\b)\w{{6,}}
        | (?<=nccl-)\w{{6}}\b)
    | (?P<time>
        \b\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?
        | \b\d{{1,2}}:\d\d:\d\d(?:[.,]\d+)?\b)
    | (?P<ip>\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b)
    | (?P<rank>\b(?:Worker_)?(?:TP|DP|PP|EP|DCP|PCP)\d+(?:_(?:TP|DP|PP|EP|DCP|PCP)\d+)*\b | \brank[ =]?\d+\b)
    | (?P<named>(?i:\b{_NAMED})(?:\ |:\ |=)\[?-?\d{{1,4}}(?!\d|\.\d))
    | (?P<number>(?<![\w])-?\d+(?:[.,]\d+){{0,6}}
        (?:\ ?(?:[KMGTkmgt]i?B|bytes|B|ms|us|ns|s|it/s|s/it|%)(?![\w/]))?(?![A-Za-z_]))
    """,
    re.VERBOSE | re.ASCII,
)
_LONGEST = 200
_READ_AT_MOST = 4000


def without_colours(text: str) -> str:
    """Return `text` without terminal escapes."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def fingerprint(text: str) -> str:
    """Return what two lives that ended alike have in common: at most 200 characters."""
    body = read_line(without_colours(text[:_READ_AT_MOST])).body
    kept = " ".join(_PARTS.sub(_mask, body).split())
    if len(kept) <= _LONGEST:
        return kept
    return f"{kept[: _LONGEST - 17]}~{blake2s(kept.encode(errors='replace'), digest_size=8).hexdigest()}"


def _mask(match: re.Match[str]) -> str:
    kind, found = match.lastgroup, match.group()
    if kind == "named":
        return found
    if kind == "path":
        base = found.rstrip("/").rpartition("/")[2]
        return "*/" + _PARTS.sub(_mask, base)
    if kind == "rank":
        return "<rank>"
    return "#"  # one sign for all: a random word may happen to be all digits
