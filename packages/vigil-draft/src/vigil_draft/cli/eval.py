"""`vigil draft eval`: what acceptance length a draft promises."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    draft: Annotated[Path, typer.Argument(help="Folder of the draft.")],
    target: Annotated[str, typer.Option(help="The target: a folder, or a name that transformers knows.")],
    data: Annotated[
        Path,
        typer.Option(help="Folder of prepared data that the draft was not trained on."),
    ],
    k: Annotated[int, typer.Option("--k", help="Longest chain.", min=1, max=16)] = 7,
    length: Annotated[int, typer.Option(help="Tokens of a row; longer documents are cut.")] = 2048,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate a draft's acceptance length on held-out answers, as a server that drafts greedily would report it."""
    import json

    from vigil_draft.cli.torch_needed import torch_needed
    from vigil_draft.data.prepared import read_manifest

    read_manifest(data)  # refused before seconds are spent on torch and the target
    torch_needed()
    from vigil_draft.evaluate.report import evaluate, told

    result = evaluate(draft, target, data, k=k, length=length)
    print(json.dumps(result) if json_ else told(result))
