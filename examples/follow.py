"""Watch a server that somebody else started, and print each change: `python examples/follow.py http://localhost:8000`."""
# ruff: noqa: INP001

import sys

import anyio

import vigil


async def main(url: str) -> int:
    """Follow the server at `url` until it serves no more; return the exit code of the last verdict."""
    async with vigil.watch(vigil.Plan(url=url), follow=True) as watching:
        async for verdict in watching:
            print(f"{verdict.since_s:8.1f} s  {verdict.word}  {verdict.phase or ''}  {verdict.reason}", flush=True)
        return watching.now.exit_code


if __name__ == "__main__":
    try:
        sys.exit(anyio.run(main, sys.argv[1]))
    except vigil.VigilError as error:
        sys.exit(f"could not look: {error}")
