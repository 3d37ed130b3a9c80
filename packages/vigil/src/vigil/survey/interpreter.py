"""Which program a command line comes to in the end, found without running anything: an interpreter, or a binary.

Words before it (`env`, `nice`, `numactl`, shells, `uv run`) are passed over; a script counts as the interpreter in its first
line.
"""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .digest import read_small

FIRST_WORDS = 200
HEAD_BYTES = 4096
HIGHEST = 6  # folders above the current one in which a project's .venv may lie
_PYTHON = re.compile(r"(?:python|pypy)(?:\d(?:\.\d{1,2}t?)?)?\Z")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,100})=(.*)\Z", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w{0,100})|\{([A-Za-z_]\w{0,100})\})")
# pip's way where a path is too long for "#!".
_EXEC = re.compile(rb"^'''exec' [\"']?([^\"'\n]+?)[\"']? \"\$0\"", re.MULTILINE)
_PASSED = frozenset({
    "env", "nice", "ionice", "numactl", "taskset", "stdbuf", "timeout", "nohup", "setsid", "chrt", "time", "exec", "command",
    "sudo", "doas", "sh", "bash", "dash", "ash", "zsh", "ksh", "uv", "nsys",
    "ncu", "strace", "gdb", "valgrind", "mpirun", "mpiexec", "srun", "sbatch", "salloc", "script", "flock", "systemd-run",
    "prlimit", "cd", "export",
    "ulimit", "set", "unbuffer", "tini", "dumb-init", "catchsegv", "source", ".", "sleep", "echo", "mkdir", "rm", "cat", "true",
})  # fmt: skip
_ENDS = frozenset({";", "&", "&&", "|", "||"})
# Containers and other hosts, and what finds an environment by a way of its own.
ELSEWHERE = frozenset({
    "conda", "mamba", "micromamba", "poetry", "pdm", "pixi", "hatch", "pipenv", "uvx", "pipx", "docker", "podman", "nerdctl",
    "kubectl", "ssh", "apptainer", "singularity", "enroot", "chroot", "lxc", "incus", "machinectl", "crictl", "distrobox",
    "toolbox", "docker-compose",
})  # fmt: skip
# What hands a command to another host that has the same files: a cluster's scheduler.
SCHEDULERS = frozenset({"srun", "sbatch", "salloc", "qsub", "bsub", "flux"})


class Program(NamedTuple):
    """What runs. `python`: it is an interpreter, else a binary of its own. `script`: the file whose first line named it."""

    path: str
    python: bool
    script: Optional[str] = None


class Place(NamedTuple):
    """Where words are looked up: the environment and the folder of the command."""

    env: Dict[str, str]
    cwd: str

    def fill(self, word: str) -> str:
        """Return a word with `$NAME` and `${NAME}` filled in."""
        return _VARIABLE.sub(lambda match: self.env.get(match.group(1) or match.group(2), ""), word)

    def resolve(self, word: str) -> str:
        """Return a word as a path: `~` and `$NAME` filled in, from the command's folder."""
        word = self.fill(word)
        if word == "~" or word.startswith("~/"):
            word = self.env.get("HOME", "") + word[1:]
        return os.path.normpath(os.path.join(self.cwd, word))


def find(words: Sequence[str], place: Place) -> Optional[Program]:
    """Return the program that `words` come to, or None where it runs elsewhere (a container) or cannot be told.

    Of several commands the first that an interpreter runs, else the first binary.
    """
    walk = _Walk(place)
    for index, word in enumerate(words[:FIRST_WORDS]):
        if os.path.basename(word) in ELSEWHERE and not walk.inside:
            return None
        if word in _ENDS:
            walk.inside = False
        elif not walk.inside:
            walk.step(word, words[index + 1 : index + 8])
        if walk.found is not None and walk.found.python:
            return walk.found
    return walk.found


def elsewhere(words: Sequence[str]) -> Optional[str]:
    """Return what leads to where we cannot see, or finds the program by a way that is not ours; None where nothing does."""
    return next((word for word in words[:FIRST_WORDS] if os.path.basename(word) in ELSEWHERE), None)


def scheduled(words: Sequence[str], env: Dict[str, str]) -> Optional[str]:
    """Return what hands the command to another host; None where nothing does, or it is a step of a job on this host alone."""
    alone = env.get("SLURMD_NODENAME") and env.get("SLURM_JOB_NUM_NODES", env.get("SLURM_NNODES")) == "1"
    found = next((word for word in words[:FIRST_WORDS] if os.path.basename(word) in SCHEDULERS), None)
    return None if found is not None and alone and os.path.basename(found) == "srun" else found


