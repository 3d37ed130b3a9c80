"""Write the pages of the documentation that are made from the code, or with `--check` fail where one has drifted.

Usage: .venv/bin/python docs/generate.py [--check]. Whole pages are overwritten. In pages written by hand, what stands between
`<!-- made: NAME -->` and `<!-- end -->` (in mkdocs.yml: `# made: NAME` and `# end`) is.
"""
# ruff: noqa: INP001 - a script

import argparse
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

from generators import (  # noqa: E402
    changes,
    checks,
    commands,
    comparisons,
    drafts,
    facts,
    layers,
    library,
    lists,
    results,
    rules,
    tables,
    verdicts,
)

WHOLE = (verdicts, rules, tables, commands, library, lists, results)
PARTIAL = (changes, checks, comparisons, drafts, facts, layers)
OWNED = ("verdicts/*.md", "rules/*.md")


def wanted() -> dict[Path, str]:
    """Return every file that is made from the code, with what it must hold."""
    found = {DOCS / path: text for module in WHOLE for path, text in module.pages().items()}
    found[DOCS / "pictures" / "layers.svg"] = layers.picture()
    found[DOCS / "pictures" / "training.svg"] = drafts.picture()
    for module in PARTIAL:
        for path, parts in module.parts().items():
            found[DOCS / path] = filled((DOCS / path).read_text("utf-8"), parts)
    found[ROOT / "mkdocs.yml"] = filled(
        (ROOT / "mkdocs.yml").read_text("utf-8"), {"verdicts": nav("verdicts"), "rules": nav("rules")}
    )
    return found


def filled(text: str, parts: dict[str, str]) -> str:
    """Return a page written by hand with its made parts put in; raise `KeyError` where one has no place."""
    for name, part in parts.items():
        mark = re.compile(rf"(?ms)^( *)(<!-- made: {name} -->|# made: {name})\n.*?^ *(<!-- end -->|# end)$")
        found = mark.search(text)
        if found is None:
            raise KeyError(f"no place for {name}")
        space = "\n\n" if found[2].startswith("<") else "\n"
        body = "\n".join(f"{found[1]}{line}" for line in part.splitlines())
        text = (
            f"{text[: found.start()]}{found[1]}{found[2]}{space}{body}{space}{found[1]}{found[3]}{text[found.end() :]}"
        )
    return text


def nav(folder: str) -> str:
    """Return the navigation entries of a folder of made pages."""
    module = verdicts if folder == "verdicts" else rules
    paths = [path for path in module.pages() if path.startswith(f"{folder}/") and not path.endswith("index.md")]
    return "\n".join([f"- {folder}/index.md", *(f"- {Path(path).stem}: {path}" for path in paths)])


def stale(files: dict[Path, str]) -> list[Path]:
    """Return the files that are not as they must be, and those that nothing makes any more."""
    drifted = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    left_over = [path for pattern in OWNED for path in sorted(DOCS.glob(pattern)) if path not in files]
    return drifted + left_over


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description="Make the generated pages of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page has drifted")
    check = parser.parse_args().check
    files = wanted()
    changed = stale(files)
    for path in changed:
        print(f"{'drifted' if check else 'written'}: {path.relative_to(ROOT)}")
        if not check and path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
        elif not check:
            path.unlink()
    if check and changed:
        print("run: .venv/bin/python docs/generate.py", file=sys.stderr)
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
