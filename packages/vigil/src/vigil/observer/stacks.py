"""Say where processes stand that seem stuck: what the kernel tells of each, and the Python stack where py-spy is there.

Only looks: py-spy is run so that it does not stop the process that it reads.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from .process import read_argv, read_bytes, read_environ, read_exe, read_stat

MOST_PROCESSES = 32
MOST_FRAMES = 24
DUMP_S = 5.0
ALL_S = 15.0
FRAME_CHARS = 200
LONGEST_DUMP_BYTES = 4 << 20
TOOL = "py-spy"


class Member(NamedTuple):
    """A process to be looked at."""

    pid: int
    name: str


class Stacks:
    """Looks at the processes in a thread of its own, once at a time; `tell` gets the fields of `StacksSeen`."""

    def __init__(self, tell: Callable[[Dict[str, Any]], None]) -> None:
        self._tell = tell
        self._thread: Optional[threading.Thread] = None

    def want(self, members: Iterable[Member]) -> None:
        """Begin to look, unless a look is under way."""
        if self._thread is not None and self._thread.is_alive():
            return
        chosen = list(members)[:MOST_PROCESSES]
        self._thread = threading.Thread(target=self._run, args=[chosen], name="vigil-stacks", daemon=True)
        self._thread.start()

    def _run(self, members: List[Member]) -> None:
        self._tell(look(members))


def look(members: List[Member]) -> Dict[str, Any]:
    """Return where each process stands, and why there are no Python stacks where there are none."""
    tool = find_tool(members[0].pid) if members else None
    error = "" if tool else "%s is not installed there" % TOOL
    found = []
    for member in members:
        stat = read_stat(member.pid)
        if stat is None or not stat.alive:
            continue
        frames: List[str] = []
        if tool and is_python(member.pid):
            frames, trouble = dump(tool, member.pid)
            error = error or trouble
        found.append(
            {
                "pid": member.pid,
                "name": member.name,
                "state": stat.state,
                "waits_in": _word(read_bytes("/proc/%d/wchan" % member.pid, 128)),
                "frames": frames,
            }
        )
    return {"stacks": found, "error": error}


def find_tool(pid: int) -> Optional[str]:
    """Return the path of py-spy: beside our own interpreter, on our PATH, or on that of the server where it is our own user's.

    Another user's PATH is no place to take a program from.
    """
    paths = [os.path.dirname(sys.executable or ""), os.environ.get("PATH", os.defpath)]
    if _is_ours(pid):
        argv = read_argv(pid)
        first = argv[0] if argv else ""
        paths.append(os.path.dirname(first) if first.startswith("/") else "")
        paths.append(dict(read_environ(pid)).get("PATH", ""))
    return shutil.which(TOOL, path=os.pathsep.join(path for path in paths if path))


def is_python(pid: int) -> bool:
    """Tell whether a process runs a Python interpreter: py-spy reads no other."""
    return os.path.basename(read_exe(pid)).startswith("python")


def dump(tool: str, pid: int) -> Tuple[List[str], str]:
    """Return the main thread's frames, the innermost first, and what went wrong."""
    command = [tool, "dump", "--nonblocking", "--json", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=DUMP_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return [], "%s did not answer within %d s" % (TOOL, DUMP_S)
    except OSError as error:
        return [], "%s cannot be run: %s" % (TOOL, error.strerror)
    if done.returncode != 0:
        words = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return [], "%s: %s" % (TOOL, words[0] if words else "exit code %d" % done.returncode)
    return read_dump(done.stdout[:LONGEST_DUMP_BYTES]), ""


def read_dump(data: bytes) -> List[str]:
    """Return the frames of the main thread in py-spy's JSON (0.4)."""
    try:
        threads = json.loads(data)
        main = next((one for one in threads if one.get("thread_name") == "MainThread"), threads[0])
        frames = main["frames"][:MOST_FRAMES]
        return [
            ("%s (%s:%s)" % (one["name"], one.get("short_filename") or one["filename"], one["line"]))[:FRAME_CHARS]
            for one in frames
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def files_on(tool: str, pid: int) -> Tuple[List[str], str]:
    """Return the files that stand on the stacks of a process's threads, and what went wrong."""
    command = [tool, "dump", "--nonblocking", "--json", "--full-filenames", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=DUMP_S, check=False, stdin=subprocess.DEVNULL)
        threads = json.loads(done.stdout[:LONGEST_DUMP_BYTES])
        return sorted({str(one["filename"]) for thread in threads for one in thread["frames"]}), ""
    except (subprocess.SubprocessError, OSError) as error:
        return [], "%s: %s" % (TOOL, type(error).__name__)
    except (ValueError, LookupError, TypeError, RecursionError):
        words = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return [], "%s: %s" % (TOOL, words[0] if words else "exit code %d" % done.returncode)


def _is_ours(pid: int) -> bool:
    try:
        return os.stat("/proc/%d" % pid).st_uid == os.geteuid()
    except OSError:
        return False


def _word(data: Optional[bytes]) -> str:
    word = (data or b"").decode("ascii", "replace").strip()
    return "" if word == "0" else word
