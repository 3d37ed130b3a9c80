from pathlib import Path

import pytest

from diagnosis.lives import as_lines
from vigil.diagnosis import Cause, End, examine, load_rules
from vigil.diagnosis.rules import Rule

MINE = """
code = "MINE001"
title = "The licence server does not answer"
kind = "licence"
because = "Our build asks a licence server at the start."
advice = "Ask {host} for a licence: is it up, and is the VPN?"
retry = true

[[when]]
text = "no licence from"
pattern = 'no licence from (?P<host>\\S+)'

[[match]]
text = "RuntimeError: no licence from lic01:5053"
source = "our own log of 2026-11-30"
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return folder


def causes(text: str, rules: list[Rule]) -> Cause | None:
    return examine(as_lines(text), End(code=1), rules=rules).cause


def test_users_rule_is_taken_and_goes_before_ours(tmp_path: Path) -> None:
    rules, mistakes = load_rules(write(tmp_path, mine=MINE))
    assert mistakes == []
    cause = causes("OSError: [Errno 98] Address already in use\nRuntimeError: no licence from lic01:5053", rules)
    assert cause is not None
    assert (cause.code, cause.kind, cause.line) == ("MINE001", "licence", 2)
    assert cause.advice == "Ask lic01:5053 for a licence: is it up, and is the VPN?"


def test_without_users_rules_the_same_lines_have_our_cause(tmp_path: Path) -> None:
    cause = causes("OSError: [Errno 98] Address already in use\nRuntimeError: no licence from lic01:5053", [])
    assert cause is not None
    assert cause.code == "PORT001"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (MINE.replace('kind = "licence"', "kind = licence"), "at line 4, column 8"),
        (MINE.replace("[[when]]", "[[wen]]"), "the top: Object contains unknown field `wen`"),
        (MINE.replace('text = "no licence from"', "text = 3"), "when[0].text: Expected `str`, got `int`"),
        (MINE.replace(r"(?P<host>\S+)", r"(?P<host>\S+"), "when[0].pattern: missing ) at position"),
        (MINE.replace("MINE001", "PORT001"), "code: PORT001 is one of vigil's own"),
        (MINE.replace("MINE001", "mine"), "code: 'mine' is not letters followed by three digits"),
        (MINE.replace("retry = true", ""), "missing required field `retry`"),
        (MINE.replace("no licence from lic01:5053", "another line"), "match[0].text: it holds the text of no `when`"),
        (MINE.replace('text = "no licence from"', 'text = ""'), "when[0].text: it is empty"),
    ],
)
def test_file_with_a_mistake_is_named_in_one_line_and_the_others_go_on(tmp_path: Path, text: str, told: str) -> None:
    good = MINE.replace("MINE001", "MINE002")
    rules, mistakes = load_rules(write(tmp_path, bad=text, good=good))
    assert [rule.code for rule in rules] == ["MINE002"]
    assert len(mistakes) == 1
    assert mistakes[0].startswith(f"{tmp_path / 'bad.toml'}: ")
    assert told in mistakes[0]
    assert "\n" not in mistakes[0]


LINES = {
    "unknown at the top": (MINE.replace("retry = true", "retry = true\nretries = 3"), "line 8: the top: "),
    "unknown table": (MINE.replace("[[when]]", "[[wen]]"), "line 9: the top: "),
    "unknown in a way to see it": (MINE.replace("pattern =", "patern ="), "line 11: when[0]: "),
    "unknown in the second one": (f"{MINE}\n[[when]]\ntext = 'x'\npatern = 'x'\n", "line 19: when[1]: "),
    "unknown in an advice": (f"{MINE}\n[[when.advice_for]]\nengine = 'vllm'\nadvise = 'x'\n", "line 19: when[0].advice_for[0]: "),
    "unknown inline": (MINE.replace("retry = true", "retry = true\nadvice_for = [{a = 1}]"), "line 8: advice_for[0]: "),
    "behind a long string": (MINE.replace("because =", "because = '''\nx = 1\n[[when]]\n'''\nx =", 1), "line 9: the top: "),
    "wrong type": (MINE.replace('text = "no licence from"', "text = 3"), "line 10: when[0].text: "),
    "wrong pattern": (MINE.replace(r"(?P<host>\S+)", r"(?P<host>\S+"), "line 11: when[0].pattern: "),
    "wrong code": (MINE.replace("MINE001", "mine"), "line 2: code: "),
    "empty text": (MINE.replace('text = "no licence from"', 'text = ""'), "line 10: when[0].text: "),
}  # fmt: skip


@pytest.mark.parametrize("mistake", LINES)
def test_mistake_in_a_field_is_told_with_its_line(tmp_path: Path, mistake: str) -> None:
    text, told = LINES[mistake]
    _, mistakes = load_rules(write(tmp_path, bad=text))
    assert [one[: len(f"{tmp_path / 'bad.toml'}: {told}")] for one in mistakes] == [f"{tmp_path / 'bad.toml'}: {told}"]


def test_same_code_in_two_files_is_a_mistake_of_the_second(tmp_path: Path) -> None:
    rules, mistakes = load_rules(write(tmp_path, a=MINE, b=MINE))
    assert len(rules) == 1
    assert mistakes == [f"{tmp_path / 'b.toml'}: code: another file has MINE001 already"]


def test_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert load_rules(tmp_path / "none") == ([], [f"{tmp_path / 'none'}: No such file or directory"])


def test_file_that_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b'code = "X"\n\xff\n')
    assert load_rules(tmp_path) == ([], [f"{tmp_path / 'x.toml'}: line 2: not UTF-8"])
