"""`vigil stop NAME`: end a server and all of its tree."""

from typing import Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import options
from vigil.screen import plain_json


def command(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="Time to end politely, before it is killed.")
    ] = "30s",
    on: options.On = None,
    reach: options.ReachOption = None,
    json: options.Json = False,
) -> None:
    """Stop a server that vigil started; nothing of its tree is left behind."""
    from vigil.hosts import reach_of
    from vigil.supervise import start
    from vigil.supervise.watch import whoami

    grace_s = options.seconds(grace, "--grace")
    answer: dict[str, Any] = anyio.run(lambda: start.stop(reach_of(on, reach), name, grace_s, whoami()))
    end = answer["exit"]
    gone = not answer["alive"] and not answer["launcher_alive"]
    if json:
        told = {
            "schema": 1,
            "name": name,
            "verdict": "stopped",
            "exit_code": 0 if gone else 1,
            "already": answer["already"],
            "exit": end,
        }
        print(plain_json(msgspec.json.encode(told).decode()))
    elif not gone:
        print(f"{name} could not be stopped: pid {answer['life']['main']['pid']} is still there")
    elif answer["already"]:
        print(f"{name} was not running")
    else:
        how = _how(end)
        number = end.get("left") or 0
        left = f"; {number} process{'es' if number > 1 else ''} left behind, ended too" if number else ""
        print(f"{name} stopped ({how}{left})")
    raise typer.Exit(0 if gone else 1)


def _how(end: dict[str, Any]) -> str:
    if end.get("signal"):
        return f"signal {end['signal']}"
    return "its launcher was gone" if end.get("code") is None else f"exit code {end['code']}"
