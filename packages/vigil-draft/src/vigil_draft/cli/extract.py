"""`vigil draft extract`: the target's hidden states to files."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    target: Annotated[str, typer.Option(help="The target: a folder, or a name that transformers knows.")],
    data: Annotated[Path, typer.Option(help="Folder of prepared data.")],
    out: Annotated[Path, typer.Option(help="Folder of the states; where it holds finished shards, the rest is added.")],
    length: Annotated[int, typer.Option(help="Tokens of a document; longer ones are cut.", min=3)] = 2048,
    shard: Annotated[int, typer.Option(help="Documents of a shard: what a kill costs at most.", min=1)] = 256,
    nproc: Annotated[int, typer.Option(help="Processes, one a GPU.", min=1)] = 1,
) -> None:
    """Write the target's hidden states of prepared data to files that vigil and speculators train from."""
    from vigil_draft.cli.torch_needed import torch_needed
    from vigil_draft.data.prepared import read_manifest

    read_manifest(data)  # refused before seconds are spent on torch and the target
    torch_needed()
    from vigil_draft.states.asked import Asked
    from vigil_draft.states.extract import extract

    manifest = extract(Asked(target=target, data=str(data), out=str(out), length=length, shard=shard, nproc=nproc))
    print(f"{out}: {manifest['shards']} shards, boundaries {manifest['boundaries']}")
