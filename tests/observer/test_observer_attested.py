"""The attesters' answers put together: hostile ones, a hostile snapshot, secrets, and processes that say nothing."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vigil.facts import Attested
from vigil.observer.account import account, flat
from vigil.observer.attested import Order, look
from vigil.observer.exchange import make_target
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
