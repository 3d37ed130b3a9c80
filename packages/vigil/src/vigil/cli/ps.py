"""`vigil ps`: the servers that are known on a host."""

from typing import Any

import anyio
import msgspec

from vigil.cli import options
from vigil.screen import duration, plain, plain_json


def command(on: options.On = None, reach: options.ReachOption = None, json: options.Json = False) -> None:
    """List the servers that vigil knows on this host (or on another), newest first."""
    from vigil.hosts import call, reach_of

    where = reach_of(on, reach)
    answer = anyio.run(lambda: call(where, "list"))
    rows = [row_of(known) for known in answer["servers"]]
    if json:
        print(plain_json(msgspec.json.encode(rows).decode()))
        return
    if not rows:
        print("no servers known here; start one: vigil up -- COMMAND...")
        return
    columns = ("name", "verdict", "checked", "pid", "up", "engine", "address")
    cells = [[plain(str(row[column] if row[column] is not None else "-"), 60) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in [list(columns), *cells]) for index in range(len(columns))]
    for line in [[column.upper() for column in columns], *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def row_of(known: dict[str, Any]) -> dict[str, Any]:
    """Return what is listed of one server; `verdict` is the last one given, with what is known to have happened since."""
    life, plan, end, verdict = known["life"], known["plan"], known["exit"], known["verdict"]
    word = verdict.get("verdict")
    if known.get("elsewhere"):
        word = f"not seen from here (on {known['elsewhere']})"
    elif known["rebooted"]:
        word = "crashed (host rebooted)"
    elif end.get("asked_by"):
        word = "stopped"
    elif end:
        word = word if word in {"finished", "crashed", "crash_looping"} else _ended(end, plan)
    elif not known["alive"]:
        word = "crashed (launcher gone, too)"
    up_s = known.get("up_s")
    return {
        "name": known["name"],
        "verdict": word or "not watched yet",
        "alive": known["alive"],
        "pid": life.get("main", {}).get("pid") if known["alive"] else None,
        "up": duration(up_s) if up_s is not None else None,
        "up_s": up_s,
        "checked": f"{duration(known['verdict_age_s'])} ago" if known.get("verdict_age_s") is not None else None,
        "engine": plan.get("engine"),
        "address": plan.get("url"),
        "log": life.get("log"),
        "host": known["host"],
    }


def _ended(end: dict[str, Any], plan: dict[str, Any]) -> str:
    return "finished" if plan.get("job") and end.get("code") == 0 else "crashed"
