"""The documentation as data: its pages, code blocks, links and commands."""

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from vigil.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "packages/vigil/README.md", *DOCS.rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```+)(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code_blocks(path: Path, *languages: str) -> list[str]:
    return [body for _, language, body in FENCE.findall(path.read_text("utf-8")) if language in languages]


def prose_of(path: Path) -> str:
    return FENCE.sub("", path.read_text("utf-8"))


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app.commands())
    return dict(group.commands)


def vigil_lines() -> list[tuple[str, list[str]]]:
    """Return every command line in the docs that starts with `vigil`, as words, without comments and redirections."""
    found = []
    for page in PAGES:
        for line in "\n".join(code_blocks(page, "", "sh")).splitlines():
            if line.startswith("vigil "):
                words = shlex.split(line, comments=True)
                found.append(
                    (f"{name_of(page)}: {line}", [word for word in words[1:] if not word.startswith((">", "2>"))])
                )
    return found


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
