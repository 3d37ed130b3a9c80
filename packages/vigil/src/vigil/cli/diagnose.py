"""`vigil diagnose`: why a server ended, from a log, or from all that is known of a server by its name.

What has a slash, or is there, is a file; all else is a server's name. Where one word could be either, `./X` is the file and
`name:X` the server.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from vigil.cli import options
from vigil.cli.saying import mention, say
from vigil.errors import UsageError
from vigil.screen import plain

if TYPE_CHECKING:
    from vigil.diagnosis.postmortem import Story
    from vigil.diagnosis.rules import Rule

NAMED = "name:"

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE...|-|NAME",
        help="Logs; - reads one from standard input. name:X is the server where X is a file, too.",
    ),
]
Explain = Annotated[str | None, typer.Option("--explain", metavar="CODE", help="Print what a rule says, and stop.")]
Rules = Annotated[
    Path | None, typer.Option("--rules", metavar="FOLDER", help="A folder with rules of your own; they go first.")
]


def command(
    sources: Sources = None,
    explain: Explain = None,
    rules: Rules = None,
    engine: options.Engine = None,
    json: options.Json = False,
    on: options.On = None,
    reach: options.ReachOption = None,
) -> None:
    """Say why a server ended: the first failure that explains the others, and what to do about it."""
    from vigil.cli.causes import own_rules, rule_text, story_json, story_text
    from vigil.diagnosis.rules import without

    known = own_rules(rules) if rules is not None else ()
    if explain is not None:
        say(rule_text(explain, known))
        return
    if not sources:
        raise UsageError("nothing to read: give FILE..., the NAME of a server, or - for standard input")
    wrong = []
    for number, source in enumerate(sources):
        try:
            story = _read(source, options.engine_name(engine), known, on, reach)
        except UsageError as error:
            wrong.append(error)
            if len(sources) > 1:
                mention(str(error))
            continue
        _name_slow(story, source)
        known = without(known, story.slow_rules)
        if not say(story_json(story) if json else ("\n" if number else "") + story_text(story, source)):
            mention("what was found could not be written: is the disk full?")
            raise typer.Exit(1)
    if wrong:
        raise typer.Exit(2) if len(sources) > 1 else wrong[0]


def _name_slow(story: "Story", source: str) -> None:
    for slow in story.slow_rules:
        told = (
            f"rule {slow.code}: {slow.field} takes too long on the lines of {source}: the rule is left out from here on"
        )
        mention(plain(told, 600))


def _read(source: str, engine: str | None, rules: "tuple[Rule, ...]", on: str | None, reach: str | None) -> "Story":
    from vigil.hosts import reach_of
    from vigil.supervise import autopsy

    if source == "-":
        return autopsy.read_stream(sys.stdin.buffer, "-", engine=engine, rules=rules)
    if not source.strip():
        raise UsageError("a file's name is empty: give FILE..., the NAME of a server, or - for standard input")
    name = source.removeprefix(NAMED)
    if on or reach or name != source or not ("/" in source or os.path.lexists(source)):
        return anyio.run(lambda: autopsy.read_server(name, reach_of(on, reach), rules=rules))
    if autopsy.is_server_here(source):
        mention(
            f"{source} is a file here and a server's name: this is the file; for the server: vigil diagnose {NAMED}{source}"
        )
    return autopsy.read_file(source, engine=engine, rules=rules)
