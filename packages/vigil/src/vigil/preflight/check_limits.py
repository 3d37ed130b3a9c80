"""The limits that the server is born with: open files, processes, locked memory."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.ranks import ranks_of
from vigil.preflight.seen_host import HostSeen
from vigil.screen import size

FEW_FILES = 4096
FEW_PROCESSES = 1024
LITTLE_LOCKED = 1 << 30


def check_limits(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find limits that servers are known to run into.

    SGLang and vLLM raise the soft limit of open files to 65535 by themselves, as far as the hard one lets them (`set_ulimit`).
    """
    limits = host.limits
    if limits is None or host.outside:
        return
    files = limits.nofile[1] if command.engine in {"sglang", "vllm"} else limits.nofile[0]
    if files is not None and files < FEW_FILES:
        yield _finding(
            f"at most {files} open files: every connection, shard and rank takes some",
            "ulimit -n 65535 before the start; as root for a higher hard limit (docker run --ulimit nofile=65535)",
        )
    if limits.nproc[0] is not None and limits.nproc[0] < FEW_PROCESSES and command.engine in {"sglang", "vllm"}:
        yield _finding(
            f"at most {limits.nproc[0]} processes and threads of this user: an engine alone starts hundreds",
            "ulimit -u unlimited before the start, or a higher limit in /etc/security/limits.conf",
        )
    yield from _locked(command, host, limits.memlock[0])


def _locked(command: Command, host: HostSeen, memlock: int | None) -> Iterator[Finding]:
    """Find too little locked memory where it is asked for: llama-server's --mlock, InfiniBand between hosts."""
    if memlock is None:
        return
    mlock = command.last("--mlock") if command.engine == "llamacpp" else None
    model = next((one.bytes for one in host.sizes if one.what == "model" and one.bytes), None)
    if mlock is not None and model is not None and memlock < model:
        yield _finding(
            f"at most {size(memlock)} of locked memory, and --mlock would lock {size(model)}: the model stays unlocked",
            "ulimit -l unlimited before the start (docker run --ulimit memlock=-1)",
            mlock.at,
        )
    ranks = ranks_of(command)
    adapters = host.settings.adapters if host.settings is not None else ()
    if ranks is not None and ranks.nodes > 1 and adapters and memlock < LITTLE_LOCKED:
        yield _finding(
            f"at most {size(memlock)} of locked memory, and NCCL registers its buffers with {adapters[0]}",
            "ulimit -l unlimited before the start (docker run --ulimit memlock=-1)",
        )


def _finding(text: str, advice: str, at: int | None = None) -> Finding:
    return Finding(code="LIM001", severity=Severity.WARNING, text=text, advice=advice, at=at, seen="getrlimit")
