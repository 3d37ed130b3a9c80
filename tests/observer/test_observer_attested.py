"""The attesters' answers put together: hostile ones, a hostile snapshot, secrets, and processes that say nothing."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vigil.facts import Attested
from vigil.observer import attesters
from vigil.observer.account import account, flat
from vigil.observer.attested import Order, look
from vigil.observer.attesters import ask
from vigil.observer.exchange import make_target
from vigil.observer.heard import _ignores_path, _why_hidden
from vigil.observer.redact import Redactor


@pytest.fixture
def start(tmp_path: Path) -> Path:
    (tmp_path / "attest").mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def answering(start: Path) -> Iterator[Callable[[bytes], None]]:
    """Put a socket there, in this very process, that answers anything with given bytes."""
    doors: list[socket.socket] = []

    def answer(data: bytes) -> None:
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(start / "attest" / f"{len(doors) + 10}.sock"))
        door.listen()
        doors.append(door)

        def serve() -> None:
            talk, _ = door.accept()
            with talk:
                talk.recv(65536)
                talk.sendall(data)

        threading.Thread(target=serve, daemon=True).start()

    yield answer
    for door in doors:
        door.close()


def fact_of(start: Path, order: Order | None = None) -> Attested:
    fields = look(str(start), [], order or Order(), Redactor())
    return msgspec.convert({"kind": "Attested", "at_s": 0.0, **json.loads(json.dumps(fields))}, Attested)


def told(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"no json\n",
        b"[1]\n",
        b"[" * 200000 + b"\n",
        b'{"modules": []}',
        told(modules=7, classes=[], arguments="x", marks=[]),
        told(modules=[1, [], ["a"], [1, 2, 3, 4], ["m", "/a\0b", 1.0, 1]]),
        told(classes={"C": 1, "D": {"alive": "many", "defined": 1}}, arguments={"values": []}, marks={"A": 1}),
        told(
            modules=[["m\ud800", "/x/\udc80.py", 1.0, 1]], arguments={"values": {"\udc80": 1 << 70, "n": float("nan")}}
        ),
        told(arguments={"values": {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "class": None}),
    ],
)
def test_answer_of_any_form_becomes_a_fact(start: Path, answering: Callable[[bytes], None], data: bytes) -> None:
    answering(data)
    seen = fact_of(start, Order(modules=("m",), classes=("C",)))

    assert len(seen.processes) == 1
    assert seen.error == ""
    assert msgspec.json.encode(seen)


@pytest.mark.parametrize(
    "snapshot",
    [
        "",
        "[]",
        "{}",
        '{"edited": null}',
        '{"edited": {"files": 7}}',
        '{"edited": {"files": {"p": {"../../etc/passwd": "x"}}, "sites": {"p": 7}}}',
        '{"edited": {"files": {"p": {"a.py": "x"}}, "sites": []}}',
        "[" * 100000,
    ],
)
def test_snapshot_of_any_form_is_outlived(start: Path, answering: Callable[[bytes], None], snapshot: str) -> None:
    (start / "snapshot.json").write_text(snapshot)
    answering(told(modules=[["m", "/x/m.py", 1.0, 1]]))

    assert len(fact_of(start).processes) == 1


def test_loaded_file_is_held_against_the_disk(start: Path, answering: Callable[[bytes], None]) -> None:
    same, changed, gone = (start / name for name in ("same.py", "changed.py", "gone.py"))
    for path in (same, changed):
        path.write_text("x = 1\n")
    status = same.stat()
    answering(
        told(
            modules=[
                ["same", str(same), status.st_mtime, status.st_size],
                ["changed", str(changed), status.st_mtime - 5.0, status.st_size],
                ["gone", str(gone), 1.0, 1],
            ]
        )
    )
    seen = fact_of(start, Order(modules=("same", "changed", "gone")))

    assert {Path(one.path).name: bool(one.stale) for one in seen.files} == {
        "same.py": False,
        "changed.py": True,
        "gone.py": True,
    }


@pytest.mark.parametrize(("began_after_s", "unsure"), [(60.0, False), (-60.0, True)])
def test_file_that_nobody_saw_being_read_is_known_where_it_was_not_touched_since_the_start(
    start: Path,
    answering: Callable[[bytes], None],
    began_after_s: float,
    unsure: bool,  # noqa: FBT001
) -> None:
    """The program's own script, a compiled file: no content changes without its `ctime`, which no program can set."""
    script = start / "serve.py"
    script.write_text("x = 1\n")
    began_s = script.stat().st_ctime + began_after_s
    (start / "life.json").write_text(json.dumps({"started_wall_s": began_s}))
    answering(told(modules=[["__main__", str(script), None, None]]))
    (seen,) = fact_of(start, Order(files=(str(script),))).files

    assert (seen.unsure, seen.stale) == (unsure, ())


def test_files_that_nobody_asked_for_are_not_told_where_a_process_tells_all(
    start: Path, answering: Callable[[bytes], None]
) -> None:
    answering(
        told(modules=[["json", "/gone/json.py", 1.0, 1], ["", "/gone/asked.py", 1.0, 1], ["p.m", "/gone/m.py", 1.0, 1]])
    )
    seen = fact_of(start, Order(packages=("p",), files=("/gone/asked.py",)))

    assert [one.path for one in seen.files] == ["/gone/asked.py", "/gone/m.py"]
    assert seen.files[0].modules == ()


