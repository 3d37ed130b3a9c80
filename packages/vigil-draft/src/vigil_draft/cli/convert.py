"""`vigil draft convert`: a draft in another format, byte for byte the same tensors; refused where the other cannot say it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

REFUSED = 3
To = Annotated[str, typer.Option("--to", metavar="FORMAT", help="sglang, vllm or speculators.")]
Midlayer = Annotated[
    bool,
    typer.Option(
        "--midlayer/--layers", help="Name the layer midlayer, for SGLang before 0.5.12; else layers.0, as all do since."
    ),
]
Anyway = Annotated[
    bool,
    typer.Option(
        "--anyway", help="Write it although the engine drops or does not read something, as a sliding window."
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="MODEL", help="The model that it is for: its embedding is compared, dropped or taken over."
    ),
]


def command(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The draft's folder, or its name in the hub's cache.")],
    folder: Annotated[Path, typer.Argument(metavar="DST", help="The folder to write; it must not be there.")],
    to: To,
    midlayer: Midlayer = False,
    target: Target = None,
    anyway: Anyway = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a draft in another format. Exit 3 where that format cannot say what it is: one finding a line, nothing written."""
    from vigil.cli.saying import mention
    from vigil.errors import UsageError
    from vigil.screen import json_of, plain, size
    from vigil_draft.convert.convert import FORMATS, convert
    from vigil_draft.convert.wish import Wish
    from vigil_draft.errors import RefusedError

    if to not in FORMATS:
        raise UsageError(f"--to {to!r}: give one of {', '.join(FORMATS)}")
    if midlayer and to == "speculators":
        raise UsageError("--midlayer: speculators names its layers layers.0, layers.1, ...")
    try:
        written = convert(
            source, folder, Wish(to=to, midlayer=midlayer, anyway=anyway), target, ("vigil", *sys.argv[1:])
        )
    except RefusedError as error:
        for line in error.why:
            mention(f"not written: {line}")
        raise typer.Exit(REFUSED) from None
    if json:
        print(json_of(written))
        return
    print(f"{plain(written.path, 300)}: {written.tensors} tensors, {size(written.bytes)}")
    for note in written.notes:
        print(f"  {plain(note, 300)}")
