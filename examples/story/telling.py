"""What a step of the story promised and measured, and the page that is made of them."""

import json
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One thing that was promised, and what was measured. `kept` None: nothing was promised, this is a figure."""

    subject: str
    promised: str
    measured: str
    kept: bool | None = None


@dataclass
class Step:
    """A finished step: what a user typed, and what came of it. `seconds`: what it took."""

    name: str
    title: str
    commands: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0

    def promise(self, subject: str, promised: str, measured: str, *, kept: bool) -> None:
        """Note a promise and whether it was kept."""
        self.rows.append(Row(subject, promised, measured, kept))

    def figure(self, subject: str, measured: str) -> None:
        """Note a figure that nobody promised."""
        self.rows.append(Row(subject, "", measured))

    @property
    def broken(self) -> list[Row]:
        """The promises that were not kept."""
        return [row for row in self.rows if row.kept is False]


def save(step: Step, folder: Path) -> None:
    """Keep a finished step: the story goes on after it when it is told again."""
    path = folder / f"{step.name}.json"
    path.with_suffix(".new").write_text(json.dumps(asdict(step), indent=1) + "\n")
    path.with_suffix(".new").replace(path)


def load(name: str, folder: Path) -> Step | None:
    """Return a step that was finished before, None where it was not."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    held = json.loads(path.read_text())
    return Step(**{**held, "rows": [Row(**row) for row in held["rows"]]})


def shown(words: list[str], root: Path) -> str:
    """Return a command as a user would type it, from the repository's root."""
    return shlex.join(words).replace(f"{root}/", "")


def page(steps: list[Step], about: dict[str, str], picture: str | None) -> str:
    """Return the report as Markdown: promised and measured, step by step."""
    kept = [row for step in steps for row in step.rows if row.kept]
    broken = [row for step in steps for row in step.broken]
    minutes = sum(step.seconds for step in steps) / 60
    lines = [
        "# The whole story, told by `make story`",
        "",
        "; ".join(f"{name} {value}" for name, value in about.items()),
        "",
        f"**{len(kept)} promises kept, {len(broken)} broken**, in {minutes:.0f} minutes.",
    ]
    for number, step in enumerate(steps, 1):
        lines += ["", f"## {number}. {step.title}", "", "```", *step.commands, "```", ""]
        lines += ["| | promised | measured | |", "| --- | --- | --- | --- |"]
        mark = {True: "kept", False: "**broken**", None: ""}
        lines += [
            f"| {row.subject} | {cell(row.promised)} | {cell(row.measured)} | {mark[row.kept]} |" for row in step.rows
        ]
    if picture:
        lines += ["", f"![Throughput and speed for one user at each load]({picture})"]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
