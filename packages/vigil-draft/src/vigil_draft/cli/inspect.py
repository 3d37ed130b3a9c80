"""`vigil draft inspect`: what a draft is, and what each engine will load, drop, invent or misread of it."""

from typing import Annotated

import typer

REFUSED = 3
Target = Annotated[
    str | None, typer.Option("--target", metavar="MODEL", help="The model that it is for, a folder or a cached name.")
]
EngineName = Annotated[str | None, typer.Option("--engine", metavar="NAME", help="sglang or vllm, and no other.")]
EngineVersion = Annotated[
    str | None, typer.Option("--engine-version", metavar="X", help="This release of the engine, as 0.5.10.")
]


def command(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The draft's folder, or its name in the hub's cache.")],
    target: Target = None,
    engine: EngineName = None,
    engine_version: EngineVersion = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a draft is, and what engines make of it; only headers are read. Exit 3 where --engine would not load it."""
    from vigil.cli.flags import release_of
    from vigil.errors import UsageError
    from vigil.screen import json_of
    from vigil_draft.inspect.inspection import RELEASES, inspect, known
    from vigil_draft.inspect.text import text_of

    if engine is not None and not known(engine):
        raise UsageError(f"--engine {engine!r}: give one of sglang, vllm")
    if engine is None and engine_version is not None:
        raise UsageError("--engine-version says nothing without --engine")
    wanted: tuple[tuple[str, str], ...] = RELEASES
    if engine is not None:
        version = release_of(engine_version)
        wanted = ((engine, version),) if version else tuple(one for one in RELEASES if one[0] == engine)
    found = inspect(path, target, wanted)
    print(json_of(found) if json else text_of(found))
    if engine is not None and not found.readings[-1].loads:
        raise typer.Exit(REFUSED)
