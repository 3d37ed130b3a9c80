"""`vigil show NAME`: everything that is known of one server."""

from typing import Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import options
from vigil.cli.ps import row_of
from vigil.screen import plain, plain_json


def command(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    on: options.On = None,
    reach: options.ReachOption = None,
    json: options.Json = False,
) -> None:
    """Show what is known of one server: its state, command, log, and last verdict."""
    from vigil.cli.render import text_of
    from vigil.hosts import reach_of
    from vigil.supervise import start
    from vigil.verdict import Verdict

    known: dict[str, Any] = anyio.run(start.show, name, reach_of(on, reach))
    if json:
        told = {**known, **row_of(known), "last_verdict": known["verdict"] or None}
        print(plain_json(msgspec.json.encode(told).decode()))
        return
    row = row_of(known)
    for field in ("name", "host", "verdict", "pid", "up", "engine", "address", "log"):
        if row[field] is not None:
            print(f"{field:<9}{plain(str(row[field]), 200)}")
    print(f"{'command':<9}{plain(' '.join(known['plan'].get('command', [])), 1000)}")
    if known["verdict"]:
        try:
            last = msgspec.convert(known["verdict"], Verdict)
        except msgspec.ValidationError as error:
            print(f"\nits last verdict was written by another version ({plain(str(error), 200)})")
            return
        before = "" if last.word.value == row["verdict"] else ", given before that"
        print(f"\nthe last verdict{before}:\n{text_of(last, None, hints=known['alive'])}")
