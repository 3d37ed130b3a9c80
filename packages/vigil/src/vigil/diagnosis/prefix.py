"""Takes the prefix off a log line: who wrote it, how bad the writer thought it was, and what is left.

The engines' prefixes (versions in brackets): vLLM `(EngineCore pid=12) ERROR 11-30 07:37:24 [core.py:1510] ` (0.10 to
0.33) and `ERROR 12-07 02:10:11 engine.py:366] ` (0.6), SGLang `[2026-11-30 07:51:14 DP0 TP3] ` (0.3 to 0.5),
llama-server `0.00.122.413 E srv ` (2026), PyTorch `[rank5]:[E1017 06:10:03.22 x.cpp:607] `, TensorRT-LLM
`[11/18/2025-09:33:02] [TRT-LLM] [E] `, uvicorn `ERROR: `. Before any of these may stand what carried the line: docker
compose (`vllm-1  | `), the container runtime's time, journald (`Nov 30 12:00:01 host vllm[42]: `), FastChat
(`2026-03-01 10:00:00 | ERROR | stderr | `).
"""

import re
from typing import NamedTuple

_WORDS = "DEBUG|INFO|WARNING|WARN|ERROR|ERR|CRITICAL|FATAL"
# By first character, so that a line without a prefix costs one dictionary look-up.
_BRACKETED = (
    re.compile(
        r"\[(?P<stamp>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
        r"(?P<rank>(?: (?:[A-Z]+_)?[A-Z]{2,4}\d+)*)(?: [EWIDF])?[ \d]*\] ?"
    ),
    re.compile(r"\[rank(?P<rank>\d+)\]: ?"),
    re.compile(r"\[(?P<level>[EWIDF])(?P<stamp>\d{3,4} [\d:.]+)(?: \d+)? [\w.-]+:\d+\] ?"),
    re.compile(r"\[(?P<stamp>\d\d/\d\d/\d{4}-[\d:]+)\] ?"),
    re.compile(r"\[RANK (?P<rank>\d+)\] ?"),
    re.compile(r"\[ {0,5}\d{1,7}\.\d{6}\] "),
    re.compile(rf"\[\d{{10}}\.\d{{6}}\] \[[\w.-]+:\d+ *:\d+\] +[\w./-]+:\d+ +UCX +(?P<level>{_WORDS}) +"),
    re.compile(rf"\[(?:TRT-LLM|TensorRT-LLM)\] ?(?:\[(?P<level>{_WORDS}|[EWIVDF])\] ?)?"),
    re.compile(rf"\[(?P<level>{_WORDS}|[EWIVDF])\] ?"),
    re.compile(r"\[(?:MainThread|Thread-\d+[^\]\n]{0,60}|[A-Za-z_]\w*(?:\.\w+)+)\] (?:>>> ?)?"),  # a thread, a logger
)
_PARENTHESIS = (re.compile(r"\((?P<process>[^()\n]{0,60}\bpid=\d+[^()\n]{0,40}|raylet[^()\n]{0,40})\) ?"),)
_DIGIT = (
    re.compile(r"(?P<stamp>\d+\.\d\d\.\d{3}\.\d{3}) (?P<level>[EWIDT]) (?:[a-z]{3,4} +)?"),
    re.compile(
        r"(?P<stamp>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
        r"(?: std(?:out|err) [FP])?(?: - | (?: (?=[A-Z]))?)?"
    ),
    re.compile(rf"(?P<stamp>\d{{8}}-\d\d:\d\d:\d\d(?:[.,]\d+)?) (?:\w+ )?(?P<level>{_WORDS}): "),
)
_LETTER = (
    # A program that passes the lines of another on calls them all INFO: that says nothing of the line.
    re.compile(r"[A-Za-z_][\w.]{0,60} - (?:(?P<level>WARNING|ERROR|CRITICAL|FATAL)|INFO|DEBUG) - "),
    re.compile(rf"[\w.-]{{1,40}}: (?=(?:{_WORDS}) \d\d-\d\d )"),
    re.compile(rf"(?P<level>{_WORDS}) (?P<stamp>\d\d-\d\d [\d:.]+) \[?[\w./-]+:\d+\] ?"),
    re.compile(rf"(?P<level>{_WORDS})(?:: {{1,5}}| - )"),
    re.compile(rf"(?P<level>{_WORDS}) (?=[\w.]+:(?::| ))"),
    re.compile(r"(?P<unit>[a-z][\w.-]{0,60}(?:-\d+(?= )|(?=  ))) +\| "),  # a container_name has no number
    re.compile(
        rf"time=\"?(?P<stamp>[\dT:.Z+-]+)\"? level=(?P<level>{_WORDS.lower()}|{_WORDS}) (?:source=\S+ )?(?:msg=)?"
    ),
    re.compile(r"(?P<level>[EWIF])(?P<stamp>\d{4} [\d:.]+) +\d+ [\w./-]+:\d+\] ?"),
    re.compile(r"(?P<unit>kubelet|kernel)(?:\[\d+\])?: "),
    re.compile(r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?:[\w.-]+ [\w.@/-]+(?:\[\d+\])?|[\w.@/-]+\[\d+\]): "),
)
_BARRED = (
    re.compile(rf"\| (?:{_WORDS}) +\| std(?:out|err) \| ?"),  # what a program catches of another's is all of one level
    re.compile(rf"\| (?P<level>{_WORDS}) +\| [\w.<>-]+(?::[\w.<>-]+){{0,2}} (?:\||-) ?"),
)
_BY_FIRST = {"[": _BRACKETED, "(": _PARENTHESIS, "|": _BARRED}
_BY_FIRST |= dict.fromkeys("0123456789", _DIGIT)
_BY_FIRST |= dict.fromkeys("_abcdefghijklmnopqrstuvwxyzDIWECFJMASON", _LETTER)
_RANK_IN_NAME = re.compile(r"(?<![A-Za-z])(?:TP|DP|PP|EP|DCP|PCP)\d+|(?<=rank=)\d+")
_PYTHON_WARNING = re.compile(r"\S+:\d+: \w*Warning: |Warning: ")
_NCCL_INFO = re.compile(r"[\w.-]+:\d+:\d+ \[\d+\] NCCL INFO ")
_LEVELS = {"ERR": "E", "FATAL": "E", "CRITICAL": "E", "F": "E", "V": "D", "T": "D"}
_MOST_PREFIXES = 5
_CARRIERS = re.compile(
    r"(?:[a-z][\w.-]{0,60}(?:-\d+(?= )|(?=  )) +\| )?"
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z(?: std(?:out|err) [FP])? )?"
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]+ [\w.@/-]+(?:\[\d+\])?|[\w.@/-]+\[\d+\]): )?"
)