class _Walk:
    """A walk over the words of a command line. `inside`: what follows are the arguments of a binary."""

    def __init__(self, place: Place) -> None:
        self.found: Optional[Program] = None
        self.inside = False
        self._place = place
        self._search = place.env.get("PATH", os.defpath)
        self._last = ""

    def step(self, word: str, following: Sequence[str]) -> None:
        """Look at one word that is no argument of a binary."""
        last, self._last = self._last, word
        assigned, name = _ASSIGNMENT.match(word), os.path.basename(word)
        if assigned is not None:
            self._search = self._place.fill(assigned.group(2)) if assigned.group(1) == "PATH" else self._search
        elif last == "cd":
            self._place = Place(self._place.env, self._place.resolve(word))
        elif name == "uv" and "run" in following:
            self._search = "%s:%s" % (_project_bin(self._place), self._search)
        elif last in {"source", "."} and name == "activate":
            self._search = "%s:%s" % (os.path.dirname(self._place.resolve(word)), self._search)
        elif name not in _PASSED and not word.startswith("-") and word:
            found = _program(word, self._search, self._place)
            self.inside = found is not None and not found.python
            if found is not None and (self.found is None or found.python):
                self.found = found


def _program(word: str, search: str, place: Place) -> Optional[Program]:
    path = which(word, search, place)
    path = _behind_shim(path, place) if path is not None and os.path.dirname(path).endswith("/shims") else path
    if path is None:
        return None
    if _PYTHON.match(os.path.basename(path)):
        return Program(path, python=True)
    head = read_small(path, HEAD_BYTES) or b""
    if not head.startswith(b"#!"):
        return Program(path, python=False) if head.startswith(b"\x7fELF") else None
    interpreter = _named_in(head, search, place)
    if interpreter is not None and _PYTHON.match(os.path.basename(interpreter)):
        return Program(interpreter, python=True, script=path)
    return None  # a shell's script: what it runs stands in it


def _behind_shim(path: str, place: Place) -> Optional[str]:
    """Return what a shim of pyenv stands for: the version that the environment, the project, or the user has chosen."""
    root = os.path.dirname(os.path.dirname(path))
    version = place.env.get("PYENV_VERSION")
    folder = place.cwd
    while not version and folder != "/":
        version, folder = _first_line(os.path.join(folder, ".python-version")), os.path.dirname(folder)
    version = version or _first_line(os.path.join(root, "version"))
    found = os.path.join(root, "versions", version.split(":")[0], "bin", os.path.basename(path))
    return found if version and ".." not in version and os.path.isfile(found) else None


def _first_line(path: str) -> str:
    return (read_small(path, HEAD_BYTES) or b"").decode("utf-8", "replace").strip().partition("\n")[0]


def _named_in(head: bytes, search: str, place: Place) -> Optional[str]:
    """Return the interpreter that a script's first line names, also through `env`, and pip's way round a long path."""
    long = _EXEC.search(head)
    if long is not None:
        return os.fsdecode(long.group(1))
    words = os.fsdecode(head[2:].split(b"\n", 1)[0]).split()
    if not words:
        return None
    if os.path.basename(words[0]) != "env":
        return words[0]
    named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    return which(named, search, place) if named else None


def which(word: str, search: str, place: Place) -> Optional[str]:
    """Return the executable file that a shell would run for a word, or None."""
    if "/" in word:
        tried = [place.resolve(word)]
    else:
        tried = [os.path.join(place.cwd, folder or ".", word) for folder in search.split(":")[:FIRST_WORDS]]
    for path in tried:
        try:
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        except ValueError:  # a NUL byte
            return None
    return None


def _project_bin(place: Place) -> str:
    """Return where `uv run` looks first: the environment that is named, else `.venv` of this project."""
    named = place.env.get("UV_PROJECT_ENVIRONMENT") or place.env.get("VIRTUAL_ENV")
    folder = place.cwd
    for _ in range(HIGHEST):
        if os.path.isdir(os.path.join(folder, ".venv")):
            return os.path.join(folder, ".venv", "bin")
        folder = os.path.dirname(folder)
    return os.path.join(place.resolve(named), "bin") if named else place.cwd


def paths_named(words: Sequence[str], place: Place, hides: Sequence[str]) -> List[Tuple[str, str]]:
    """Return (flag, path) of what a command line names and is there; those of the flags `hides` are left out."""
    found: Dict[str, str] = {}
    flag = ""
    for word in words[:FIRST_WORDS]:
        name, equals, value = word.partition("=") if word.startswith("-") else (flag, "", word)
        flag = name if word.startswith("-") and not equals else ""
        if not value or name in hides or len(value) > HEAD_BYTES:
            continue
        try:
            path = place.resolve(value)
            if ("/" in value or "." in value) and os.path.exists(path):
                found.setdefault(path, name)
        except (OSError, ValueError):
            continue
    return [(name, path) for path, name in found.items()]
