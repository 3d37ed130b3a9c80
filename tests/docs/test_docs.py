"""What a reader is told is so: pages are fresh, each thing has its place, links lead somewhere."""

import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from docs.pages import DOCS, LINK, PAGES, ROOT, anchors, commands, name_of, prose_of
from vigil import facts
from vigil.diagnosis.rules import known_rules
from vigil.engines import TABLES
from vigil.policy import Policy
from vigil.verdict import EXIT_CODES, Word


def test_generated_pages_are_fresh(generate: ModuleType) -> None:
    drifted = [name_of(path) for path in generate.stale(generate.wanted())]
    assert drifted == [], "run: .venv/bin/python docs/generate.py"


def test_check_names_the_page_that_drifted(generate: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("old", "utf-8")
    fresh = generate.wanted()
    assert generate.stale({**fresh, page: "old"}) == generate.stale(fresh)
    assert {page, tmp_path / "missing.md"} <= set(generate.stale({page: "new", tmp_path / "missing.md": ""}))


def test_check_names_a_page_that_nothing_makes_any_more(generate: ModuleType) -> None:
    without = {path: text for path, text in generate.wanted().items() if path.name != "ready.md"}
    assert DOCS / "verdicts" / "ready.md" in generate.stale(without)


def test_part_of_a_page_is_replaced_and_the_rest_is_kept(generate: ModuleType) -> None:
    page = "before\n<!-- made: x -->\nold\n<!-- end -->\nafter"
    assert generate.filled(page, {"x": "new"}) == "before\n<!-- made: x -->\n\nnew\n\n<!-- end -->\nafter"
    with pytest.raises(KeyError, match="no place for y"):
        generate.filled(page, {"y": "new"})


@pytest.mark.parametrize("word", Word)
def test_verdict_has_a_page_with_its_exit_code(word: Word) -> None:
    page = (DOCS / "verdicts" / f"{word}.md").read_text("utf-8")
    assert page.startswith(f"# {word}\n")
    assert f"**Exit code {EXIT_CODES[word]}**" in page


def test_verdict_prose_is_for_verdicts_that_exist() -> None:
    prose = tomllib.loads((DOCS / "data" / "verdicts.toml").read_text("utf-8"))
    assert set(prose) == {word.value for word in Word}
    assert all(set(entry) == {"short", "when", "todo", "not_this", "example"} for entry in prose.values())


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "exit-codes.md"], ids=name_of)
def test_exit_code_table_says_what_the_code_does(page: Path) -> None:
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", page.read_text("utf-8"), re.MULTILINE)
    told = {(word, int(number)) for number, cell in rows for word in re.findall(r"`(\w+)`", cell)}
    assert told == {(word.value, number) for word, number in EXIT_CODES.items()}


@pytest.mark.parametrize("code", known_rules())
def test_rule_has_a_page_with_its_advice(code: str) -> None:
    page = (DOCS / "rules" / f"{code}.md").read_text("utf-8")
    assert known_rules()[code].title in page
    assert "## What to do" in page
    assert f"[{code}]({code}.md)" in (DOCS / "rules" / "index.md").read_text("utf-8")


@pytest.mark.parametrize("name", commands())
def test_command_and_its_options_are_in_the_reference(name: str) -> None:
    page = (DOCS / "command-line.md").read_text("utf-8")
    section = page.partition(f"## vigil {name}\n")[2].partition("\n## ")[0]
    options = {
        flag
        for one in commands()[name].params
        if not getattr(one, "hidden", False)
        for flag in one.opts
        if flag[0] == "-"
    }
    assert options - set(re.findall(r"--?[a-z][a-z-]*", section)) == set()


def test_every_fact_number_and_engine_has_its_place() -> None:
    flow, numbers, engines = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("facts", "policy", "engines"))
    assert [one.__name__ for one in facts.AnyFact.__args__ if f"| `{one.__name__}` |" not in flow] == []
    assert [name for name in Policy.__struct_fields__ if f"| `{name}` |" not in numbers] == []
    assert [one.title for one in TABLES.values() if f"## {one.title}" not in engines] == []


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} == listed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert broken == []


def test_pages_load_nothing_from_elsewhere() -> None:
    pictures = "".join(path.read_text("utf-8") for path in (DOCS / "pictures").glob("*.svg"))
    assert "url(http" not in pictures
    assert "<script" not in pictures
    assert [name_of(page) for page in PAGES if re.search(r"!\[[^\]]*\]\(http", page.read_text("utf-8"))] == []
