"""What is installed is read without trusting it: METADATA and RECORD of anybody, loops, pipes, files without an end."""

import os
import struct
from pathlib import Path

import pytest
from wheels import hash_of

from vigil.survey import checkout, edited, interpreter, models, packages
from vigil.survey.digest import Budget, ends_sha256, read_small, whole_sha256
from vigil.survey.interpreter import Place, find
from vigil.survey.packages import Package

GENEROUS = (20.0, 1 << 30)
HUGE = 1 << 40


def package(site: Path, record: str, name: str = "p") -> Package:
    info = site / f"{name}-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "RECORD").write_text(record)
    os.utime(info / "RECORD", (1, 1))
    return Package(name, "1", str(site), str(info))


def edits(one: Package, prefix: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = edited.edited_files([one], str(prefix), Budget(*GENEROUS))["files"]
    return found


def test_record_that_leads_out_of_the_environment_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    rows = [
        f"../../secret,sha256={hash_of('y')},1",
        f"/etc/passwd,sha256={hash_of('y')},1",
        f"p/../../../../../../etc/hosts,sha256={hash_of('y')},1",
    ]
    one = package(tmp_path / "env" / "site", "\n".join(rows))
    assert list(edited.read_record(one, str(tmp_path / "env"))) == []


def test_record_with_nonsense_has_its_good_rows_read(tmp_path: Path) -> None:
    rows = [
        "",
        ",,",
        "a",
        "b,sha256=!!!,x",
        'c"d,sha256',
        f"good.py,sha256={hash_of('y')},1",
        f"p\0q,sha256={hash_of('y')},1",
        '"open',
    ]
    one = package(tmp_path, "\n".join(rows))
    assert [row.name for row in edited.read_record(one, str(tmp_path))] == ["good.py"]


def test_record_without_an_end_is_cut(tmp_path: Path) -> None:
    one = package(tmp_path, f"good.py,sha256={hash_of('y')},1\n")
    os.truncate(Path(one.info) / "RECORD", HUGE)
    assert [row.name for row in edited.read_record(one, str(tmp_path))] == ["good.py"]


def test_file_of_a_terabyte_is_told_by_its_size_and_not_read(tmp_path: Path) -> None:
    one = package(tmp_path, f"big.so,sha256={hash_of('y')},10\n")
    (tmp_path / "big.so").write_text("")
    os.truncate(tmp_path / "big.so", HUGE)
    assert edits(one, tmp_path) == {"p": {"big.so": f"{HUGE} bytes instead of 10"}}


def test_loops_pipes_and_folders_in_place_of_files_are_looked_at_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    names = ("loop", "pipe", "folder", "gone")
    one = package(tmp_path, "".join(f"{name},sha256={hash_of('y')},1\n" for name in names))
    assert edits(one, tmp_path) == {"p": {"pipe": "no regular file", "folder": "no regular file", "gone": "missing"}}


def test_budget_that_is_spent_leaves_the_rest_unchecked(tmp_path: Path) -> None:
    one = package(tmp_path, "".join(f"{number}.py,sha256={hash_of('y')},1\n" for number in range(5)))
    assert edited.edited_files([one], str(tmp_path), Budget(0.0, 1)) == {"files": {}, "unchecked": 5, "sites": {}}


@pytest.mark.parametrize("kind", ["folder", "loop", "pipe", "empty", "binary", "terabyte", "unreadable"])
def test_metadata_of_any_kind_leaves_what_the_folder_is_called(tmp_path: Path, kind: str) -> None:
    info = tmp_path / "some_thing-1.2.dist-info"
    info.mkdir()
    path = info / "METADATA"
    {
        "folder": path.mkdir,
        "loop": lambda: path.symlink_to("METADATA"),
        "pipe": lambda: os.mkfifo(path),
        "empty": path.touch,
        "binary": lambda: path.write_bytes(bytes(range(256)) * 100),
        "terabyte": lambda: (path.touch(), os.truncate(path, HUGE)),
        "unreadable": lambda: path.touch(0o000),
    }[kind]()
    found = packages.installed([str(tmp_path)])
    assert {name: one.version for name, one in found.items()} == {"some-thing": "1.2"}


def test_first_folder_on_the_path_wins(tmp_path: Path) -> None:
    for site, version in (("a", "1"), ("b", "2")):
        info = tmp_path / site / f"p-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: P\nVersion: {version}\n\nVersion: 9\n")
    found = packages.installed([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "not-there")])
    assert [(one.name, one.version) for one in found.values()] == [("P", "1")]


@pytest.mark.parametrize(
    "told", ["", "[]", "{", "[" * 100000, '{"dir_info": 3}', '{"url": 1, "dir_info": {"editable": true}}']
)
def test_origin_that_is_nonsense_is_a_plain_install_or_nowhere(tmp_path: Path, told: str) -> None:
    one = package(tmp_path, "")
    (Path(one.info) / "direct_url.json").write_text(told)
    found = checkout.editable(one, Budget(*GENEROUS))
    assert found is None or found["commit"] is None


def test_index_of_nonsense_names_no_file_outside(tmp_path: Path) -> None:
    names = (b"/etc/passwd", b"../x", b"a/../../y", b"fine")
    body = b"DIRC" + struct.pack(">II", 2, 1 << 31)
    for name in names:
        entry = (
            struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 5) + b"h" * 20 + struct.pack(">H", len(name)) + name
        )
        body += entry + b"\0" * (8 - len(entry) % 8)
    assert [entry.name for entry in checkout.entries(body)] == ["fine"]


