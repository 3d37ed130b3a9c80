"""`vigil draft extract`: the target's hidden states to files."""

from pathlib import Path
from typing import Annotated, Any

import typer

from vigil.cli import options
from vigil.errors import UsageError


def command(
    target: Annotated[str, typer.Option(help="The target: a folder, or a name that transformers knows.")],
    data: Annotated[Path, typer.Option(help="Folder of prepared data.")],
    out: Annotated[Path, typer.Option(help="Folder of the states; where it holds finished shards, the rest is added.")],
    more: Annotated[list[str] | None, typer.Argument(metavar="[-- FLAGS]", help="With --engine: more flags.")] = None,
    length: Annotated[int, typer.Option(help="Tokens of a document; longer ones are cut.", min=3)] = 2048,
    shard: Annotated[int, typer.Option(help="Documents of a shard: what a kill costs at most.", min=1)] = 256,
    nproc: Annotated[int, typer.Option(help="Processes, one a GPU.", min=1)] = 1,
    served: Annotated[
        str | None, typer.Option("--served", metavar="URL|NAME", help="Take the states of this server of the target.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Start this server for it: vllm or sglang.")
    ] = None,
    program: Annotated[
        str | None, typer.Option("--program", metavar="WORDS", help="What starts it, else `vllm serve` or python3.")
    ] = None,
    handed: Annotated[
        Path | None, typer.Option("--handed", metavar="DIR", help="With --served: where vLLM's connector writes.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Documents that a server is asked for at once.", min=1)] = 8,
    model: options.Model = None,
    api_key_env: options.KeyEnv = None,
    env: options.Env = None,
    timeout: options.Timeout = "15m",
    no_check: options.NoCheck = False,
) -> None:
    """Write the target's hidden states of prepared data to files that vigil and speculators train from."""
    from vigil_draft.cli.torch_needed import torch_needed
    from vigil_draft.data.prepared import read_manifest

    read_manifest(data)  # refused before seconds are spent on torch and the target
    _check(nproc=nproc, served=served, engine=engine, handed=handed, more=more)
    torch_needed()
    from vigil_draft.states.asked import IN_PROCESS, Asked

    asked = Asked(
        target=target, data=str(data), out=str(out), length=length, shard=shard, nproc=nproc, by=engine or IN_PROCESS
    )
    manifest: dict[str, Any]
    if served is None and engine is None:
        from vigil_draft.states.extract import extract

        manifest = extract(asked)
    else:
        from vigil_draft.cli.served_states import Start, from_served, from_started

        if served is not None:
            manifest = from_served(asked, served, handed, concurrency, model, api_key_env)
        else:
            start = Start(
                program=program,
                more=tuple(more or ()),
                env=options.environment(env, None),
                timeout=timeout,
                check=not no_check,
            )
            manifest = from_started(asked, start, concurrency)
    print(f"{out}: {manifest['shards']} shards, boundaries {manifest['boundaries']}")


def _check(*, nproc: int, served: str | None, engine: str | None, handed: Path | None, more: list[str] | None) -> None:
    if served is not None and engine is not None:
        raise UsageError("give --served for a server that is there, or --engine for one to start, not both")
    if nproc > 1 and (served or engine):
        raise UsageError(f"--nproc {nproc}: is for a target in process; a server is asked with --concurrency")
    if handed is not None and served is None:
        raise UsageError("--handed is for --served: a server that is started here gets a folder of its own")
    if more and engine is None:
        raise UsageError(f"{more[0]}: flags of a server go with --engine")
