"""Commands of other distributions: found by their entry points, and no harm where they are broken or absent."""

import subprocess
import sys
from pathlib import Path

import pytest


def said_by(*words: str, path: Path | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "vigil", *words],
        env={"PATH": "/usr/bin:/bin"} | ({"PYTHONPATH": str(path)} if path else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a folder in which a distribution offers a command whose module does not load."""
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vigil.commands]\nwreck = wreck_module:app\n")
    (tmp_path / "wreck_module.py").write_text("raise RuntimeError('no\\x1b[31m')\n")
    return tmp_path


def test_plugin_command_stands_in_the_help() -> None:
    code, out, _ = said_by("--help")
    assert code == 0
    assert "draft" in out


def test_broken_plugin_is_told_and_the_other_commands_go_on(broken: Path) -> None:
    code, out, err = said_by("--help", path=broken)
    assert code == 0
    assert "diagnose" in out
    assert "`vigil wreck` (wreck_module:app) does not load: RuntimeError: no" in err
    assert "\x1b" not in err


def test_broken_plugin_that_is_asked_for_is_a_usage_error(broken: Path) -> None:
    code, _, err = said_by("wreck", path=broken)
    assert code == 2
    assert err.count("\n") == 1
    assert "does not load" in err