def test_git_folder_that_points_elsewhere_gives_no_file_away(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/../../../etc/passwd")
    assert checkout.working_copy(str(tmp_path), Budget(*GENEROUS)) == {"commit": None, "dirty": None}


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), tmp_path / "gone", Path("nul\0byte")):
        assert (read_small(str(path), 10), whole_sha256(str(path), 10), ends_sha256(str(path))) == (None, None, None)


@pytest.mark.parametrize("name", ["../../etc", "a/b/c", "", "x" * 5000, "nul\0", "$NOT_SET", "~nobody/x", "org/../m"])
def test_model_of_a_strange_name_is_not_on_this_host(tmp_path: Path, name: str) -> None:
    place = Place({"HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path)}, str(tmp_path / "deep" / "down"))
    found = models.find(name, None, place)
    assert found is None or not found.startswith(str(tmp_path / "models--"))


def test_revision_does_not_lead_out_of_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "models--org--m"
    (folder / "snapshots" / "c").mkdir(parents=True)
    place = Place({"HF_HUB_CACHE": str(tmp_path)}, "/")
    assert models.find("org/m", "c", place) == str(folder / "snapshots" / "c")
    assert models.find("org/m", "../../..", place) is None
    assert models.find("org/m", "..", place) is None


SCRIPTS = {
    "plain": "#!{python}\n",
    "with a flag": "#!{python} -sE\n",
    "by env": "#!/usr/bin/env python3\n",
    "by env -S": "#!/usr/bin/env -S python3 -u\n",
    "too long for the kernel": "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_installed_command_comes_to_the_interpreter_in_its_first_line(tmp_path: Path, kind: str) -> None:
    python = program(tmp_path / "python3", "\x7fELF")
    program(tmp_path / "vllm", SCRIPTS[kind].format(python=python))
    found = find(["vllm", "serve", "m"], Place({"PATH": str(tmp_path)}, "/"))
    assert found is not None
    assert (found.path, found.python, found.script) == (python, True, str(tmp_path / "vllm"))


def program(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


COMMANDS = {
    "env -i A=B python3 x.py": "python3",
    "env PATH=/elsewhere python3": None,
    "nice -n 10 numactl -m 0 llama-server -m python3": "llama-server",
    "sh start.sh": None,
    "mkdir -p x && vllm serve m": "python3",
    "cd sub && ./run": "sub/run",
    "docker run python3": None,
    "no-such-program": None,
    "": None,
    "uv run --frozen vllm2 serve": "project",
}


@pytest.mark.parametrize("line", COMMANDS)
def test_words_before_the_program_are_passed_over(tmp_path: Path, line: str) -> None:
    program(tmp_path / "python3", "\x7fELF")
    program(tmp_path / "llama-server", "\x7fELF")
    program(tmp_path / "mkdir", "\x7fELF")
    program(tmp_path / "sub" / "run", "\x7fELF")
    program(tmp_path / "vllm", f"#!{tmp_path}/python3\n")
    (tmp_path / ".venv").mkdir()
    program(tmp_path / ".venv" / "bin" / "x", "")
    program(tmp_path / ".venv" / "bin" / "python", "\x7fELF")
    program(tmp_path / ".venv" / "bin" / "vllm2", f"#!{tmp_path}/.venv/bin/python\n")
    found = find(line.split(" "), Place({"PATH": str(tmp_path)}, str(tmp_path)))
    wanted = COMMANDS[line]
    path = {None: None, "project": str(tmp_path / ".venv" / "bin" / "python")}.get(wanted, f"{tmp_path}/{wanted}")
    assert (found.path if found else None) == path


def test_shim_of_pyenv_stands_for_the_version_that_was_chosen(tmp_path: Path) -> None:
    program(tmp_path / "shims" / "python", "#!/usr/bin/env bash\n")
    for version in ("3.11.7", "3.12.1"):
        (tmp_path / "versions" / version).mkdir(parents=True)
        program(tmp_path / "versions" / version / "bin" / "python", "\x7fELF")
    (tmp_path / "version").write_text("3.11.7\n")
    here = {"PATH": str(tmp_path / "shims")}
    chosen = [
        find(["python"], Place(env, "/"))
        for env in (here, {**here, "PYENV_VERSION": "3.12.1"}, {**here, "PYENV_VERSION": "../x"})
    ]
    assert [one and one.path for one in chosen] == [
        str(tmp_path / "versions" / "3.11.7" / "bin" / "python"),
        str(tmp_path / "versions" / "3.12.1" / "bin" / "python"),
        None,
    ]


def test_files_of_secret_flags_are_not_looked_at(tmp_path: Path) -> None:
    for name in ("key.pem", "config.yaml", "start.sh"):
        (tmp_path / name).write_text("x")
    words = ["sh", "start.sh", "--ssl-keyfile", "key.pem", "--config=config.yaml", "--bad", "\0", "--worse", "x" * 9999]
    found = interpreter.paths_named(words, Place({}, str(tmp_path)), ["--ssl-keyfile"])
    assert found == [("", str(tmp_path / "start.sh")), ("--config", str(tmp_path / "config.yaml"))]
