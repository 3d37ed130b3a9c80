"""`vigil draft widen`: a model that answers like a small one and costs like a large one, and its draft alike."""

from pathlib import Path
from typing import Annotated

import typer

Times = Annotated[int, typer.Option("--times", metavar="N", help="How many times as wide: a square, as 4.")]
Inner = Annotated[
    int | None, typer.Option("--intermediate", metavar="SIZE", help="Of the MLP; else N times the model's.")
]
Layers = Annotated[
    int | None, typer.Option("--layers", metavar="L", help="Layers of a wider target; else as many as it has.")
]


def command(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="The folder of a small Llama, or of its EAGLE-3 draft.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DST", help="The folder to write; it must not be there.")],
    times: Times = 4,
    inner: Inner = None,
    layers: Layers = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the added weights.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Widen a model or a draft without changing what it computes, to measure speculation at a real price. Needs torch."""
    from vigil.screen import json_of, plain
    from vigil_draft.cli.torch_needed import torch_needed

    torch_needed()
    from vigil_draft.widen.plan import Wish
    from vigil_draft.widen.widen import widen

    found = widen(source, folder, Wish(times, inner, layers, seed))
    if json:
        print(json_of(found))
        return
    large = found["sizes"]["large"]
    print(
        f"{plain(found['path'], 300)}: {found['parameters'] / 1e9:.2f} billion numbers, "
        f"{large['layers']} layers of {large['hidden']}"
    )
