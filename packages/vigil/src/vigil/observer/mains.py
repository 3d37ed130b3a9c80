"""Say which process of a tree is the server's main one."""

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

WRAPPERS = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "zsh",
        "ash",
        "ksh",
        "fish",
        "busybox",
        "env",
        "nohup",
        "setsid",
        "stdbuf",
        "timeout",
        "nice",
        "ionice",
        "chrt",
        "taskset",
        "numactl",
        "tini",
        "dumb-init",
        "catatonit",
        "sudo",
        "su",
        "doas",
        "runuser",
        "setpriv",
        "chroot",
        "unshare",
        "supervisord",
    }
)
HELPERS = frozenset(
    {
        "sleep",
        "tee",
        "tail",
        "head",
        "cat",
        "date",
        "grep",
        "egrep",
        "awk",
        "gawk",
        "mawk",
        "sed",
        "tr",
        "cut",
        "sort",
        "curl",
        "wget",
        "ts",
        "rotatelogs",
        "multilog",
        "logger",
        "less",
        "more",
        "nc",
        "ls",
        "rm",
        "cp",
        "mv",
        "mkdir",
        "touch",
        "chmod",
        "ps",
        "kill",
        "pkill",
        "pgrep",
        "seq",
        "wc",
        "test",
        "true",
        "false",
        "echo",
        "printf",
        "id",
        "uname",
        "hostname",
        "which",
        "dirname",
        "basename",
        "nvidia-smi",
        "inotifywait",
        "flock",
    }
)
# They carry a command line for another place: the engine's words in it do not make them the engine.
CARRIERS = frozenset(
    {
        "ssh",
        "docker",
        "podman",
        "nerdctl",
        "kubectl",
        "crictl",
        "srun",
        "mpirun",
        "vim",
        "vi",
        "nano",
        "emacs",
        "screen",
        "tmux",
        "strace",
        "gdb",
        "py-spy",
    }
)


class Process(NamedTuple):
    """What the choice of the main process needs to know of one process."""

    pid: int
    ppid: int
    start_ticks: int
    argv: Tuple[str, ...]
    names: FrozenSet[str]
    retired: bool = False


class Choice(NamedTuple):
    """The main process. `sure`: its command is the engine's own."""

    pid: int
    sure: bool


def base_name(path: str) -> str:
    """Return the last part of a path; a login shell's leading dash goes."""
    return path.rpartition("/")[2].lstrip("-")


def name_process(comm: str, exe: str, argv: Sequence[str]) -> FrozenSet[str]:
    """Return the names by which a program may be known: file, kernel's name, first word of the command line."""
    exe_name = base_name(exe.removesuffix(" (deleted)"))
    first = base_name(argv[0]) if argv else ""
    if exe_name in ("busybox", "coreutils", "toybox"):  # one file, many programs
        applet = argv[1] if first == exe_name and len(argv) > 1 else first
        return frozenset({base_name(applet)})
    return frozenset(name for name in (exe_name, comm, first) if name)


def is_wrapper(names: FrozenSet[str]) -> bool:
    """Tell whether it is a shell or supervisor, which starts the server rather than being it."""
    return not names.isdisjoint(WRAPPERS)


def is_helper(names: FrozenSet[str]) -> bool:
    """Tell whether it is one of the small programs that stand beside a server in a script."""
    return not names.isdisjoint(HELPERS)


def holds_sign(argv: Sequence[str], signs: Iterable[str]) -> bool:
    """Tell whether the words of one of `signs` stand in `argv`, in order, each alone or as the end of a path."""
    return any(_holds_words(argv, sign.split()) for sign in signs)


def _holds_words(argv: Sequence[str], words: List[str]) -> bool:
    if not words:
        return False
    rest = iter(argv)
    return all(any(part == word or part.endswith("/" + word) for part in rest) for word in words)


def choose_main(
    root: int, tree: Dict[int, Process], signs: Sequence[str], current: Optional[int] = None
) -> Optional[Choice]:
    """Return the main process of the tree below `root`, or None while only wrappers and helpers are there.

    A process that carries the engine's own command wins; among several the current one, else the oldest.
    """
    engines = [process for process in tree.values() if _is_engine(process, signs)]
    found = {process.pid for process in engines}
    top = [process for process in engines if not any(above in found for above in _above(process, tree))]
    if top:
        best = min(top, key=lambda process: (process.pid != current, process.start_ticks, process.pid))
        return Choice(best.pid, sure=True)
    start = tree.get(root)
    pid = _descend(start, tree) if start else None
    return None if pid is None else Choice(pid, sure=False)


def _is_engine(process: Process, signs: Sequence[str]) -> bool:
    aside = is_wrapper(process.names) or is_helper(process.names) or not process.names.isdisjoint(CARRIERS)
    return not aside and not process.retired and holds_sign(process.argv, signs)


def _above(process: Process, tree: Dict[int, Process]) -> Iterable[int]:
    seen = {process.pid}
    while process.ppid in tree and process.ppid not in seen:
        seen.add(process.ppid)
        process = tree[process.ppid]
        yield process.pid


def _descend(process: Process, tree: Dict[int, Process], depth: int = 0) -> Optional[int]:
    if process.retired:
        return None
    if not is_wrapper(process.names):
        return process.pid
    if depth > 64:  # noqa: PLR2004 - a tree this deep is a fork bomb, or a pid that was used twice
        return None
    children = [child for child in tree.values() if child.ppid == process.pid and not is_helper(child.names)]
    for child in sorted(children, key=lambda child: (child.start_ticks, child.pid)):
        pid = _descend(child, tree, depth + 1)
        if pid is not None:
            return pid
    return None
