"""The attester put beside a start: where it lies, what it adds to the environment, and that it keeps no start back."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from desks import Host, wait_for

from vigil.launcher.attester import without_attester
from vigil.launcher.plugin import without_plugin

TEXT = "mark = 1\n"
ATTESTER = {
    "files": {"sitecustomize.py": TEXT, "telling.py": "mark = 2\n"},
    "name": "0123456789abcdef",
    "of": ["sglang", "vllm"],
}
TELL = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(('PYTHON', 'VIGIL'))}))"


def environment(host: Host, **spec: Any) -> dict[str, str]:
    command = [sys.executable, "-c", TELL]
    answer = host.ask("launch", spec={"name": "s", "command": command, **spec})
    log = Path(answer["life"]["log"])
    wait_for(lambda: log.read_text().endswith("}\n"), "the variables")
    return json.loads(log.read_text().splitlines()[-1])


def test_attester_stands_first_on_the_path_and_its_file_is_the_users_own(host: Host) -> None:
    env = environment(host, attester=ATTESTER, env={"PYTHONPATH": "/mine"})
    home = host.state / "vigil/attest/0123456789abcdef"

    assert env["PYTHONPATH"] == f"{home}:/mine"
    assert env["VIGIL_ATTEST_OF"] == "sglang,vllm"
    assert (home / "sitecustomize.py").read_text() == TEXT
    assert (home / "telling.py").read_text() == "mark = 2\n"
    assert (home / "sitecustomize.py").stat().st_mode & 0o777 == 0o600
    assert Path(env["VIGIL_ATTEST"]).stat().st_mode & 0o777 == 0o700


def test_attester_that_was_tampered_with_is_written_anew(host: Host) -> None:
    home = host.state / "vigil/attest/0123456789abcdef"
    home.mkdir(parents=True)
    (home / "sitecustomize.py").write_text("raise SystemExit\n")
    environment(host, attester=ATTESTER)

    assert (home / "sitecustomize.py").read_text() == TEXT


def test_start_without_one_has_nothing_of_it(host: Host) -> None:
    env = environment(host, env={"PYTHONPATH": "/mine"})

    assert env["PYTHONPATH"] == "/mine"
    assert "VIGIL_ATTEST" not in env
    assert not (host.state / "vigil/attest").exists()


@pytest.mark.parametrize(
    "given",
    [
        7,
        {},
        {"files": 1},
        {**ATTESTER, "name": "../../x"},
        {**ATTESTER, "files": {"telling.py": TEXT}},
        {**ATTESTER, "files": {"sitecustomize.py": "x" * (2 << 20)}},
        {**ATTESTER, "files": {"sitecustomize.py": TEXT, "../x.py": TEXT}},
        {**ATTESTER, "files": {"sitecustomize.py": TEXT, "json.py": 1}},
    ],
)
def test_nonsense_in_its_place_is_no_attester(host: Host, given: Any) -> None:
    assert "VIGIL_ATTEST" not in environment(host, attester=given)


def test_state_folder_that_cannot_hold_it_does_not_keep_the_server_back(host: Host) -> None:
    (host.state / "vigil").mkdir(parents=True)
    (host.state / "vigil/attest").write_text("a file in its place")

    assert "VIGIL_ATTEST" not in environment(host, attester=ATTESTER)


def test_state_folder_with_a_colon_cannot_be_on_a_path(host: Host, tmp_path: Path) -> None:
    host.state = tmp_path / "with:colon"
    host.env["XDG_STATE_HOME"] = os.fspath(host.state)

    assert "VIGIL_ATTEST" not in environment(host, attester=ATTESTER)


# --- vigil-engine, put beside a start in the same way

PLUGIN = {
    "files": {"vigil_engine/policy.py": TEXT, "vigil_engine-0.1.0.dist-info/entry_points.txt": "[x]\n"},
    "name": "fedcba9876543210",
    "schedule": '{"schema": 1}',
}


def test_plugin_stands_on_the_path_beside_the_attester(host: Host) -> None:
    env = environment(host, attester=ATTESTER, plugin=PLUGIN, env={"PYTHONPATH": "/mine"})
    home = host.state / "vigil/engine/fedcba9876543210"

    assert env["PYTHONPATH"] == f"{home}:{host.state}/vigil/attest/0123456789abcdef:/mine"
    assert env["VIGIL_ENGINE_SCHEDULE"] == '{"schema": 1}'
    assert (home / "vigil_engine/policy.py").read_text() == TEXT
    assert Path(env["VIGIL_ENGINE_DIR"]).stat().st_mode & 0o777 == 0o700


def test_environment_is_told_without_the_plugin(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(host.state))
    env = environment(host, attester=ATTESTER, plugin=PLUGIN, env={"PYTHONPATH": "/mine"})
    left = without_plugin(without_attester(env))

    assert left["PYTHONPATH"] == "/mine"
    assert not [name for name in left if name.startswith(("VIGIL_ENGINE", "VIGIL_ATTEST"))]
    assert without_plugin(left) is left


def test_state_folder_that_cannot_hold_the_plugin_does_not_keep_the_server_back(host: Host) -> None:
    (host.state / "vigil").mkdir(parents=True)
    (host.state / "vigil/engine").write_text("a file in its place")

    assert "VIGIL_ENGINE_DIR" not in environment(host, plugin=PLUGIN)
