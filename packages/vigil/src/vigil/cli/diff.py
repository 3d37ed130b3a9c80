"""`vigil diff NAME [A B]`: what differs between two starts of a server."""

from typing import Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import options
from vigil.screen import ago, plain, plain_json


def command(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    a: Annotated[str | None, typer.Argument(metavar="[A", help="The earlier start: its number, or its time.")] = None,
    b: Annotated[str | None, typer.Argument(metavar="B]", help="The later start; else the newest.")] = None,
    on: options.On = None,
    reach: options.ReachOption = None,
    json: options.Json = False,
) -> None:
    """Show what differs between two starts of a server: the newest and the last good one before it, or A and B."""
    from vigil.cli.changed import whole
    from vigil.hosts import reach_of
    from vigil.supervise.changed import difference

    found: Any = anyio.run(difference, reach_of(on, reach), name, a, b)
    if json:
        print(plain_json(msgspec.json.encode(found).decode()))
        return
    before, after = _told(found.before), _told(found.after)
    if not found.changes:
        print(f"{name}: nothing that vigil keeps differs between start {before} and start {after}")
    else:
        print(f"{name}: from start {before} to start {after}")
        print("\n".join(whole(found.changes)))
    for note in found.notes:
        print(f"  note: {plain(note, 300)}")


def _told(side: Any) -> str:
    word = "ready" if side.ready else side.verdict or "no verdict"
    when = f", {ago(side.ago_s)}" if side.ago_s is not None else ""
    return f"{side.number} ({plain(word, 40)}{when})"
