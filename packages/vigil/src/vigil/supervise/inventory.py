"""What a start runs on and with, so that it can be made again: machine, program, packages, models, flags in force."""

import os
from typing import Any

import anyio
import msgspec

from vigil.attest.collect import ask_account
from vigil.changes import read_snapshot
from vigil.errors import VigilError
from vigil.hosts import Reach, call
from vigil.supervise import start
from vigil.supervise.spec import parse_url

PATIENCE_S = 5.0
LONGEST_S = 20.0
_MACHINE = ("host", "kernel", "glibc", "cpus", "memory_total_bytes", "driver")
_FLAG = ("flag", "asked", "in_force", "state")


async def inventory(reach: Reach, started: start.Started, key_env: str | None) -> dict[str, Any]:
    """Return what is known of a start that serves; what could not be had is left out, with why under `troubles`."""
    found: dict[str, Any] = {}
    troubles = []
    for part in (found_by, _in_force):
        try:
            with anyio.fail_after(LONGEST_S):
                found |= await part(reach, started, key_env)
        except (VigilError, TimeoutError) as error:
            troubles.append(str(error) or f"no answer within {LONGEST_S:.0f} s")
    return {**found, "troubles": troubles} if troubles else found


async def found_by(reach: Reach, started: start.Started, _: str | None = None) -> dict[str, Any]:
    """Return what the snapshot of the start holds."""
    both = await call(reach, "compare", name=started.name, folder=started.folder, patience_s=PATIENCE_S)
    snapshot = read_snapshot(both["after"].get("snapshot") or {})
    if snapshot is None:
        return {}
    machine = msgspec.to_builtins(snapshot.machine) if snapshot.machine else {}
    program = snapshot.program
    return {
        "machine": {name: machine.get(name) for name in _MACHINE if name in machine},
        "gpus": [{"name": one.name, "memory_bytes": one.total_bytes} for one in snapshot.gpus or ()],
        "program": {"path": program.real or program.path, "version": program.version} if program else {},
        "packages": snapshot.packages or {},
        "models": [
            {"what": one.what, "given": one.given, "commit": one.commit, "weights": one.all}
            for one in snapshot.models or ()
        ],
    }


async def _in_force(reach: Reach, started: start.Started, key_env: str | None) -> dict[str, Any]:
    """Return the flags of its command against what is in force."""
    plan = (await start.show(started.name, reach)).get("plan") or {}
    url = plan.get("url")
    at = parse_url(url) if isinstance(url, str) else ("http", "127.0.0.1", None)
    account = await ask_account(reach, started.name, plan, at, os.environ.get(key_env) if key_env else None)
    return {"flags": [{name: getattr(row, name) for name in _FLAG} for row in account.arguments]}
