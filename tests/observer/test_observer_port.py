"""Whose port it is."""

import os
import socket
from pathlib import Path
from typing import Any

from vigil import facts
from vigil.launcher import taken
from vigil.observer.exchange import Reply, make_target
from vigil.observer.port import PortWatch
from vigil.observer.report import Reporter
from vigil.observer.sockets import reachable, read_listeners

LISTEN = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])), reuse_port=True); "
    "print('up', flush=True); time.sleep(60)"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_port_of_the_watched_tree_is_ours(watching: Any, start: Any, python: str) -> None:
    port = free_port()
    code = f"import subprocess; subprocess.run([{python!r}, '-c', {LISTEN!r}, '{port}'])"
    root = start(python, "-c", code)
    watching.watch(pid=root.pid, port=port, host="127.0.0.1")
    opened = watching.wait(facts.PortOpened)
    assert (opened.owner, opened.port) == ("ours", port)
    assert opened.pid not in {None, root.pid}
    os.killpg(root.pid, 9)
    watching.wait(facts.PortClosed)


def test_port_of_another_process_is_foreign_and_named(watching: Any, start: Any, python: str) -> None:
    port = free_port()
    other = start(python, "-c", LISTEN, str(port), stdout=-1)
    assert other.stdout.readline() == b"up\n"
    server = start("sleep", "60")
    watching.watch(pid=server.pid, port=port, host="0.0.0.0")
    opened = watching.wait(facts.PortOpened)
    assert (opened.owner, opened.pid) == ("foreign", other.pid)
    assert opened.name.startswith("python")


def test_port_shared_with_a_stranger_is_foreign(watching: Any, start: Any, python: str) -> None:
    port = free_port()
    ours = start(python, "-c", LISTEN, str(port), stdout=-1)
    ours.stdout.readline()
    watching.watch(pid=ours.pid, port=port, host="127.0.0.1")
    first = watching.wait(facts.PortOpened)
    other = start(python, "-c", LISTEN, str(port), stdout=-1)
    other.stdout.readline()
    second = watching.wait(facts.PortOpened, after=first)
    assert (first.owner, second.owner, second.pid) == ("ours", "foreign", other.pid)


def test_listeners_are_found_among_many_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        served = [server.accept()[0] for _ in clients]
        (found,) = read_listeners(port) or []
        assert found.inode == os.fstat(server.fileno()).st_ino
        for connection in clients + served:
            connection.close()


def test_listener_on_another_address_is_not_the_servers(tmp_path: Path) -> None:
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    row = "   0: {} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {} 1\n"
    (tmp_path / "tcp").write_text(
        head + row.format("0A00000A:1F90", 7) + row.format("00000000:1F90", 8) + row.format("0100007F:1F91", 9)
    )
    (tmp_path / "tcp6").write_text(head + row.format("00000000000000000000000000000000:1F90", 10))
    listeners = read_listeners(8080, str(tmp_path)) or []
    assert {found.inode for found in listeners} == {7, 8, 10}
    assert {found.inode for found in reachable(listeners, "127.0.0.1")} == {8, 10}
    assert {found.inode for found in reachable(listeners, "10.0.0.10")} == {7}
    assert {found.inode for found in reachable(listeners, "::1")} == {10}
    assert {found.inode for found in reachable(listeners, "localhost")} == {8, 10}


def test_port_that_another_address_holds_is_not_taken() -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        port = other.getsockname()[1]
        hosts = ("127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", "192.0.2.1", "elsewhere.example")
        assert [taken.listener(port, host)["listening"] for host in hosts] == [False, False, True, False, False, False]
        assert taken.listener(port)["listening"]


def test_port_that_cannot_be_seen_opens_with_an_answer() -> None:
    said: list[Any] = []
    watch = PortWatch(make_target("http", "192.0.2.1", 80), Reporter(said.append), list, lambda: False)
    watch.look(0.0)
    assert not said
    assert watch.answered(Reply(status=503))
    watch.look(0.1)
    assert not watch.answered(Reply(error="timeout"))
    watch.look(0.2)
    assert watch.answered(Reply(error="refused"))
    watch.look(0.3)
    assert [(fact["kind"], fact.get("owner")) for fact in said] == [("PortOpened", "unknown"), ("PortClosed", None)]
