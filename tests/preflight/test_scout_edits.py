"""Files of the installed engine that are not those of its release: what can be said of wheels, copies, and of neither."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from engine_homes import make_home, site_of
from vigil.plan import Plan
from vigil.preflight.examine import examine
from vigil.preflight.finding import Report
from vigil.scout import desk
from vigil.supervise.ahead import command_of, question_of, sight_of

FILES = {
    "sglang/srt/worker.py": "FAST = True\n",
    "sglang/srt/ops.so": "machine code",
    "sglang/srt/notes.md": "words",
    **{f"sglang/test/test_{one}.py": "" for one in range(30)},
    **{f"sglang/docs/{one}.md": "" for one in range(300)},
}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home", "sglang", "0.5.10", files=FILES)


def look(python: Path) -> Report:
    plan = Plan(command=(str(python), "-m", "sglang.launch_server", "--model-path", "M"))
    command = command_of(plan)
    request: dict[str, Any] = json.loads(json.dumps(question_of(plan, command, deep=False)))
    seen = sight_of(json.loads(json.dumps(desk.answer(desk.question_of(request), ["host"]))))
    assert seen.troubles == ()
    return examine(command, seen)


def edits(python: Path) -> list[str]:
    return [one.text for one in look(python).findings if one.code == "EDIT001"]


def unlisted(python: Path) -> list[str]:
    return [one for one in look(python).unseen if one.startswith("whether files of")]


def test_an_install_as_its_wheel_brought_it_gives_nothing_to_say(python: Path) -> None:
    assert (edits(python), unlisted(python)) == ([], [])


def test_an_image_without_documents_has_lost_nothing_that_runs(python: Path) -> None:
    for path in (site_of(python) / "sglang" / "docs").iterdir():
        path.unlink()
    assert edits(python) == []


def test_code_that_differs_is_told_before_all_that_is_gone(python: Path) -> None:
    for path in (site_of(python) / "sglang" / "docs").iterdir():
        path.unlink()
    (site_of(python) / "sglang" / "srt" / "worker.py").write_text("FAST = False\n")
    (site_of(python) / "sglang" / "srt" / "notes.md").write_text("other words")
    assert edits(python) == ["1 file of the installed sglang differs from its wheel: sglang/srt/worker.py"]


def test_code_that_is_gone_is_told_as_such(python: Path) -> None:
    for path in (site_of(python) / "sglang" / "test").iterdir():
        path.unlink()
    (text,) = edits(python)
    assert text.startswith("30 files of the installed sglang are gone that its wheel has: sglang/test/test_0.py,")
    assert text.endswith(", and 24 more")


def test_an_edit_that_keeps_size_and_times_is_seen_where_speculation_is(tmp_path: Path) -> None:
    files = {"sglang/srt/speculative/eagle_worker.py": "FAST = True \n", "sglang/srt/other.py": "FAST = True \n"}
    python = make_home(tmp_path / "spec", "sglang", "0.5.10", files=files)
    record = next(site_of(python).glob("sglang-*.dist-info")) / "RECORD"
    for name in files:
        path = site_of(python) / name
        before = path.stat()
        path.write_text("FAST = False\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(record, (time.time() + 3600, time.time() + 3600))  # as where the tree was copied after the edit

    (told,) = edits(python)

    assert told.endswith("speculative/eagle_worker.py")  # the other one is not read: nothing of it speaks of an edit


def test_what_conda_writes_into_binaries_is_no_edit(python: Path) -> None:
    site = site_of(python)
    (site / "sglang" / "srt" / "ops.so").write_text("machine code with another prefix")
    assert edits(python) == ["1 file of the installed sglang differs from its wheel: sglang/srt/ops.so"]
    (site / "sglang-0.5.10.dist-info" / "INSTALLER").write_text("conda\n")
    assert edits(python) == []
    (site / "sglang" / "srt" / "worker.py").write_text("FAST = False\n")
    assert edits(python) == ["1 file of the installed sglang differs from its wheel: sglang/srt/worker.py"]


def test_a_record_without_hashes_is_said_in_one_line(python: Path) -> None:
    record = site_of(python) / "sglang-0.5.10.dist-info" / "RECORD"
    record.write_text("".join(f"{name},,\n" for name in FILES))
    (site_of(python) / "sglang" / "srt" / "worker.py").write_text("FAST = False\n")
    assert edits(python) == []
    assert unlisted(python) == [f"whether files of sglang were edited: {record.parent} has no hashes of them"]
    record.unlink()
    assert len(unlisted(python)) == 1


def editable(python: Path, source: Path) -> None:
    """Make the install an editable one of a folder."""
    info = site_of(python) / "sglang-0.5.10.dist-info"
    (info / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}}))


def test_a_working_copy_is_held_against_its_commit(python: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "python" / "sglang").mkdir(parents=True)
    worker = source / "python" / "sglang" / "worker.py"
    worker.write_text("FAST = True\n")
    git = ["git", "-C", str(source), "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    editable(python, source / "python")
    assert (edits(python), unlisted(python)) == ([], [])
    worker.write_text("FAST = False\n")
    (text,) = edits(python)
    assert text.startswith(
        f"1 file of sglang, which is the working copy {source / 'python'}, differs from its commit {commit[:11]}"
    )
    assert text.endswith(": python/sglang/worker.py")


def test_a_folder_without_git_is_said_in_one_line(python: Path, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    editable(python, tmp_path / "source")
    assert edits(python) == []
    (line,) = unlisted(python)
    assert (
        line
        == f"whether files of sglang were edited: it is the folder {tmp_path / 'source'}, and no git tells how it was"
    )
