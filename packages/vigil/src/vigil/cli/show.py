"""`vigil show NAME`: everything that is known of one server."""

import os
from typing import Annotated, Any

import anyio
import msgspec
import typer

from vigil.cli import options
from vigil.cli.ps import row_of
from vigil.screen import plain, plain_json


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name that vigil knows; with --args also http://HOST:PORT.")
    ],
    on: options.On = None,
    reach: options.ReachOption = None,
    args: Annotated[
        bool, typer.Option("--args", help="Ask it what it runs: each flag of its command against what is in force.")
    ] = False,
    api_key_env: options.KeyEnv = None,
    json: options.Json = False,
) -> None:
    """Show what is known of one server: its state, command, log, and last verdict."""
    if args:
        _show_arguments(name, on, reach, api_key_env, json=json)
        return
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


def _show_arguments(target: str, on: str | None, reach: str | None, key_env: str | None, *, json: bool) -> None:
    from vigil.attest.collect import ask_account
    from vigil.cli.account import text_of_account
    from vigil.cli.watching import parsed_target
    from vigil.hosts import reach_of
    from vigil.supervise import start
    from vigil.supervise.spec import parse_url

    name, url = parsed_target(target)
    where = reach_of(on, reach)
    known: dict[str, Any] = anyio.run(start.show, name, where) if name is not None else {"plan": {}}
    kept = url or known["plan"].get("url")
    at = parse_url(kept) if isinstance(kept, str) else ("http", "127.0.0.1", None)
    account = anyio.run(ask_account, where, name, known["plan"], at, os.environ.get(key_env) if key_env else None)
    print(plain_json(msgspec.json.encode(account).decode()) if json else text_of_account(account))
