"""What a process supervisor says about a server: supervisord and pm2, with their defaults, watched until they settle.

They have no wait command: their word is a state in a table, which a user polls. A state that stays is taken once it
has not changed for `SETTLED_S`, nor the count of restarts, and counts from when it was first shown. Where it goes on
changing, all that was shown is taken together at the end of the budget: STARTING and RUNNING in turn say nothing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from peers.adapters import PEERS, Answer, Peer, Said, Trial
from peers.processes import spawn

SETTLED_S = 10.0
ANSWERS: dict[str, Answer] = {
    "RUNNING": "ready",
    "FATAL": "failed",
    "EXITED": "failed",
    "online": "ready",
    "errored": "failed",
    "stopped": "failed",
}
LOG_LINE = re.compile(r"^([-\d]+ [:\d]+),(\d+) \w+ (.*)$")
LOG_STATES = (
    (re.compile(r"spawned: 'server'"), "STARTING"),
    (re.compile(r"success: server entered RUNNING"), "RUNNING"),
    (re.compile(r"exited: server "), "EXITED"),
    (re.compile(r"gave up: server entered FATAL"), "FATAL"),
)


@dataclass(frozen=True)
class Shown:
    """A state as the table shows it: its name, how often the server was started again, and since when (Unix time)."""

    state: str
    restarts: int
    since_unix_s: float

    @property
    def again(self) -> str:
        """Return the restarts in words, or nothing."""
        return f", {self.restarts} restarts" if self.restarts else ""


def settle(look: Callable[[], Shown | None], budget_s: float, pause_s: float) -> Said:
    """Look again and again until the state stays or the budget ends, and read it as a user would."""
    began = changed = time.monotonic()
    history: list[Shown] = []
    while (now := time.monotonic()) - began < budget_s and now - changed < SETTLED_S:
        shown = look()
        if shown is not None and (not history or shown != history[-1]):
            history.append(shown)
            changed = time.monotonic()
        time.sleep(pause_s)
    if not history:
        return Said("silent", "no state shown", time.time())
    last = history[-1]
    if now - changed >= SETTLED_S:
        return Said(ANSWERS.get(last.state, "silent"), f"{last.state}{last.again}", last.since_unix_s)
    # The first states are those of a launch: what counts is what it shows from the first restart on.
    states = list(dict.fromkeys(shown.state for shown in [s for s in history if s.restarts] or history))
    answers = {ANSWERS.get(state, "silent") for state in states}
    answer = answers.pop() if len(answers) == 1 else "silent"
    return Said(answer, f"{' and '.join(states)}{last.again}", time.time())


def read_supervisord(log: Path) -> Shown | None:
    """Read the present state from supervisord's own log, which has each change to a millisecond."""
    shown, starts = None, 0
    text = log.read_text(errors="replace") if log.exists() else ""
    for line in filter(None, map(LOG_LINE.match, text.splitlines())):
        when, thousandths, message = line.groups()
        for pattern, state in LOG_STATES:
            if pattern.match(message):
                starts += state == "STARTING"
                # An exit before it counted as up is a BACKOFF in the table; the log has the same line for both.
                early = state == "EXITED" and shown is not None and shown.state == "STARTING"
                # The log is in local time, and so is what timestamp() makes of it.
                at_unix_s = datetime.fromisoformat(when).timestamp() + int(thousandths) / 1000
                shown = Shown("BACKOFF" if early else state, max(0, starts - 1), at_unix_s)
    return shown


def start_supervisord(trial: Trial) -> Callable[[], Said]:
    """Start supervisord with a configuration that holds nothing but the command and the log."""
    log, config = trial.folder / "supervisord.log", trial.folder / "supervisord.conf"
    command = shlex.join(trial.argv).replace("%", "%%")
    config.write_text(
        f"[supervisord]\nnodaemon=true\nlogfile={log}\npidfile={trial.folder}/supervisord.pid\n"
        f"[program:server]\ncommand={command}\nstdout_logfile={trial.log}\nredirect_stderr=true\n"
    )
    spawn([str(PEERS / "supervisor/bin/supervisord"), "-c", str(config)], trial.folder / "supervisord.out")
    return lambda: settle(lambda: read_supervisord(log), trial.budget_s, pause_s=0.1)


def call_pm2(trial: Trial, *words: str) -> str:
    """Run a pm2 command against a daemon of the trial's own; return what it printed."""
    env = {**os.environ, "PM2_HOME": str(trial.folder / "pm2"), "PM2_DISCRETE_MODE": "true"}
    argv = [str(PEERS / "node/node_modules/.bin/pm2"), *words]
    done = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def read_pm2(trial: Trial) -> Shown | None:
    """Ask pm2 for its list and read the one line in it."""
    lines = call_pm2(trial, "jlist").strip().splitlines()
    listed = json.loads(lines[-1]) if lines and lines[-1].startswith("[{") else []
    if not listed:
        return None
    about = listed[0]["pm2_env"]
    state = str(about["status"])
    # pm2 keeps the time of the last start and none of a stop: then the time at which it was seen has to do.
    since_unix_s = about["pm_uptime"] / 1000 if state == "online" else time.time()
    return Shown(state, int(about["restart_time"]), since_unix_s)


def start_pm2(trial: Trial) -> Callable[[], Said]:
    """Start pm2's daemon and the server, through a process file so that no word of the command is changed."""
    app = {
        "name": "server",
        "script": trial.argv[0],
        "args": trial.argv[1:],
        "interpreter": "none",
        "out_file": str(trial.log),
        "error_file": str(trial.log),
    }
    plan = trial.folder / "server.config.json"
    plan.write_text(json.dumps({"apps": [app]}))
    call_pm2(trial, "start", str(plan))

    def verdict() -> Said:
        said = settle(lambda: read_pm2(trial), trial.budget_s, pause_s=0.5)
        call_pm2(trial, "kill")
        return said

    return verdict


SUPERVISORS: tuple[Peer, ...] = (
    Peer("supervisord", "4.3.0", start_supervisord),
    Peer("pm2", "7.0.4", start_pm2),
)
