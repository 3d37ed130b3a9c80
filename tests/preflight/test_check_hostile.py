"""What people type, and what lies in folders, cannot make a check slow, wrong or unreadable."""

import os
from pathlib import Path

import pytest

from vigil.cli.checks import checked
from vigil.cli.findings import lines_of, text_of
from vigil.cli.options import here
from vigil.errors import UsageError
from vigil.plan import Plan
from vigil.preflight.examine import MOST_FINDINGS, examine
from vigil.preflight.finding import Finding, Report, Severity
from vigil.preflight.sight import Sight
from vigil.scout import desk, folders
from vigil.screen import json_of
from vigil.supervise.ahead import check_here, command_of, question_of, sight_of


def report(*words: str, cwd: Path | None = None, **seen: str) -> Report:
    """Check a command's words, with the models of `cwd` seen where it is given."""
    plan = Plan(command=words, cwd=str(cwd) if cwd else None)
    command = command_of(plan)
    sight = Sight()
    if cwd is not None:
        asked = question_of(plan, command, deep=False)
        sight = sight_of(desk.answer(desk.question_of({**asked, **seen}), ["models"]))
    return examine(command, sight)


def test_ten_thousand_wrong_words_are_not_told_one_by_one() -> None:
    found = report("vllm", "serve", "a/b", *["--tp"] * 10_000)

    assert 0 < len(found.findings) <= 5 * MOST_FINDINGS


def test_a_correction_in_a_shell_is_the_shell_command_with_the_wrong_word_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    text = "cd /srv; vllm serve Qwen/Qwen3-8B --max-model-length $N 2>&1 | tee 'a log.txt'"

    found = check_here(Plan(command=("bash", "-c", text), cwd=str(tmp_path)))

    assert found.corrected == ("bash", "-c", text.replace("-length", "-len"))


def test_a_command_without_an_engine_is_said_to_be_unchecked() -> None:
    found = check_here(Plan(command=("vllm", "server", "m")))

    assert found.findings == ()
    assert any("nothing of it was checked" in one for one in found.unseen)
    assert "nothing of it was checked" in text_of(found)


def test_a_newline_in_a_word_does_not_move_the_underline() -> None:
    finding = Finding(code="FLAG001", severity=Severity.FATAL, text="wrong", at=3)

    _, shown, carets, *_ = lines_of(finding, ("vllm", "serve", "a\nb", "wrong"))

    assert shown[carets.index("^") :] == "wrong"


def test_a_path_that_is_no_utf_8_is_printed_as_json() -> None:
    assert json_of(Report(words=("vllm", os.fsdecode(b"a\xff")), engine="vllm")).isascii()


def test_a_command_that_is_no_utf_8_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="no UTF-8"):
        checked(Plan(command=("vllm", "serve", os.fsdecode(b"a\xff"))))


def test_a_folder_that_was_deleted_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(UsageError, match="was deleted"):
        here(None, None)


def test_a_config_that_is_no_file_is_broken(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    os.mkfifo(tmp_path / "m/config.json")

    (found,) = report("vllm", "serve", "./m", cwd=tmp_path).fatal

    assert found.code == "FILE002"
    assert "it is no file" in found.text


def test_a_link_that_leads_nowhere_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "m").symlink_to("/not-here/model")

    (found,) = report("vllm", "serve", "./m", cwd=tmp_path).fatal

    assert "a link that leads nowhere" in found.text
    assert found.edits == ()


def test_a_config_is_found_among_more_files_than_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(folders.shards, "MOST_ENTRIES", 10)
    (tmp_path / "m").mkdir()
    for number in range(100):
        (tmp_path / "m" / f"{number}").touch()
    (tmp_path / "m/config.json").write_text('{"model_type": "llama"}')

    asked = {"engine": "vllm", "models": [{"what": "model", "given": "./m"}], "cwd": str(tmp_path)}
    (seen,) = desk.answer(desk.question_of(asked), ["models"])["models"]

    assert seen["more"]
    assert seen["config"] == {"model_type": "llama"}


def test_what_a_command_puts_into_its_environment_is_where_its_model_lies(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub/models--a--b/snapshots/c0ffee"
    snapshot.mkdir(parents=True)
    (tmp_path / "hub/models--a--b/refs").mkdir()
    (tmp_path / "hub/models--a--b/refs/main").write_text("c0ffee")

    asked = {"engine": "vllm", "models": [{"what": "model", "given": "a/b"}], "env": {"BASE": str(tmp_path)}}
    (seen,) = desk.answer(desk.question_of({**asked, "assigned": {"HF_HOME": "$BASE"}}), ["models"])["models"]

    assert seen["path"] == str(snapshot)