class Read(NamedTuple):
    """A line without its prefix.

    `process` and `rank` are empty, and `level` (`E`, `W`, `I`, `D`) and `stamp` (the time as printed) are, where the
    prefix names none.
    """

    process: str
    rank: str
    level: str
    body: str
    prefixed: bool
    stamp: str = ""


def read_line(text: str) -> Read:
    """Split `text` (one line, without colours) into its prefix and its body; the body keeps its indentation."""
    process, level, stamp, at = "", "", "", 0
    ranks: list[str] = []
    for _ in range(_MOST_PREFIXES):
        match = next((m for p in _BY_FIRST.get(text[at : at + 1], ()) if (m := p.match(text, at))), None)
        if match is None:
            break
        at = match.end()
        named = match.groupdict()
        word = named.get("level")
        if word:
            level = _LEVELS.get(word.upper(), word[:1].upper())
        process = named.get("process") or process
        stamp = stamp or named.get("stamp") or ""
        if named.get("rank") or named.get("process"):
            ranks += _ranks(named)
    body = text[at:]
    if not level and "arning: " in body and _PYTHON_WARNING.match(body):
        level = "W"
    if not level and " NCCL INFO " in body and _NCCL_INFO.match(body):
        level = "I"
    if not ranks:
        return Read(process, "", level, body, at > 0, stamp)
    return Read(process or " ".join(ranks), " ".join(dict.fromkeys(ranks)), level, body, at > 0, stamp)


def without_carrier(text: str) -> str:
    """Return a line as its program wrote it: without what docker compose, a container runtime or journald put first."""
    match = _CARRIERS.match(text)
    return text[match.end() :] if match else text


def _ranks(named: dict[str, str | None]) -> list[str]:
    """Return the ranks that one prefix names: `TP3`, `DP0`, or `rank 5` where only a number is given."""
    bare = (named.get("rank") or "").strip()
    found = bare.split() if bare else _RANK_IN_NAME.findall(named.get("process") or "")
    return [f"rank {rank}" if rank.isdigit() else rank for rank in found]