def test_what_is_loaded_in_place_of_what_was_asked_for_is_told(start: Path, answering: Callable[[bytes], None]) -> None:
    names = ("engine.spec.eagle_worker_v2", "engine.spec.ngram", "engine.layers")
    modules = [[name, f"/site/{name.replace('.', '/')}.py", 1.0, 1] for name in names]
    answering(told(modules=modules))
    order = Order(
        packages=("engine",),
        modules=("engine.spec.eagle_worker", "ngram", "engine.layers"),
        files=("/checkout/engine/spec/ngram.py", "/checkout/other.py"),
    )

    assert fact_of(start, order).instead == {
        "engine.spec.eagle_worker": ("engine.spec.eagle_worker_v2",),
        "ngram": ("engine.spec.ngram",),
        "/checkout/engine/spec/ngram.py": ("/site/engine/spec/ngram.py",),
    }


def test_module_without_a_file_is_loaded_all_the_same(start: Path, answering: Callable[[bytes], None]) -> None:
    """As a folder of SGLang's without an `__init__.py`."""
    answering(told(modules=[["engine.layers", "", None, None]]))
    (found,) = fact_of(start, Order(packages=("engine",), modules=("engine.layers",))).files

    assert (found.path, found.modules, found.stale) == ("", ("engine.layers",), ())


def test_file_is_found_through_a_link_under_another_name(start: Path, answering: Callable[[bytes], None]) -> None:
    (start / "patch.py").write_text("x = 1\n")
    (start / "worker.py").symlink_to(start / "patch.py")
    answering(told(modules=[["engine.worker", str(start / "worker.py"), 1.0, 1]]))
    (found,) = fact_of(start, Order(files=(str(start / "patch.py"),))).files

    assert (found.modules, found.asked) == (("engine.worker",), (str(start / "patch.py"),))


def test_names_that_ended_processes_left_do_not_crowd_out_who_lives(
    start: Path, answering: Callable[[bytes], None]
) -> None:
    answering(told(modules=[]))
    for number in range(600):
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(start / "attest" / f"{number % 10}{number}.sock"))
    (start / "attest" / "10.sock").rename(start / "attest" / "99999.sock")

    assert [one.error for one in ask(str(start / "attest"), {})] == [""]


def test_processes_beyond_those_that_are_asked_are_said_not_to_be(
    start: Path, answering: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(told(modules=[]))
    answering(told(modules=[]))
    (start / "attest" / "11.sock").rename(start / "attest" / f"{os.getpid()}.sock")
    monkeypatch.setattr(attesters, "MOST_TALKS", 1)
    answers = ask(str(start / "attest"), {})

    assert sorted(one.error for one in answers) == ["", "many"]


def test_link_to_a_socket_of_something_else_is_not_followed(start: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(start / "other"))
        other.listen()
        (start / "attest" / "7.sock").symlink_to(start / "other")

        assert ask(str(start / "attest"), {}, 0.2) == []


@pytest.mark.parametrize(
    ("words", "ignores"),
    [
        ("-I serve.py", True),
        ("-sE -m engine", True),
        ("-u -S serve.py", True),
        ("-X dev -W error -I serve.py", True),
        ("serve.py -E 5", False),
        ("-m engine -I", False),
        ("-WError serve.py", False),
        ("-W Error serve.py", False),
        ("-c print(1) -I", False),
        ("-um engine -S", False),
        ("--version", False),
        ("", False),
    ],
)
def test_options_that_keep_an_attester_out_are_the_interpreters_own(words: str, ignores: bool) -> None:  # noqa: FBT001
    assert _ignores_path(["python", *words.split()]) is ignores


def test_path_without_the_attester_or_with_another_before_it_is_said_to_be_so(
    start: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(start))
    ours = f"{start}/vigil/attest/0123456789abcdef"
    other = start / "otel"
    other.mkdir()
    (other / "sitecustomize.py").write_text("")

    assert _why_hidden(f"{ours}:{other}") == ""
    assert _why_hidden(f"/x:{ours}") == ""
    assert "set anew" in _why_hidden("/work/python")
    assert str(other) in _why_hidden(f"{other}:{ours}")


def test_secrets_of_the_arguments_are_hidden_by_name_and_by_look(
    start: Path, answering: Callable[[bytes], None]
) -> None:
    values = {
        "api_key": "topsecret",
        "tokenizer_path": "/m",
        "note": "Bearer abcdefghijkl",
        "hf": {"token": "abcdefgh"},
    }
    answering(told(arguments={"class": "A", "from": "b", "values": values}, marks={"HF_TOKEN": "abc", "NCCL_P2P": "1"}))
    seen = fact_of(start)

    assert seen.arguments[0].values == {
        "api_key": "***",
        "tokenizer_path": "/m",
        "note": "Bearer ***",
        "hf.token": "***",
    }
    assert seen.processes[0].marks == {"HF_TOKEN": "***", "NCCL_P2P": "1"}


def test_same_arguments_of_several_ranks_are_told_once(start: Path, answering: Callable[[bytes], None]) -> None:
    for _ in range(3):
        answering(told(arguments={"class": "A", "from": "b", "values": {"tp": 2}}))

    assert len(fact_of(start).arguments) == 1


def test_name_of_a_socket_whose_process_is_gone_says_nothing(start: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(start / "attest" / "7.sock"))
    (start / "attest" / "8.sock").write_text("")

    assert fact_of(start).processes == ()


def test_address_that_tells_nothing_is_named_with_what_it_answers() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = account(make_target("http", "127.0.0.1", port), None, ("/server_info", "/props"), Redactor())

    assert told == {"source": "", "values": {}, "error": "/server_info: refused, /props: refused"}


def test_nested_settings_are_flat_and_bounded() -> None:
    assert flat({"a": {"b": {"c": 1}}, "l": [1, 2]}, Redactor()) == {"a.b.c": 1, "l": "[1, 2]"}
    assert len(flat({str(n): {str(m): 1 for m in range(99)} for n in range(99)}, Redactor())) <= 2000
