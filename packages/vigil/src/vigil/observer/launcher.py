"""The launcher: parent and sub-reaper of the server. Writes its exit status down; lives as long as the server.

Standard library only, Python >= 3.9. It is forked from a short-lived process (see `desk`), has its own session, and holds no
connection to anybody: nothing that happens to us reaches the server. It spends its life in `waitpid`.
"""

import ctypes
import json
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
LEFTOVER_GRACE_S = 3.0
EXIT_BYTES = (
    4096  # exit.json is reserved at the start and filled in place, so that a full disk cannot lose an exit status
)


def become_subreaper():
    """Make orphans of the server's tree ours, so that none is left behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def start_ticks(pid):
    """Return field 22 of /proc/PID/stat (start time in clock ticks since boot), or None where the process is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def boot_id():
    """Return the kernel's name for this boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def write_whole(path, value):
    """Write JSON to `path` so that a reader never sees half of it."""
    partial = "%s.%d.part" % (path, os.getpid())
    with open(partial, "w") as file:
        json.dump(value, file)
    os.replace(partial, path)


def reserve_exit(folder):
    """Reserve the bytes of exit.json; blank means: not ended yet."""
    with open(os.path.join(folder, "exit.json"), "wb") as file:
        file.write(b" " * EXIT_BYTES)
        file.flush()
        os.fsync(file.fileno())


def write_exit(folder, value):
    """Fill exit.json in place."""
    data = json.dumps(value).encode()[:EXIT_BYTES]
    handle = os.open(os.path.join(folder, "exit.json"), os.O_WRONLY)
    try:
        os.pwrite(handle, data.ljust(EXIT_BYTES), 0)
    finally:
        os.close(handle)


def oom_kills():
    """Return how often the OOM killer struck our memory cgroup (v2 or v1), or None where that cannot be read."""
    try:
        with open("/proc/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            candidates = [
                "/sys/fs/cgroup/memory%s/memory.oom_control" % path,
                "/sys/fs/cgroup/memory/memory.oom_control",
            ]
        elif not controllers:
            candidates = ["/sys/fs/cgroup%s/memory.events" % path, "/sys/fs/cgroup/memory.events"]
        else:
            continue
        for candidate in candidates:
            count = _oom_count(candidate)
            if count is not None:
                return count
    return None


def _oom_count(path):
    try:
        with open(path) as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def killed_by_oom(pid, kills_before):
    """Say whether the kernel's OOM killer ended `pid`: by its own log where we may read it, else by the cgroup's count."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        handle = None
    needle = b"Killed process %d " % pid
    if handle is not None:
        try:
            while True:
                try:
                    if needle in os.read(handle, 8192):
                        return True
                except BrokenPipeError:  # records were overwritten meanwhile: go on with the oldest that is left
                    continue
                except OSError:
                    break
        finally:
            os.close(handle)
    kills = oom_kills()
    return kills is not None and kills_before is not None and kills > kills_before


class Launcher:
    """One command, from its start to the end of the last process of its tree."""

    def __init__(self, spec, folder):
        self.spec = spec
        self.folder = folder
        self.pid = 0
        self.status = None
        self.asked_by = None
        self.kills_before = oom_kills()

    def start(self, log_handle):
        """Start the command; raise OSError where it cannot be executed."""
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGALRM, self._on_grace_over)
        report_read, report_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become_command(log_handle, report_write)
        os.close(report_write)
        with os.fdopen(report_read, "rb") as report:
            failure = report.read()
        if failure:
            os.waitpid(self.pid, 0)
            number, _, text = failure.decode().partition(" ")
            raise OSError(int(number), text)

    def _become_command(self, log_handle, report_write):
        try:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(log_handle, 1)
            os.dup2(log_handle, 2)
            if self.spec.get("cwd"):
                os.chdir(self.spec["cwd"])
            command = self.spec["command"]
            os.execvpe(command[0], command, self.environment())
        except OSError as error:
            os.write(report_write, ("%d %s" % (error.errno, error.strerror)).encode())
        finally:
            os._exit(127)

    def environment(self):
        """Return the command's environment: the host's own, then the user's; Python in it does not buffer its output."""
        return {"PYTHONUNBUFFERED": "1", **os.environ, **self.spec.get("env", {})}

    def live(self):
        """Wait for the command's end, end what it left behind, write the exit status down."""
        os.chdir("/")
        while self.status is None:
            self._reap(0)
        left = self._end_leftovers()
        code, number = exit_parts(self.status)
        write_exit(
            self.folder,
            {
                "code": code,
                "signal": number,
                "asked_by": self.asked_by,
                "left": left,
                "oom_killed": number == signal.SIGKILL
                and self.asked_by is None
                and killed_by_oom(self.pid, self.kills_before),
                "at_wall_s": time.time(),
            },
        )

    def _reap(self, options):
        """Take one ended child; return False where there is none."""
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            self.status = 0 if self.status is None else self.status
            return False
        if pid == self.pid:
            self.status = status
        return pid != 0

    def _on_stop(self, _number, _frame):
        """Ask the command to end, and end everything when the grace is over."""
        try:
            with open(os.path.join(self.folder, "stop.json")) as file:
                request = json.load(file)
        except (OSError, ValueError):
            request = {}
        self.asked_by = request.get("by") or "a signal to the launcher"
        signal.setitimer(signal.ITIMER_REAL, max(0.01, float(request.get("grace_s", 30.0))))
        self._signal(self.pid, signal.SIGTERM)

    def _on_grace_over(self, _number, _frame):
        for pid in descendants(os.getpid()):
            self._signal(pid, signal.SIGKILL)

    @staticmethod
    def _signal(pid, number):
        try:
            os.kill(pid, number)
        except OSError:
            pass

    def _end_leftovers(self):
        """End what is left of the tree: politely, then not; return how many there were."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        seen = set()
        deadline = time.monotonic() + LEFTOVER_GRACE_S
        number = signal.SIGTERM
        while True:
            while self._reap(os.WNOHANG):
                pass
            left = descendants(os.getpid())
            if not left:
                return len(seen)
            if time.monotonic() > deadline:
                number = signal.SIGKILL
            for pid in left:
                if pid not in seen or number == signal.SIGKILL:
                    self._signal(pid, number)
            seen.update(left)
            time.sleep(0.02)


def exit_parts(status):
    """Return (code, signal) of a wait status; one of them is None."""
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def descendants(root):
    """Return the pids of all living processes below `root`, zombies left out."""
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            parents[int(name)] = int(fields[1])
    below = {root}
    grew = True
    while grew:
        grew = False
        for pid, parent in parents.items():
            if parent in below and pid not in below:
                below.add(pid)
                grew = True
    return sorted(below - {root})
