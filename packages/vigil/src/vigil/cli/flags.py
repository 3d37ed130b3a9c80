"""`vigil flags diff OLD NEW`: what came, went and changed among an engine's flags between two releases."""

import re
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from vigil.cli import options
from vigil.errors import UsageError
from vigil.screen import plain, plain_json

if TYPE_CHECKING:
    from vigil.preflight.drift import Drift

_RELEASE = re.compile(r"[bv]?\d[\w.+-]{0,40}\Z")
EngineName = Annotated[str, typer.Option("--engine", metavar="NAME", help="sglang, vllm or llamacpp.")]

app = typer.Typer(help="What the tables know of engines' flags.", rich_markup_mode=None)


@app.callback()
def _flags() -> None:
    """Show what the tables know of engines' flags."""


@app.command(name="diff")
def diff(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="The earlier release, as 0.5.10; of llama-server its build.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The later release.")],
    engine: EngineName = "sglang",
    json: options.Json = False,
) -> None:
    """Show which flags came, went and changed between two releases of an engine, as far as its table goes."""
    from vigil.preflight.drift import drift
    from vigil.preflight.tables import table_of

    table = table_of(engine) if engine in {"sglang", "vllm", "llamacpp"} else None
    if table is None:
        raise UsageError(f"there is no table of {plain(engine, 40)}: it is one of sglang, vllm, llamacpp")
    asked = [release_of(old) or "", release_of(new) or ""]
    nearest = [table.nearest(one) for one in asked]
    found = drift(table, *nearest)
    print(plain_json(msgspec.json.encode(found).decode()) if json else text_of(found, asked))


def release_of(word: str | None) -> str | None:
    """Return a release as it was typed, without the `v` or `b` before it; refuses what is none."""
    if word is None:
        return None
    if not _RELEASE.match(word):
        raise UsageError(
            f"{plain(repr(word), 60)} is no release: write it as 0.5.10, or 11434 for a build of llama-server"
        )
    return word.lstrip("bv")


def text_of(found: "Drift", asked: list[str]) -> str:
    """Return a drift for people."""
    lines = [f"{found.engine}: from {found.old} to {found.new}"]
    lines += [
        f"  note: the table has no {plain(one, 40)}; {used} is the nearest before it"
        for one, used in zip(asked, (found.old, found.new), strict=True)
        if one != used
    ]
    lines += ["", f"went ({len(found.went)})", *(f"  {key}{_instead(told)}" for key, told in found.went.items())]
    lines += ["", f"came ({len(found.came)})", *(f"  {key}" for key in found.came)]
    lines += ["", f"changed ({len(found.changed)})"]
    for key, changes in found.changed.items():
        lines += [f"  {key}", *(f"    {one}" for one in changes)]
    return plain_lines(lines)


def _instead(told: str) -> str:
    return f"  (in its place: {told})" if told else ""


def plain_lines(lines: list[str]) -> str:
    """Return lines in which nothing can move the terminal."""
    return "\n".join(plain(line, 400) for line in lines)
