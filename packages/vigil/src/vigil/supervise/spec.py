"""What the observer is told to watch: a plan, and where the last observer stopped."""

import os
from typing import Any
from urllib.parse import urlsplit

from vigil.attest.collect import order_of
from vigil.engine_table import EngineTable
from vigil.engines import TABLES
from vigil.engines.address import HIGHEST_PORT
from vigil.errors import UsageError
from vigil.observer.redact import secrets_of
from vigil.plan import Plan
from vigil.verdict import (
    AskToken,
    Attest,
    DumpStacks,
    Effect,
    Keep,
    Look,
    MeasureSpeculation,
    Probe,
    ReadMetrics,
    State,
)

MEASURE_S = 75.0


def parse_url(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a server's address; raise `UsageError` for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no address ({str(error).lower()}): give http://HOST:PORT") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{url!r} is no address: give http://HOST:PORT")
    if parts.username or parts.password:
        raise UsageError("the address holds a user or password, which would be shown: give a key by --api-key-env")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise UsageError(f"{url!r} has a path: give the server's own address, http://HOST:PORT")
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    if not 0 < port <= HIGHEST_PORT:
        raise UsageError(f"port {port} is out of range (1 to {HIGHEST_PORT})")
    return parts.scheme, parts.hostname, port


def watch_command(plan: Plan, state: State, table: EngineTable, life: str | None) -> dict[str, Any]:
    """Return the observer's first command; a log that was read before is taken up where it stopped."""
    scheme, host, port = parse_url(state.asked.url) if state.asked.url else ("http", "127.0.0.1", None)
    known = [table] if table.name != "generic" else list(TABLES.values())
    log = state.log
    resumed = log.seen and log.inode != 0
    return {
        "do": "watch",
        "life": life,
        "pid": plan.pid,
        "match": plan.match,
        "log": plan.log if life is None else (plan.log or state.asked.log),
        "log_offset": log.size if resumed else None,
        "log_inode": log.inode if resumed else None,
        "scheme": scheme,
        "host": host,
        "port": None if plan.job else port,
        "key": os.environ.get(plan.api_key_env) if plan.api_key_env else None,
        "secrets": sorted(
            secrets_of(plan.command, plan.env.items(), [flag for one in known for flag in one.key_flags])
        ),
        "key_flags": [flag for one in known for flag in one.key_flags],
        "key_variables": [name for one in known for name in one.key_variables],
        "main_signs": [sign for one in known for sign in one.main_signs],
        "workers": [title for one in known for title in one.workers],
        "paces": {"log_s": 0.02, "tree_s": 0.25, "sample_s": max(0.1, plan.time_scale)},
    }


def attest_order(table: EngineTable, *, arguments: bool) -> dict[str, Any]:
    """Return what an engine's processes are asked of themselves; its address too, where its `arguments` matter.

    A start script hides its engine: of a program that is none as we know them, what any of them could tell is asked.
    """
    whole = order_of([table] if table.name != "generic" else list(TABLES.values()))
    return {name: whole[name] for name in (whole if arguments else ("packages", "marks"))}


def measure_command(table: EngineTable) -> dict[str, Any]:
    """Return the command that measures speculation; without a known way of it, one that says so."""
    names = table.metrics
    return {
        "do": "measure",
        "path": table.measured_by,
        "timeout_s": MEASURE_S,
        "metrics": names.path if names.drafts else None,
        "drafts": names.drafts,
        "proposed": names.proposed,
        "accepted": names.accepted,
    }


def command_of(effect: Effect, table: EngineTable) -> dict[str, Any] | None:
    """Return an effect as a command of the observer's protocol; None where it means nothing for this engine."""
    match effect:
        case Probe():
            return {
                "do": "probe",
                "probe": effect.probe,
                "path": effect.path,
                "every_s": effect.every_s,
                "timeout_s": effect.timeout_s,
                "repeat_s": 10.0,
            }
        case ReadMetrics():
            names = table.metrics
            if names.path is None:
                return None
            lists = {"running": names.running, "waiting": names.waiting, "tokens_total": names.tokens_total}
            return {"do": "metrics", "path": names.path, "every_s": effect.every_s, "timeout_s": 5.0, **lists}
        case Look():
            return {"do": "pace", "log_s": effect.log_s, "tree_s": effect.tree_s, "sample_s": effect.sample_s}
        case Keep():
            return {"do": "keep", "texts": effect.texts}
        case DumpStacks():
            return {"do": "stacks"}
        case Attest():
            asked = {
                "modules": effect.modules,
                "files": effect.files,
                "classes": effect.classes,
                "patience_s": effect.patience_s,
            }
            return {"do": "attest", **attest_order(table, arguments=effect.arguments), **asked}
        case MeasureSpeculation():
            return measure_command(table)
        case AskToken():
            return {
                "do": "token",
                "paths": table.completion_paths,
                "model": effect.model,
                "tokens": effect.tokens,
                "timeout_s": effect.timeout_s,
                "delay_s": effect.delay_s,
            }
