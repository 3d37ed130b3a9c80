"""Write Markdown so that what it holds cannot break it."""

from collections.abc import Iterable, Sequence

NOTE = "<!-- Made by docs/generate.py from {source}: change that, and run it again. -->"


def page(title: str, source: str, *parts: str) -> str:
    """Return a page with a title and the note that it is generated; `parts` are put a blank line apart."""
    kept = [part.strip("\n") for part in parts if part.strip()]
    return "\n\n".join([f"# {title}", NOTE.format(source=source), *kept]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").strip()


def code(text: str) -> str:
    """Return `text` as a code span, whatever backticks it holds."""
    if not text:
        return ""
    if "|" in text:  # the one form that no table takes for the end of a cell, here and on GitHub
        return f"<code>{prose(text).replace('|', '&#124;')}</code>"
    longest = max((len(run) for run in text.replace("`", " ` ").split() if set(run) == {"`"}), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"


def prose(text: str) -> str:
    """Return text that was not written for Markdown, safe for it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names with what is said of them, as a list."""
    return "\n".join(f"- {name}: {text}" for name, text in pairs)


def block(text: str, language: str = "") -> str:
    """Return a code block; `text` may hold fences of its own."""
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def first_sentence(docstring: str | None) -> str:
    """Return the first sentence of a docstring on one line."""
    lines = (docstring or "").strip().split("\n\n")[0]
    return " ".join(lines.split())
