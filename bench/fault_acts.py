"""What happens around a row beside the fake's own fault: (before the start, during the watch); either may be None."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from fault_run import FAKES, Run

FILL_BYTES = 64 << 20


def key_x(run: Run) -> None:
    """Hold the server's key in a variable of ours."""
    run.env["ROW_KEY"] = "x"


def old_log(run: Run) -> None:
    """Leave the log of yesterday's good start where today's will be appended."""
    command = [sys.executable, str(FAKES / "server.py"), "--style", "sglang", "--port", str(run.port), "--rehearse"]
    (run.folder / "log").write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)


def stop(run: Run, *grace: str) -> None:
    """Stop it as a colleague would."""
    run.wait_word("ready")
    run.note("ASKED")
    done = run.call("stop", run.name, *grace)
    if done.returncode != 0:
        raise RuntimeError(f"stop: {done.stderr.decode(errors='replace')[-300:]}")


def stop_hard(run: Run) -> None:
    """Stop one that takes no SIGTERM."""
    stop(run, "--grace", f"{run.s(5):g}s")


def squat(run: Run) -> None:
    """Let another inference server take the port while ours loads."""
    run.wait_mark("BORN")
    command = [
        sys.executable,
        str(FAKES / "squatter.py"),
        "--port",
        str(run.port),
        "--answer",
        "openai",
        "--after",
        f"{run.s(5):g}s",
    ]
    squatter = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.stack.callback(squatter.wait)
    run.stack.callback(squatter.kill)
    time.sleep(run.s(5))
    run.note("FAULT")


def kill_watcher(run: Run) -> None:
    """Kill the watching vigil in the middle of the load, and take the server up again by its name."""
    run.wait_mark("BORN")
    time.sleep(max(1.0, run.s(3)))
    replace_watcher(run)


def kill_watcher_ready(run: Run) -> None:
    """Kill the watching vigil after it said ready, and ask again."""
    run.wait_word("ready")
    run.said = []
    replace_watcher(run)
    run.wait_word("ready")


def replace_watcher(run: Run) -> None:
    """End our own process by SIGKILL and start another that knows the name only."""
    old = run.watcher
    assert old is not None  # noqa: S101 - the act runs beside it
    old.send_signal(signal.SIGKILL)
    old.wait()
    run.watch(["wait", run.name], plain=True)


def wire(run: Run) -> Any:
    """Return the proxy of the row's ssh connection."""
    assert run.sshd is not None  # noqa: S101 - such rows run over ssh only
    return run.sshd.proxy


def cut_loading(run: Run) -> None:
    """Cut the connection for 20 s in the middle of the load."""
    run.wait_mark("BORN")
    time.sleep(max(1.0, run.s(5)))
    cut_for(run, 20)


def cut_for(run: Run, seconds: float) -> None:
    """Cut, wait, mend."""
    run.note("CUT")
    wire(run).cut()
    time.sleep(run.s(seconds))
    run.note("MENDED")
    wire(run).mend()


def cut_ready_only(run: Run) -> None:
    """Cut the connection for 20 s after it said ready."""
    run.wait_word("ready")
    time.sleep(run.s(2))
    cut_for(run, 20)


def cut_ready(run: Run) -> None:
    """As `cut_ready_only`; and once it is mended, stop the server."""
    cut_ready_only(run)
    time.sleep(run.s(10))
    stop(run)


def freeze_ready(run: Run) -> None:
    """Let the network swallow everything for 20 s, in silence, after it said ready; then stop the server."""
    run.wait_word("ready")
    time.sleep(run.s(2))
    wire(run).freeze()
    time.sleep(run.s(20))
    wire(run).mend()
    time.sleep(run.s(10))
    stop(run)


def cut_for_good(run: Run) -> None:
    """Cut the connection and never mend it."""
    run.wait_word("ready")
    run.note("CUT")
    wire(run).cut()


def build_host(run: Run) -> None:
    """Make a reach that is a host of its own: once a file says so, with another boot id."""
    script = run.folder / "host"
    script.write_text(
        f"""#!/bin/sh
[ -e "{run.folder}/boot_id" ] || exec "$@"
exec unshare -m sh -c 'mount --bind "{run.folder}/boot_id" /proc/sys/kernel/random/boot_id && exec "$@"' sh "$@"
"""
    )
    script.chmod(0o755)


def reboot(run: Run) -> None:
    """Kill all that runs on that host at once, and let it come back with another boot id."""
    run.wait_word("ready")
    (run.folder / "boot_id").write_text("00000000-1111-4222-8333-444444444444\n")
    watcher = run.watcher
    doomed = {**run.processes(), **run.processes(f"XDG_STATE_HOME={run.state}")}
    run.note("REBOOTED")
    for pid in doomed:
        if watcher is None or pid != watcher.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def mount_state(run: Run, size: str = "4m") -> None:
    """Put the state folder on a small disk of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "vigil-row", str(run.state)], check=True)
    run.stack.callback(subprocess.run, ["umount", "-l", str(run.state)], check=False)


def fill(run: Run) -> None:
    """Write until the state folder's disk is full."""
    with contextlib.suppress(OSError), (run.state / "filler").open("wb", buffering=0) as file:
        for _ in range(FILL_BYTES // 4096):
            file.write(b"x" * 4096)


def full_disk(run: Run) -> None:
    """Begin with a full disk."""
    mount_state(run)
    fill(run)


def fill_disk(run: Run) -> None:
    """Fill it while the server loads."""
    run.wait_mark("BORN")
    time.sleep(run.s(2))
    fill(run)


def lend_clock(run: Run) -> None:
    """Put a wall clock that can be made to jump under everything the row starts."""
    source = FAKES / "clock_jump.c"
    library = pathlib.Path(tempfile.gettempdir()) / f"vigil-clock-{int(source.stat().st_mtime)}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(part), str(source), "-ldl"], check=True)
        part.rename(library)
    run.env |= {"LD_PRELOAD": str(library), "CLOCK_JUMP": str(run.folder / "jump")}


def jump_clock(run: Run) -> None:
    """Set the clock two hours ahead, then two behind, then right again, while it loads."""
    run.wait_mark("BORN")
    for seconds in (7200, -7200, 0):
        time.sleep(run.s(1.5))
        (run.folder / "jump").write_text(str(seconds))


ACTS = {
    "key_x": (key_x, None),
    "old_log": (old_log, None),
    "stop": (None, stop),
    "stop_hard": (None, stop_hard),
    "squat": (None, squat),
    "kill_watcher": (None, kill_watcher),
    "kill_watcher_ready": (None, kill_watcher_ready),
    "cut_loading": (None, cut_loading),
    "cut_ready": (None, cut_ready),
    "cut_ready_only": (None, cut_ready_only),
    "freeze_ready": (None, freeze_ready),
    "cut_for_good": (None, cut_for_good),
    "reboot": (build_host, reboot),
    "full_disk": (full_disk, None),
    "fill_disk": (mount_state, fill_disk),
    "jump_clock": (lend_clock, jump_clock),
}
