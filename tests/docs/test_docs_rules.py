"""The page on rules is true: its rule is read, its log has that cause, and its words about it are those that are given."""

import re
from pathlib import Path

from vigil.diagnosis import End, examine, load_rules
from vigil.diagnosis.rules import how_to_read
from vigil.facts import Line

PAGE = Path(__file__).parents[2] / "docs" / "write-a-rule.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def lines_of(text: str) -> list[Line]:
    return [Line(number, line) for number, line in enumerate(text.splitlines(), 1)]


def test_page_shows_a_rule_that_finds_its_log_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "GRAN001.toml").write_text(blocks("toml")[0], "utf-8")
    rules, mistakes = load_rules(tmp_path)
    assert mistakes == []
    before = examine(lines_of(blocks("text")[0]), End()).cause
    after = examine(lines_of(blocks("text")[0]), End(), rules=rules).cause
    assert before is not None
    assert after is not None
    assert (before.code, after.code, after.line) == ("EXC000", "GRAN001", 2)
    assert f"`{after.advice}`" in PAGE.read_text("utf-8")


def test_page_shows_the_mistake_that_is_told(tmp_path: Path) -> None:
    broken = blocks("toml")[0].replace("(?P<host>\\S+)'", "(?P<host>\\S+'")
    (tmp_path / "GRAN001.toml").write_text(broken, "utf-8")
    _, mistakes = load_rules(tmp_path)
    told = mistakes[0].removeprefix(str(tmp_path)).partition(" at position")[0]
    assert f"granary{told}" in PAGE.read_text("utf-8")


def test_page_leaves_the_near_miss_alone_and_adds_an_advice(tmp_path: Path) -> None:
    (tmp_path / "GRAN001.toml").write_text(f"{blocks('toml')[0]}\n{blocks('toml')[1]}", "utf-8")
    rules, mistakes = load_rules(tmp_path)
    assert mistakes == []
    assert rules[0].advice_for[0].since == "0.5.19"
    assert examine(lines_of(rules[0].near_miss[0].text), End(), rules=rules).cause is None


def test_page_names_every_stage() -> None:
    text = PAGE.read_text("utf-8")
    assert all(f"`{stage.name}`" in text for stage in how_to_read().stage)
