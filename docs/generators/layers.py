"""The map of the architecture: the layers that import-linter keeps, drawn, and what each module really imports."""

import ast
import tomllib
from pathlib import Path

import grimp

from generators.markdown import code, first_sentence, prose, table

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "packages" / "vigil" / "src" / "vigil"
WIDTH, ROW, GAP, LEFT = 960, 58, 10, 12
STYLE = (
    "text{font-family:system-ui,sans-serif;fill:#1b2733}.name{font-size:15px;font-weight:600;text-anchor:middle}"
    ".job{font-size:14px;fill:#52606d}.box{fill:#eaf2fb;stroke:#5b8db8}.later{fill:none;stroke:#9aa5b1;stroke-dasharray:4 3}"
    ".arrow{stroke:#52606d;stroke-width:2;fill:none}"
)


def layers() -> list[list[str]]:
    """Return the layers from pyproject.toml, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return [[name.strip(" ()") for name in row.split("|")] for row in contract["layers"]]


def exists(name: str) -> bool:
    """Say whether a module of the layers is there already."""
    return (SOURCE / f"{name}.py").exists() or (SOURCE / name / "__init__.py").exists()


def job_of(name: str) -> str:
    """Return the first sentence of a module's docstring."""
    path = SOURCE / f"{name}.py"
    path = path if path.exists() else SOURCE / name / "__init__.py"
    return first_sentence(ast.get_docstring(ast.parse(path.read_text("utf-8"))))


def picture() -> str:
    """Return the layers as an SVG; dashed: not built yet."""
    rows = layers()
    height = len(rows) * (ROW + GAP) + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="The layers of vigil">'
    parts = [head, f"<style>{STYLE}</style>", f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    for index, row in enumerate(rows):
        parts += row_parts(row, GAP + index * (ROW + GAP))
    x, end = WIDTH - 40, height - 16
    parts.append(f'<path class="arrow" d="M{x} 16V{end}M{x - 6} {end - 10}L{x} {end}L{x + 6} {end - 10}"/>')
    parts.append(f'<text class="job" transform="translate({x + 18} {height // 2 - 60}) rotate(90)">may import</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def row_parts(row: list[str], y: int) -> list[str]:
    """Return one layer's boxes."""
    width = (WIDTH - LEFT - 80 - GAP * (len(row) - 1)) / len(row)
    found = []
    for index, name in enumerate(row):
        x = LEFT + index * (width + GAP)
        kind = "box" if exists(name) else "later"
        found.append(f'<rect class="{kind}" x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROW}" rx="6"/>')
        found.append(f'<text class="name" x="{x + width / 2:.0f}" y="{y + ROW / 2 + 5:.0f}">{name}</text>')
    return found


def modules() -> str:
    """Return what each module is for and what it imports, by the import graph."""
    graph = grimp.build_graph("vigil", cache_dir=None)
    known = [name for row in layers() for name in row if exists(name)]
    rows = []
    for name in known:
        whole = f"vigil.{name}"
        inside = {whole, *graph.find_descendants(whole)}
        used = {target.split(".")[1] for module in inside for target in graph.find_modules_directly_imported_by(module)
                if target.startswith("vigil.") and target.split(".")[1] != name}  # fmt: skip
        rows.append(
            [code(name), prose(job_of(name)), ", ".join(code(one) for one in known if one in used) or "nothing of ours"]
        )
    return table(["module", "its job", "imports"], rows)


def parts() -> dict[str, dict[str, str]]:
    """Return the parts by page and by name."""
    return {"architecture.md": {"modules": modules()}}
