"""The variables of NCCL: names that it does not read, and values that it reads as something else, mostly without a word.

How it reads them: NCCL 2.18 to 2.30 (src/misc/param.cc, graph/tuning.cc, graph/paths.cc, debug.cc), and its User Guide.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.nccl import OF_OTHERS, NcclTable, table
from vigil.preflight.seen_host import HostSeen
from vigil.preflight.visible import assigned_at, for_cuda, variable
from vigil.screen import plain

PREFIX = "NCCL_"
LIKE = 0.9
REFUSES = 6
"""The index of 2.24: from there on a word that NCCL_ALGO or NCCL_PROTO does not take is an error ("invalid usage")."""
_NUMBER = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)\s*\Z")
_HEAD = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*))")
_FAMILIES = ("AF_INET", "AF_INET6")


def check_nccl(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find what the variables of NCCL do not do."""
    if not for_cuda(host):  # RCCL has names of its own
        return
    there = host.settings.variables if host.settings is not None else {}
    version = host.program.nccl if host.program is not None else None
    known, places = table(), table().of(version)
    for name in sorted({*there, *command.env}):
        value = variable(command, host, name)
        if not name.startswith(PREFIX) or value is None or "$" in value:
            continue
        text = _name(name, known, places, version) or (value and _value(name, value, known, places)) or ""
        if text:
            yield _finding(command, name, text, version, known)


def _finding(command: Command, name: str, text: str, version: str | None, known: NcclTable) -> Finding:
    other = name in known.variables and name not in known.names(known.of(version))
    return Finding(
        code="NCCL003" if name in known.variables else "NCCL004",
        severity=Severity.NOTE if other else Severity.WARNING,
        text=text,
        advice="correct it, or leave the variable out",
        at=assigned_at(command, name),
        seen=f"the source of {_title(version, known)}",
    )


def _title(version: str | None, known: NcclTable) -> str:
    return f"NCCL {version}" if known.holds(version) else f"NCCL {known.releases[0]} to {known.releases[-1]}"


def _name(name: str, known: NcclTable, places: frozenset[int], version: str | None) -> str:
    """Return what is wrong with a name that is not read; plugins have names of their own, so that only likeness tells."""
    read = known.names(places)
    if name in read or name in OF_OTHERS:
        return ""
    if name in known.variables:
        return f"{name} is not read by NCCL {version}: of the releases in the table {known.first(name)} is the first that does"
    plain_names = {_plain(one): one for one in read}
    near = plain_names.get(_plain(name)) or next((one for one in read if sorted(one) == sorted(name)), None)
    if near is None and (version is None or known.holds(version)):  # a newer release may read what is only like
        near = next((plain_names[one] for one in get_close_matches(_plain(name), list(plain_names), 1, LIKE)), None)
    return f"{_title(version, known)} reads no {plain(name, 80)}: {near} is like it" if near is not None else ""


def _plain(name: str) -> str:
    return name.removeprefix(PREFIX).lower().replace("_", "")


def _value(name: str, value: str, known: NcclTable, places: frozenset[int]) -> str:
    shown, kind = f"{name}={plain(value, 100)}", known.kind(name, places)
    if name in {"NCCL_ALGO", "NCCL_PROTO"}:
        return _list(name, value, known, places)
    if name == "NCCL_DEBUG":
        return _word(shown, value.upper(), known.taken(name, places))
    if name == "NCCL_DEBUG_SUBSYS":
        taken = known.taken(name, places)
        wrong = [one for one in value.removeprefix("^").upper().split(",") if one.strip() and one.strip() not in taken]
        return _word(shown, wrong[0], taken) if wrong else ""
    if name == "NCCL_SOCKET_FAMILY":
        return _word(shown, value, _FAMILIES)
    if kind == "level" and not value[0].isdigit():
        return _word(shown, value, known.taken("levels", places))
    return _number(name, shown, value) if kind == "number" else ""


def _word(shown: str, word: str, taken: "list[str] | tuple[str, ...]") -> str:
    """Return what is said of a word that is not taken: NCCL goes on as if the variable were not set."""
    if word in taken:
        return ""
    return f"{shown} is ignored without a word: NCCL knows no {plain(word, 40)}; it takes {', '.join(taken)}"


def _number(name: str, shown: str, value: str) -> str:
    if _NUMBER.match(value):
        return ""
    found = _HEAD.match(value)
    if found is None:
        meant = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}.get(value.strip().lower())
        if meant == 0:
            return ""
        means = f"; {name}={meant} is meant" if meant is not None else ""
        return f"{shown} is read as 0: NCCL wants a number{means}"
    return f"{shown} is read as {found.group(1)}: NCCL stops at what follows the number"


def _list(name: str, value: str, known: NcclTable, places: frozenset[int]) -> str:
    """Return what is wrong with a list of algorithms or protocols: `Ring,Tree`, `^LL128`, from 2.24 on `allreduce:tree;...`."""
    taken, functions = ({one.lower() for one in known.taken(key, places)} for key in (name, "functions"))
    wrong, unknown = None, "knows no"
    for entry in value.split(";"):
        before, colon, words = entry.rpartition(":")
        if colon and before.lower() not in functions:
            wrong, unknown = before, "knows no collective"
        wrong = wrong or next(
            (one for one in words.removeprefix("^").split(",") if one and one.lower() not in taken), None
        )
    if wrong is None:
        return ""
    end = "it refuses to start with that" if min(places) >= REFUSES else "from 2.24 on it refuses to start with that"
    shown = ", ".join(known.taken(name if unknown == "knows no" else "functions", places))
    return f"{name}={plain(value, 100)}: NCCL {unknown} {plain(wrong, 40)!r}, {end}; it takes {shown}"
