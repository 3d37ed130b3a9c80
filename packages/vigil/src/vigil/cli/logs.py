"""`vigil logs NAME`: the log of a server's newest start, made safe for the terminal."""

from typing import Annotated, Any

import anyio
import typer

from vigil.cli import options
from vigil.screen import hide_secrets, plain

TAIL_BYTES = 256 << 10
LINE_LIMIT = 4000


def command(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as the log grows.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many lines of what is there.")] = 100,
    on: options.On = None,
    reach: options.ReachOption = None,
) -> None:
    """Print the end of a server's log; with -f go on as it grows, until the server ends."""
    from vigil.hosts import call, reach_of

    where = reach_of(on, reach)
    end: dict[str, Any] = anyio.run(lambda: call(where, "tail", name=name, limit_bytes=TAIL_BYTES))
    shown = visible(end["text"])
    if follow and not end["text"].endswith("\n"):
        shown = shown[:-1]  # what follows begins with that line, whole
    for line in shown[-lines:] if lines else []:
        print(line, flush=follow)
    if follow:
        anyio.run(_follow, where, name, end)


def visible(text: str) -> list[str]:
    r"""Return a log's lines as they may be shown; of the updates of a bar (`\r`) only the last, as a terminal would."""
    whole = text.removesuffix("\n").split("\n") if text else []
    return [_shown(line.rstrip("\r").rpartition("\r")[2]) for line in whole]


def _shown(line: str) -> str:
    return plain(hide_secrets(line), LINE_LIMIT)


async def _follow(where: Any, name: str, end: dict[str, Any]) -> None:
    from vigil.hosts import call, open_link, why_ended

    known = await call(where, "show", name=name)
    async with open_link(where) as link:
        await link.send(
            {
                "do": "watch",
                "life": known["folder"],
                "log": end["log"],
                "log_offset": end["size"],
                "log_inode": end["inode"],
                "port": None,
                "paces": {"log_s": 0.1, "tree_s": 5.0, "sample_s": 60.0},
            }
        )
        async for message in link.messages:
            if message.get("kind") == "LogGrew":
                for line in message.get("lines", []):
                    print(_shown(str(line[1])), flush=True)
            if message.get("kind") == "RootExited":
                return
        raise await why_ended(link, where)
