"""`vigil logs NAME`: the log of a server's newest start, made safe for the terminal."""

from typing import Annotated, Any

import anyio
import typer

from vigil.cli import options
from vigil.screen import plain

TAIL_BYTES = 256 << 10
LINE_LIMIT = 4000


def command(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as the log grows.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many lines of what is there.")] = 100,
    on: options.On = None,
    reach: options.ReachOption = None,
) -> None:
    """Print the end of a server's log; with -f go on as it grows."""
    from vigil.hosts import call, reach_of

    where = reach_of(on, reach)
    answer: dict[str, Any] = anyio.run(lambda: call(where, "tail", name=name, limit_bytes=TAIL_BYTES))
    for line in answer["text"].replace("\r", "\n").split("\n")[-lines - 1 :]:
        if line:
            print(plain(line, LINE_LIMIT))
    if follow:
        anyio.run(_follow, where, name)


async def _follow(where: Any, name: str) -> None:
    from vigil.hosts import call, open_link

    known = await call(where, "show", name=name)
    async with open_link(where) as link:
        paces = {"log_s": 0.1, "tree_s": 5.0, "sample_s": 60.0}
        log = known["life"]["log"]
        await link.send({"do": "watch", "life": known["folder"], "log": log, "port": None, "paces": paces})
        async for message in link.messages:
            if message.get("kind") == "LogGrew" and not message.get("history"):
                for line in message.get("lines", []):
                    print(plain(str(line[1]), LINE_LIMIT), flush=True)
            if message.get("kind") == "RootExited":
                return
