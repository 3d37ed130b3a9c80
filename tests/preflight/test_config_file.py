"""The file behind --config: read as PyYAML reads it, and told of by file and line."""

from pathlib import Path
from typing import Any

import pytest

from vigil.plan import Plan
from vigil.preflight.config_text import FILLED, read
from vigil.preflight.finding import Report
from vigil.supervise.ahead import check_here


def values(text: str) -> dict[str, Any]:
    return {one.key: one.value for one in read(text).entries}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8000", 8000),
        ("1_000", 1000),
        ("0.90", 0.9),
        ("1.5e+3", 1500.0),
        ("1e3", "1e3"),  # YAML 1.1 wants a point
        ("on", True),
        ("No", False),
        ("yEs", "yEs"),
        ("~", None),
        ("'on'", "on"),
        ("'it''s'", "it's"),
        ('"a: b # c"', "a: b # c"),
        ("a # b", "a"),
        ("a#b", "a#b"),
        ("http://h:80/x", "http://h:80/x"),
        ("[a, 'b, c', 2]", ["a", "b, c", 2]),
        ("{a: 1, b: [c, {d: e}]}", {"a": 1, "b": ["c", {"d": "e"}]}),
        ('{"k": true}', {"k": True}),
        ("010", FILLED),
        ("1:30", FILLED),
        ("2024-01-01", FILLED),
        ('"a\\nb"', FILLED),
        ("*anchor", FILLED),
        ("[a, [b]", FILLED),
    ],
)
def test_values_are_those_of_pyyaml_or_not_known(text: str, value: Any) -> None:
    assert values(f"key: {text}\nlast: 1\n") == {"key": value, "last": 1}


def test_lists_and_objects_stand_below_their_names() -> None:
    text = "a:\n- x\n- 2\nb:\n  - y\nc:\n  d: 1\n  e:\n    f: [g]\n# h: 1\ni: 3\n"

    assert values(text) == {"a": ["x", 2], "b": ["y"], "c": {"d": 1, "e": {"f": ["g"]}}, "i": 3}
    assert [one.line for one in read(text).entries] == [1, 4, 6, 11]


def test_text_over_lines_is_not_known_and_what_follows_is() -> None:
    assert values("a: |\n  x: 1\n  y\nb: two\n  words\nc: 3\n") == {"a": FILLED, "b": FILLED, "c": 3}


@pytest.mark.parametrize("text", ["a: 1\n[b]: 2\n", "a: 1\nb: 'open\nc: 3'\n", "a: 1\n  b: 2\n? c\n"])
def test_from_what_is_not_understood_on_nothing_is_said(text: str) -> None:
    found = read(text)

    assert [one.key for one in found.entries] == ["a"]
    assert found.unread in {2, 3}


def test_hostile_files_are_read_in_no_time() -> None:
    for text in (
        "a: " + "[" * 100_000,
        "a:\n" + "".join(" " * n + "b:\n" for n in range(2000)),
        "'" * 100_000,
        ":" * 9999,
    ):
        assert len(read(text).entries) <= 2


def checked(folder: Path, *words: str, text: str) -> Report:
    (folder / "c.yaml").write_text(text)
    return check_here(Plan(command=words, cwd=str(folder)), version="0.32.0")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path


def test_a_finding_in_a_file_points_at_the_flag_and_says_the_line(home: Path) -> None:
    found = checked(home, "vllm", "serve", "--config", "c.yaml", "--prot", "3", text="model: a/b\n\nprot: 2\n")

    told = [(one.at, one.count, one.text) for one in found.fatal]
    assert told == [(2, 2, "c.yaml, line 3: vLLM 0.32.0 has no flag --prot"), (4, 2, "vLLM 0.32.0 has no flag --prot")]
    assert found.words == ("vllm", "serve", "--config", "c.yaml", "--prot", "3")
    assert found.corrected == ("vllm", "serve", "--config", "c.yaml", "--port", "3")
    assert found.fatal[0].edits == ()


def test_a_correction_in_a_shell_leaves_the_file_out(home: Path) -> None:
    found = checked(home, "sh", "-c", "vllm serve a/b --config c.yaml --prot 3", text="max-num-seqs: 4\nport: 1\n")

    assert found.corrected == ("sh", "-c", "vllm serve a/b --config c.yaml --port 3")


def test_what_is_typed_stands_over_the_file(home: Path) -> None:
    found = checked(
        home, "vllm", "serve", "a/b", "--config", "c.yaml", "--port", "9000", text="model: c/d\nport: 8000\n"
    )

    assert "FLAG005" not in {one.code for one in found.findings}
    assert not any("c/d" in one.text for one in found.findings)


def test_the_model_of_a_file_is_looked_for(home: Path) -> None:
    found = checked(home, "vllm", "serve", "--config", "c.yaml", text="model: ./none\n")

    (missing,) = (one for one in found.fatal if one.code == "FILE001")
    assert missing.text.startswith("c.yaml, line 1: ")


def test_a_secret_of_a_file_is_not_shown(home: Path) -> None:
    found = checked(home, "vllm", "serve", "a/b", "--config", "c.yaml", text="api-key: sk-0123456789abcdef\nprot: 1\n")

    assert "0123456789" not in repr(found)


def test_a_file_that_is_read_nowhere_is_said_to_be_unread(home: Path) -> None:
    found = checked(home, "vllm", "serve", "a/b", "--config=c.yaml", text="prot: 1\n")

    assert [one.severity.value for one in found.findings if one.code == "FLAG002"] == ["warning"]
    moved = checked(home, "sh", "-c", "cd /srv; vllm serve a/b --config c.yaml", text="prot: 1\n")
    assert any("the file was not read" in one for one in moved.unseen)
