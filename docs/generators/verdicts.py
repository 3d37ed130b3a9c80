"""A page for each verdict, their list, and the exit codes."""

import tomllib
from pathlib import Path

from generators.markdown import block, code, page, table
from vigil.verdict import EXIT_CODES, Word

DATA = Path(__file__).parent.parent / "data" / "verdicts.toml"
OTHER_CODES = (
    (
        0,
        "`vigil ps`, `show`, `logs`, `diff`, `stop`, `bench`, `compare`, `tune` and `report` did what they were asked to",
    ),
    (1, "a fault of ours, or we could not look or act (one line says why); `vigil stop` could not stop it"),
    (2, "a wrong command line, or a trace that cannot be read; nothing was started"),
    (13, "`vigil tune` has no proven answer: its schedule did not hold, or the noise hides whether speculation pays"),
    (130, "Ctrl-C; the server goes on, unless `--attached` was given"),
)


def pages() -> dict[str, str]:
    """Return the pages by path."""
    prose = tomllib.loads(DATA.read_text("utf-8"))
    found = {f"verdicts/{word}.md": verdict_page(word, prose[word]) for word in Word}
    found["verdicts/index.md"] = index_page(prose)
    found["exit-codes.md"] = codes_page(prose)
    return found


def verdict_page(word: Word, prose: dict[str, str]) -> str:
    """Return the page of one verdict."""
    source = "docs/data/verdicts.toml and vigil/verdict/words.py"
    head = f"**Exit code {EXIT_CODES[word]}** · {prose['short']}."
    return page(
        word.value, source, head, "## When", prose["when"], "## What to do", prose["todo"], block(prose["example"]),
        "## What it is not", prose["not_this"],
    )  # fmt: skip


def index_page(prose: dict[str, dict[str, str]]) -> str:
    """Return the list of verdicts."""
    rows = ([f"[{code(word)}]({word}.md)", str(EXIT_CODES[word]), prose[word]["short"]] for word in Word)
    intro = (
        "One of these words is the answer of `vigil up`, `wait`, `run` and `replay`. Watching never kills: a server that is not "
        "well is left running."
    )
    return page("Verdicts", "docs/data/verdicts.toml", intro, table(["verdict", "exit code", "in one line"], rows))


def codes_page(prose: dict[str, dict[str, str]]) -> str:
    """Return the exit codes, by number."""
    rows = sorted(
        [(EXIT_CODES[word], f"[{code(word)}](verdicts/{word}.md)", prose[word]["short"]) for word in Word]
        + [(number, "", text) for number, text in OTHER_CODES]
    )
    notes = (
        "`degraded` exits with 9 with `--strict`, where you named what failed (`--model`), and without proof by a token; else 0.",
        "`vigil stop` exits with 0 once the server is gone; 11 is for a watch that ends because somebody stopped the server.",
        "Data goes to standard output, everything else to standard error.",
    )
    shown = ([str(number), word, text] for number, word, text in rows)
    return page(
        "Exit codes", "vigil/verdict/words.py", table(["code", "verdict", "meaning"], shown), "\n\n".join(notes)
    )
