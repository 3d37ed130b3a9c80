"""What the host showed beside the log, where it decides the cause: a kill by the kernel, a GPU's error, a full /dev/shm.

The kernel's word on a kill is proof where its pid is one of the server's; where a shell only reports that something below it was
killed, a kill at that moment is taken for it. A GPU's error explains what processes die of when their GPU fails. A full /dev/shm
makes certain what a bus error, NCCL's "system error" and a bare "No space left" leave open; one of Docker's default size makes it
likely.
"""

import re
import signal as signals

import msgspec

from vigil.diagnosis.candidates import Candidate
from vigil.diagnosis.cause import End
from vigil.diagnosis.rules import known_rules
from vigil.diagnosis.select import Choice, end_signal
from vigil.diagnosis.text import LogText
from vigil.fact_parts import KernelLine, Room
from vigil.screen import size

SHM = "/dev/shm"  # noqa: S108 - a name, not a file
DOCKERS_SHM_BYTES = 64 << 20
KILL_EXPLAINS_S = 60.0
"""A main process follows its worker within this: its watchdogs have to notice."""
TOGETHER_S = 5.0
GPU_EXPLAINS_S = 900.0
"""NCCL's watchdog waits for ten minutes before it ends what waits for a GPU that is gone."""
FULL_BYTES = 100 << 20
FULL_SHARE = 0.05
_SHM_SURE, _SHM_LIKELY, _GPU_SURE, _GPU_LIKELY = 0.95, 0.8, 0.9, 0.75
_GPU_AFTERMATH = frozenset(
    {
        "killed_by_signal",
        "crash_runtime",
        "illegal_memory_access",
        "nccl_init",
        "nccl_timeout",
        "watchdog_timeout",
        "other",
    }
)
_UNEXPLAINED = frozenset({"SIG001", "ERR000", "EXC000", "ABRT000", "ASRT000", "RUN001", "PEER001"})


def is_full(room: Room) -> bool:
    """Say whether a file system has no room left that a server could use.

    Less than 100 MiB, and little of the whole: a /dev/shm of 64 MiB is small, and not full for that.
    """
    return room.free_files == 0 or room.free_bytes < min(FULL_BYTES, room.total_bytes * FULL_SHARE)


def by_host(log: LogText, end: End) -> End:
    """Return the end with what the kernel's log adds: whose the processes are that the log names, and whether one explains it."""
    if not end.seen.kernel:
        return end
    kernel = tuple(
        msgspec.structs.replace(line, ours=True) if line.ours is None and _names(log, line.pid) else line
        for line in end.seen.kernel
    )
    end = msgspec.structs.replace(end, seen=msgspec.structs.replace(end.seen, kernel=kernel))
    return msgspec.structs.replace(end, oom_killed=True) if explaining_kills(end) else end


def _names(log: LogText, pid: int | None) -> bool:
    """Whether a line names the process, as engines do: `(EngineCore_DP0 pid=793)`."""
    if pid is None:
        return False
    named = re.compile(rf"\bpid[=: ]{{1,2}}{pid}\b")
    return any(str(pid) in text and named.search(text) for text in log.texts)


def explaining_kills(end: End) -> tuple[KernelLine, ...]:
    """Return the kernel's kills that are why the attempt ended: of its own processes, else the one nearest to the end.

    The latter only where a shell reports that something below it was killed: the kernel does not say below whom.
    """
    kills = [line for line in end.seen.kernel if line.what == "oom_kill"]
    own = [line for line in kills if line.ours and (line.ago_s <= KILL_EXPLAINS_S if end.died else not end.ready)]
    if own or not (end.signal is None and end_signal(end) == signals.SIGKILL):
        return tuple(own)
    near = [line for line in kills if line.ours is None and abs(line.ago_s) <= TOGETHER_S]
    return tuple(sorted(near, key=lambda line: abs(line.ago_s))[:1])


def decide(choice: Choice | None, end: End) -> Choice | None:
    """Return the choice that the host's own word puts in the place of one that leaves the reason open."""
    if not end.died or end.oom_killed:
        return choice
    return _failed_gpu(choice, end) or _short_shm(choice, end) or choice


def _failed_gpu(choice: Choice | None, end: End) -> Choice | None:
    if choice is not None:
        candidate = choice.candidate
        if not leaves_open(candidate.rule.code, candidate.kind or candidate.rule.kind):
            return None
    rule = known_rules()["GPU001"]
    for line in end.seen.kernel:
        near = line.what == "xid" and line.ago_s <= GPU_EXPLAINS_S and (line.ours or line.pid is None)
        for when in rule.when if near else ():
            match = re.search(when.pattern, line.text) if when.pattern and when.text in line.text else None
            if match is not None:
                groups = tuple((name, value or "") for name, value in match.groupdict().items())
                sure = _GPU_SURE if line.ours else _GPU_LIKELY
                return Choice(Candidate(index=-1, rule=rule, when=when, groups=groups), sure, line.text)
    return None


def leaves_open(code: str, kind: str) -> bool:
    """Say whether a cause of that code and kind is what a process dies of when something below it fails."""
    return code in _UNEXPLAINED or kind in _GPU_AFTERMATH


def _short_shm(choice: Choice | None, end: End) -> Choice | None:
    room = next((one for one in end.seen.rooms if one.path == SHM), None)
    if choice is None or room is None:
        return None
    bus = _is_bus_error(choice, end)
    kind = choice.candidate.kind or choice.candidate.rule.kind
    if is_full(room):
        elsewhere = kind == "disk_full" and not any(is_full(one) for one in end.seen.rooms if one is not room)
        sure = _SHM_SURE if bus or kind == "nccl_init" or elsewhere else None
    else:
        sure = _SHM_LIKELY if bus and room.total_bytes <= DOCKERS_SHM_BYTES else None
    if sure is None:
        return None
    words = f"{choice.words}; {room_words(room)}" if choice.words else ""
    changed = msgspec.structs.replace(choice.candidate, rule=known_rules()["SHM001"], when=None, kind="")
    return Choice(changed, sure, words)


def _is_bus_error(choice: Choice, end: End) -> bool:
    if choice.candidate.rule.code != "SIG001":
        return False
    told = dict(choice.candidate.groups)
    number, name = told.get("number", ""), told.get("signal", "")
    return end_signal(end) == signals.SIGBUS or number == str(int(signals.SIGBUS)) or "us error" in name


def room_words(room: Room) -> str:
    """Return how much of a file system is left."""
    if room.free_files == 0:
        return f"{room.path} takes no more files: its inodes are used up"
    left = f"{size(room.free_bytes)} of {size(room.total_bytes)} free"
    return f"{room.path} is full: {left}" if is_full(room) else f"{room.path}: {left}"
