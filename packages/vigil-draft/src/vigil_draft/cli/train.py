"""`vigil draft train`: a draft from prepared data and its target."""

from pathlib import Path
from typing import Annotated

import typer

DATA = typer.Option(help="Folder of prepared data (vigil draft prepare).")

BOUNDARIES = typer.Option(
    metavar="K,K,...",
    help="Feed it with the target's states after so many layers; else after 2, L // 2 and L - 3, as engines do by themselves.",
)


def command(
    target: Annotated[str, typer.Option(help="The target: a folder, or a name that transformers knows.")],
    data: Annotated[Path, DATA],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of the draft, its checkpoint and its record; where it holds a checkpoint, the training goes on."
        ),
    ],
    states: Annotated[
        Path | None, typer.Option(help="Folder of extracted states; else the target computes them in process.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 10,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="End after so many minutes of training, where the epochs last longer; the learning rate falls by then."
        ),
    ] = None,
    draft_vocab: Annotated[
        int, typer.Option(help="Words that the draft can say: the most frequent ones of the answers.")
    ] = 32000,
    intermediate: Annotated[int | None, typer.Option(help="Size of the draft's MLP; else the target's.")] = None,
    boundaries: Annotated[str | None, BOUNDARIES] = None,
    keep_gib: Annotated[
        float | None, typer.Option(help="Memory for the target's states, so that later epochs need not compute them.")
    ] = None,
    length: Annotated[int, typer.Option(help="Tokens of a row; longer documents are cut.")] = 2048,
    tokens_per_step: Annotated[int, typer.Option(help="Tokens of a step, of all processes together.")] = 16384,
    lr: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-4,
    ttt: Annotated[int, typer.Option(help="Steps of a chain that are trained.", min=1, max=16)] = 7,
    nproc: Annotated[int, typer.Option(help="Processes, one a GPU.", min=1)] = 1,
    seed: Annotated[int, typer.Option()] = 0,
    save_minutes: Annotated[float, typer.Option(help="Minutes between checkpoints.")] = 5.0,
    trainer: Annotated[
        str, typer.Option(help="own, or speculators: its own command, which reads --states and ends by steps.")
    ] = "own",
    trainer_python: Annotated[
        str | None, typer.Option(help="The Python where speculators is installed; else this one.")
    ] = None,
    trainer_argument: Annotated[
        list[str] | None, typer.Option(help="One more argument for speculators' command; may be given again.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the last line of the record as JSON.")] = False,
) -> None:
    """Train an EAGLE-3 draft; a second call with the same options goes on from the last checkpoint."""
    import json
    import sys

    from vigil.errors import UsageError
    from vigil_draft.cli.boundaries import boundaries_of
    from vigil_draft.cli.torch_needed import torch_needed
    from vigil_draft.data.prepared import read_manifest

    if trainer not in {"own", "speculators"}:
        raise UsageError(f"--trainer {trainer}: own or speculators")
    places = boundaries_of(boundaries)
    read_manifest(data)  # refused before seconds are spent on torch and the target
    torch_needed()
    from vigil_draft.learn.launch import launch
    from vigil_draft.learn.order import Plan

    plan = Plan(
        target=target,
        data=str(data),
        out=str(out),
        states=str(states) if states else None,
        epochs=epochs,
        minutes=minutes,
        draft_vocab=draft_vocab,
        inner=intermediate,
        boundaries=places,
        keep_gib=keep_gib,
        length=length,
        tokens_per_step=tokens_per_step,
        lr=lr,
        ttt=ttt,
        nproc=nproc,
        seed=seed,
        save_minutes=save_minutes,
    )
    if trainer == "own":
        record = launch(plan)
    else:
        from vigil_draft.learn import speculators_run

        record = speculators_run.launch(plan, trainer_python or sys.executable, trainer_argument or [])
    print(json.dumps(record) if json_ else f"{out}: a draft after {record.get('step', 'all')} steps")
