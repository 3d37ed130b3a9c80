"""What a start found is kept beside it: after the command runs, without secrets, within bounds."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from desks import Host, wait_for
from wheels import make_environment, site_of

KEY = "planted-Key.0815/xyz"
OTHER = "hf_plantedTokenABCDEFGHIJ"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def engine(installed: Path, tmp_path: Path) -> Path:
    """An environment of its own for a test that edits it: a copy, as a container's layer is one."""
    shutil.copytree(installed, tmp_path / "env", symlinks=True)
    return tmp_path / "env"


def kept(host: Host, *command: str, keep: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Start a command, and return what was kept of the start once it is whole."""
    started = host.launch(*command, keep=keep or {}, **fields)
    return whole(started)


def run(engine: Path) -> list[str]:
    """Return a command that runs the engine of an environment."""
    return [str(engine / "bin" / "python"), "-m", "tinyengine"]


def whole(started: dict[str, Any]) -> dict[str, Any]:
    path = Path(started["folder"]) / "snapshot.json"

    def look() -> dict[str, Any] | None:
        found = json.loads(path.read_text()) if path.exists() else {}
        return found if found.get("whole") else None

    found = wait_for(look, "a whole snapshot")
    assert isinstance(found, dict)
    return found


def test_start_without_an_order_keeps_nothing(host: Host) -> None:
    started = host.launch("true")
    host.ended(started)
    assert not (Path(started["folder"]) / "snapshot.json").exists()


def test_snapshot_holds_command_machine_and_what_is_installed(host: Host, installed: Path) -> None:
    found = kept(host, str(installed / "bin" / "python"), "-m", "tinyengine", "--port", "1")

    assert found["command"]["words"][1:] == ["-m", "tinyengine", "--port", "1"]
    assert found["packages"] == {"tinyengine": "1.0"}
    assert found["program"]["version"] is not None
    assert found["edited"] == {"files": {}, "unchecked": 0, "sites": {}}
    assert found["machine"]["kernel"] == os.uname().release
    assert found["machine"]["memory_total_bytes"] > found["machine"]["memory_free_bytes"] > 0
    assert found["troubles"] == []


def test_snapshot_is_for_its_owner_and_survives_the_death_of_the_server(host: Host) -> None:
    started = host.launch("true", keep={})
    whole(started)
    path = Path(started["folder"]) / "snapshot.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((host.state / "vigil" / "salt").stat().st_mode) == 0o600


@pytest.mark.parametrize("way", ["module", "installed command", "by PATH", "behind env and nice", "in a shell's text"])
def test_packages_are_those_of_the_interpreter_that_runs(host: Host, installed: Path, way: str) -> None:
    folder = installed / "bin"
    words = {
        "module": [str(folder / "python"), "-m", "tinyengine"],
        "installed command": [str(folder / "tinyengine")],
        "by PATH": ["tinyengine"],
        "behind env and nice": ["env", "A=B", "nice", "-n", "1", str(folder / "python3"), "-m", "tinyengine"],
        "in a shell's text": ["sh", "-c", f"cd / && . {folder}/activate && tinyengine"],
    }[way]
    env = {"PATH": f"{folder}:{os.environ['PATH']}"} if way == "by PATH" else {}
    flat = ["sh", "-c", "cd", "/", "&&", ".", f"{folder}/activate", "&&", "tinyengine"] if "shell" in way else words
    found = kept(host, *words, keep={"words": flat}, env=env)

    assert found["packages"] == {"tinyengine": "1.0"}


def test_edited_file_is_told_by_name_and_hash(host: Host, engine: Path) -> None:
    (site_of(engine) / "tinyengine" / "server.py").write_text("broken(\n")
    (site_of(engine) / "tinyengine" / "kernels.py").unlink()
    found = kept(host, *run(engine))

    files = found["edited"]["files"]["tinyengine"]
    assert files.keys() == {"tinyengine/server.py", "tinyengine/kernels.py"}
    assert files["tinyengine/kernels.py"] == "missing"
    assert len(files["tinyengine/server.py"]) == 16


def test_edit_of_the_same_size_with_its_old_time_is_seen_all_the_same(host: Host, engine: Path) -> None:
    path = site_of(engine) / "tinyengine" / "kernels.py"
    before = path.stat()
    later = max(one.stat().st_ctime for one in site_of(engine).rglob("RECORD")) + 2.5
    wait_for(lambda: os.stat_result(_touched(engine)).st_ctime > later, "the clock of the disk")
    path.write_text(path.read_text().replace("True", "Fals", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size

    assert kept(host, *run(engine))["edited"]["files"]["tinyengine"].keys() == {"tinyengine/kernels.py"}


def _touched(folder: Path) -> os.stat_result:
    (folder / "clock").write_text("")
    return (folder / "clock").stat()


def test_copied_environment_without_an_edit_has_none(host: Host, engine: Path) -> None:
    found = kept(host, *run(engine))
    assert found["edited"] == {"files": {}, "unchecked": 0, "sites": {}}


def test_working_copy_is_told_with_its_commit_and_changed_files(host: Host, engine: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "tinyengine").mkdir(parents=True)
    (source / "tinyengine" / "server.py").write_text("A = 1\n")
    (source / "tinyengine" / "other.py").write_text("B = 1\n")
    git = ["git", "-C", str(source), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (source / "tinyengine" / "server.py").write_text("A = 2  # patched\n")
    told = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (site_of(engine) / "tinyengine-1.0.dist-info" / "direct_url.json").write_text(json.dumps(told))
    found = kept(host, *run(engine))["sources"]["tinyengine"]

    assert (found["path"], found["commit"]) == (str(source), commit)
    assert found["dirty"].keys() == {"tinyengine/server.py"}


def test_variables_that_matter_are_kept_and_secrets_only_as_a_hash(host: Host) -> None:
    env = {
        "NCCL_ALGO": "Ring",
        "HF_TOKEN": OTHER,
        "VLLM_API_KEY": "short",
        "NOBODY_READS": "x",
        "HTTPS_PROXY": f"http://me:{KEY}@proxy:1",
    }
    started = host.launch("true", "--api-key", KEY, env=env, keep={"key_flags": ["--api-key"]})
    found = whole(started)

    assert found["env"]["NCCL_ALGO"] == "Ring"
    assert [found["env"][name]["shown"] for name in ("HF_TOKEN", "VLLM_API_KEY")] == ["***", "***"]
    assert "NOBODY_READS" not in found["env"]
    assert found["command"]["words"] == ["true", "--api-key", "***"]
    assert found["command"]["hidden"].keys() == {"--api-key"}
    text = (Path(started["folder"]) / "snapshot.json").read_text()
    assert KEY not in text
    assert OTHER not in text


def test_hash_of_a_secret_is_the_same_in_this_state_folder_and_another_elsewhere(host: Host, tmp_path: Path) -> None:
    first, again = (kept(host, "true", name=name, env={"HF_TOKEN": OTHER}) for name in ("a", "b"))
    elsewhere = Host(tmp_path / "other")
    elsewhere.folder.mkdir()
    other = kept(elsewhere, "true", env={"HF_TOKEN": OTHER})

    assert first["env"]["HF_TOKEN"] == again["env"]["HF_TOKEN"] != other["env"]["HF_TOKEN"]
    assert first["key_id"] == again["key_id"] != other["key_id"]
    elsewhere.nothing_left()


def test_model_is_told_by_its_settings_and_the_ends_of_its_weights(host: Host, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"num_experts": 8, "rope": {"theta": 1}}')
    with (model / "model-00001.safetensors").open("wb") as weights:
        weights.truncate(50 << 30)  # sparse: reading it would take minutes
    found = kept(host, "true", str(model), keep={"models": [{"what": "model", "given": str(model)}]})["models"]

    assert len(found) == 1
    assert found[0]["declared"] == {"num_experts": "8", "rope.theta": "1"}
    assert found[0]["weights"]["model-00001.safetensors"]["size"] == 50 << 30


def test_model_in_the_cache_is_told_by_its_commit(host: Host, tmp_path: Path) -> None:
    folder, commit = tmp_path / "hub" / "models--org--m", "a" * 40
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    (folder / "blobs").mkdir()
    (folder / "blobs" / ("b" * 64)).write_text("weights")
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "model.safetensors").symlink_to(f"../../blobs/{'b' * 64}")
    env = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    found = kept(host, "true", env=env, keep={"models": [{"what": "model", "given": "org/m"}]})["models"][0]

    assert found["commit"] == commit
    assert found["weights"]["model.safetensors"]["blob"] == "b" * 16


def test_binary_is_told_by_its_size_and_hash(host: Host) -> None:
    found = kept(host, "tail", "/dev/null")["program"]
    assert found["python"] is False
    assert found["size"] == Path(found["path"]).stat().st_size


def test_snapshot_of_a_host_full_of_variables_is_bounded(host: Host) -> None:
    env = {f"VLLM_{number}": "x" * 5000 for number in range(300)}
    started = host.launch("true", env=env, keep={})
    found = whole(started)

    assert (Path(started["folder"]) / "snapshot.json").stat().st_size <= 256 << 10
    assert found["env"] is None
    assert found["troubles"][-1] == "env: more than fits"


def test_bytes_that_are_no_text_are_kept_as_such(host: Host) -> None:
    found = kept(host, "true", "--name", "\udcff\udc80")
    assert found["command"]["words"] == ["true", "--name", "��"]


def test_engine_behind_a_start_script_is_seen_in_its_process(host: Host, engine: Path, tmp_path: Path) -> None:
    (site_of(engine) / "tinyengine" / "server.py").write_text("import time\n\n\ndef main():\n    time.sleep(60)\n")
    script = tmp_path / "start.sh"
    script.write_text(
        f"export NCCL_ALGO=Ring HF_TOKEN={OTHER}\n{' '.join(run(engine))} --api-key={KEY} --note {KEY} &\nwait\n"
    )
    started = host.launch("sh", str(script), keep={"signs": ["-m tinyengine"], "key_flags": ["--api-key"]})
    found = whole(started)
    host.stop()

    assert found["program"]["path"] == str(engine / "bin" / "python")
    assert found["packages"] == {"tinyengine": "1.0"}
    assert found["edited"]["files"]["tinyengine"].keys() == {"tinyengine/server.py"}
    assert found["inner"]["command"]["words"][1:] == ["-m", "tinyengine", "--api-key=***", "--note", "***"]
    assert found["inner"]["env"]["NCCL_ALGO"] == "Ring"
    text = (Path(started["folder"]) / "snapshot.json").read_text()
    assert KEY not in text
    assert OTHER not in text


def test_answer_to_a_launch_does_not_wait_for_the_look(host: Host) -> None:
    started = host.launch("sh", "-c", "while :; do sleep 1; done", keep={})  # whose program is looked for a while
    found = json.loads((Path(started["folder"]) / "snapshot.json").read_text() or "{}") if _there(started) else {}

    assert not found.get("whole")
    host.stop()
    assert whole(started)["program"] is None


def _there(started: dict[str, Any]) -> bool:
    return (Path(started["folder"]) / "snapshot.json").exists()


@pytest.mark.parametrize("version", ["3.9.18", "3.10.13", "3.12.1", "3.13.0"])
def test_snapshot_is_taken_by_every_python_of_a_host(host: Host, installed: Path, version: str) -> None:
    python = Path.home() / ".pyenv" / "versions" / version / "bin" / "python3"
    if not python.exists():
        pytest.skip(f"no Python {version} here")
    host.python = [str(python)]
    found = kept(host, str(installed / "bin" / "tinyengine"), env={"NCCL_ALGO": "Ring"})
    assert (found["troubles"], found["packages"]) == ([], {"tinyengine": "1.0"})
