"""Hostile and honest servers, written with bare sockets."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vigil import facts
from vigil.observer.exchange import Reply, exchange, is_here, make_target
from vigil.observer.probe import read_models, read_samples, sample_pattern

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each connection by a function of (socket, request bytes)."""

    def __init__(self, answer: Callable[[socket.socket, bytes], None]) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self._over.is_set():
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(20)
            try:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(65536) or b"\r\n\r\n"
                head, _, body = request.partition(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
                )
                while len(body) < length:
                    body += connection.recv(65536)
                self.requests.append(head + b"\r\n\r\n" + body)
                self.answer(connection, self.requests[-1])
            except OSError:
                pass

    def trickle(self, connection: socket.socket, piece: bytes) -> None:
        while not self._over.wait(0.02):
            connection.sendall(piece)

    def close(self) -> None:
        self._over.set()
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        for thread in self._threads:
            thread.join()
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(answer: Callable[[socket.socket, bytes], None] | bytes) -> Server:
        reply = answer if callable(answer) else lambda connection, _: connection.sendall(answer)
        servers.append(Server(reply))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def get(port: int, timeout_s: float = 5.0, **options: Any) -> Reply:
    return exchange(make_target("http", "0.0.0.0", port), "GET", "/health", timeout_s, **options)


def test_exchange_reads_a_plain_reply(serve: Any) -> None:
    server = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello, and more")
    reply = get(server.port, key="k-1")
    assert (reply.status, reply.body, reply.headers["x-a"]) == (200, b"hello", "b")
    request = server.requests[0]
    assert request.startswith(b"GET /health HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{server.port}\r\n".encode() in request
    assert b"Authorization: Bearer k-1\r\n" in request
    assert b"Connection: close\r\n" in request


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_exchange_reads_every_form_of_body(serve: Any, raw: bytes, body: bytes) -> None:
    assert get(serve(raw).port).body == body


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", "closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "closed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "closed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "other"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: minus\r\n\r\n", "other"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "other"),
        (b"HTTP/1.1 lots OK\r\n\r\n", "other"),
    ],
)
def test_exchange_names_what_is_wrong_with_a_reply(serve: Any, raw: bytes, error: str) -> None:
    reply = get(serve(raw).port)
    assert (reply.status, reply.error) == (None, error)


def test_exchange_names_refused_unresolved_and_reset(serve: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert get(port).error == "refused"
    assert exchange(make_target("http", "no such host", 1), "GET", "/", 1.0).error == "unresolved"

    def reset(connection: socket.socket, _: bytes) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    assert get(serve(reset).port).error == "reset"


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"]
)
def test_exchange_with_a_trickler_ends_at_its_deadline(serve: Any, start: bytes) -> None:
    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(start)
        server.trickle(connection, b"H")

    server = serve(answer)
    reply = get(server.port, 0.3)
    assert reply.error == "timeout"
    assert reply.latency_s < 5


def test_exchange_ends_an_endless_header(serve: Any) -> None:
    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X-Filler: " + b"a" * 8000 + b"\r\n")

    assert get(serve(answer).port, 10.0).error == "other"


def test_exchange_cuts_a_huge_body(serve: Any) -> None:
    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"a" * 65536)

    reply = get(serve(answer).port, 10.0)
    assert (reply.status, len(reply.body)) == (200, 256 * 1024)


def test_exchange_does_not_let_a_path_add_a_header(serve: Any) -> None:
    server = serve(OK)
    exchange(make_target("http", "127.0.0.1", server.port), "GET", "/a\r\nX-Evil: 1", 5.0)
    assert b"\r\nX-Evil" not in server.requests[0]


def test_exchange_says_tls_to_a_plain_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(ConnectionError):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 The plain HTTP request was sent to HTTPS port\r\n\r\n")
                connection.recv(65536)

        thread = threading.Thread(target=answer)
        thread.start()
        target = make_target("https", "127.0.0.1", listener.getsockname()[1])
        assert exchange(target, "GET", "/", 10.0).error == "tls"
        thread.join()


def test_target_of_a_server_that_listens_on_all_is_the_loopback() -> None:
    assert [make_target("", host, 1).host for host in ("0.0.0.0", "", "::", "[::1]", "h")] == [
        "127.0.0.1",
        "127.0.0.1",
        "::1",
        "::1",
        "h",
    ]
    assert is_here("127.0.0.1")
    assert is_here("localhost")
    assert is_here(socket.gethostname())
    assert not is_here("192.0.2.1")
    assert not is_here("example.invalid")


def test_models_are_read_from_every_form() -> None:
    assert read_models(b'{"data": [{"id": "a"}, {"id": 7}, {}, {"id": "b"}]}') == ("a", "b")
    assert read_models(b'{"models": [{"name": "x", "model": "y"}], "object": "list"}') == ("y",)
    assert read_models(b"<html>") == read_models(b"[1]") == read_models(b'{"data": 3}') == ()
    assert read_models(b"[" * 100_000) == ()
    many = json.dumps({"data": [{"id": "m" * 999}] * 999}).encode()
    assert [len(name) for name in read_models(many)] == [200] * 64


def test_samples_are_summed_over_labels() -> None:
    text = '# HELP a b\nvllm:run{m="a}b",e="0"} 1.0\nvllm:run{m="x",e="1"} 2\nvllm:running 9\nsgl:wait 3e2\nbad{x="y"} NaN\n'

    def read(*names: str) -> float | None:
        return read_samples(text, [sample_pattern(name) for name in names])

    assert (read("vllm:run"), read("none", "sgl:wait"), read("none"), read("bad")) == (3.0, 300.0, None, None)


def watch_port(watching: Any, port: int, **fields: Any) -> None:
    watching.watch(**{"port": port, "host": "127.0.0.1", **fields})


def test_probe_reports_changes_and_counts_repeats(watching: Any, serve: Any) -> None:
    answers = [OK]
    server = serve(lambda connection, _: connection.sendall(answers[-1]))
    watch_port(watching, server.port)
    watching.do("probe", probe="models", path="/v1/models", every_s=0.01, timeout_s=5, repeat_s=0.1)
    first = watching.wait(facts.ProbeAnswered)
    assert (first.probe, first.status, first.body, first.repeats) == ("models", 200, "ok", 1)
    again = watching.wait(facts.ProbeAnswered, after=first)
    assert again.repeats > 1
    body = b'{"data": [{"id": "kimi"}]}'
    answers.append(
        b"HTTP/1.1 200 OK\r\nProcess-Start-Time-Unix: 17.5\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    listed = watching.wait(facts.ProbeAnswered, lambda fact: fact.models)
    assert (listed.models, listed.server_started, listed.repeats, listed.body) == (("kimi",), "17.5", 1, "")
    answers.append(b"HTTP/1.1 302 Found\r\nLocation: http://login/\r\nContent-Length: 0\r\n\r\n")
    moved = watching.wait(facts.ProbeAnswered, lambda fact: fact.status == 302)
    assert moved.location == "http://login/"
    watching.do("probe", probe="models", path="/v1/models", every_s=0)
    watching.do("probe", probe="health", path="/health", every_s=0.01, timeout_s=5)
    watching.wait(facts.ProbeAnswered, lambda fact: fact.probe == "health")


def test_probe_of_a_trickler_is_a_timeout(watching: Any, serve: Any) -> None:
    server = serve(lambda connection, _: server.trickle(connection, b"HTTP"))
    watch_port(watching, server.port)
    watching.do("probe", probe="health", path="/health", every_s=0.05, timeout_s=0.2)
    assert watching.wait(facts.ProbeAnswered).error == "timeout"


def test_probe_body_is_shown_safely(watching: Any, serve: Any) -> None:
    body = b"\x1b[31m api_key='hunter2' \0" + b"x" * 5000
    server = serve(b"HTTP/1.1 500 No\r\n\r\n" + body)
    watch_port(watching, server.port)
    watching.do("probe", probe="health", path="/", every_s=0.05, timeout_s=5)
    shown = watching.wait(facts.ProbeAnswered).body
    assert shown.startswith("\\x1b[31m api_key='***' \\x00xxx")
    assert len(shown) == 300


SERVER = """
import json, os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    with connection:
        request = connection.recv(65536).decode()
        sent = [line for line in request.split("\\r\\n") if line.startswith("Authorization")]
        with open(sys.argv[2], "a") as seen:
            print(request.split(" ")[1], *sent, file=seen)
        connection.sendall(b"HTTP/1.1 401 No\\r\\n\\r\\n" + request.encode())
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_key_comes_from_the_servers_own_command_line_and_is_never_told(
    watching: Any, start: Any, python: str, tmp_path: Path, poll: Any
) -> None:
    port, seen = free_port(), tmp_path / "seen"
    process = start(python, "-c", SERVER, str(port), str(seen), "--api-key", "top-secret-key")
    watch_port(watching, port, pid=process.pid, key_flags=["--api-key"])
    assert watching.wait(facts.PortOpened).owner == "ours"
    watching.do("probe", probe="models", path="/v1/models", every_s=0.05, timeout_s=5)
    watching.do("token", paths=["/v1/completions"], model="m", tokens=1, timeout_s=5)
    assert watching.wait(facts.TokenAnswered).keyed
    watching.wait(facts.ProbeAnswered)
    assert poll(lambda: "/v1/models Authorization: Bearer top-secret-key" in seen.read_text())
    assert "/v1/completions Authorization: Bearer top-secret-key" in seen.read_text()
    assert "top-secret-key" not in repr(watching.facts)


def test_key_comes_from_the_servers_environment(watching: Any, start: Any, python: str, tmp_path: Path) -> None:
    port, seen = free_port(), tmp_path / "seen"
    env = {"VLLM_API_KEY": "from-environment", "PATH": "/usr/bin:/bin"}
    process = start(python, "-c", SERVER, str(port), str(seen), env=env)
    watch_port(watching, port, pid=process.pid, key_variables=["VLLM_API_KEY"])
    assert watching.wait(facts.PortOpened).owner == "ours"
    watching.do("token", paths=["/v1/completions"], model="m", tokens=1, timeout_s=5)
    assert watching.wait(facts.TokenAnswered).keyed
    assert "Bearer from-environment" in seen.read_text()


def test_squatter_on_the_port_is_sent_no_key(watching: Any, start: Any, python: str, tmp_path: Path, poll: Any) -> None:
    port, seen = free_port(), tmp_path / "seen"
    server = start(python, "-c", "import time; time.sleep(60)", "--api-key", "top-secret-key")
    watch_port(watching, port, pid=server.pid, key_flags=["--api-key"])
    watching.wait(facts.MainStarted)
    start(python, "-c", SERVER, str(port), str(seen))
    assert watching.wait(facts.PortOpened).owner == "foreign"
    watching.do("probe", probe="models", path="/v1/models", every_s=0.01, timeout_s=5)
    watching.do("metrics", path="/metrics", every_s=0.01, timeout_s=5)
    watching.do("token", paths=["/v1/completions"], model="m", tokens=1, timeout_s=5)
    assert not watching.wait(facts.TokenAnswered).keyed
    assert poll(lambda: {"/v1/models", "/metrics", "/v1/completions"} <= set(seen.read_text().split()))
    assert "Authorization" not in seen.read_text()


def test_squatter_that_takes_the_port_of_a_dead_server_is_sent_no_key(
    watching: Any, start: Any, python: str, tmp_path: Path, poll: Any
) -> None:
    port, ours, theirs = free_port(), tmp_path / "ours", tmp_path / "theirs"
    server = start(python, "-c", SERVER, str(port), str(ours), "--api-key", "top-secret-key")
    watch_port(watching, port, pid=server.pid, key_flags=["--api-key"])
    watching.wait(facts.PortOpened)
    watching.do("probe", probe="models", path="/v1/models", every_s=0.01, timeout_s=5)
    assert poll(lambda: ours.exists() and "top-secret-key" in ours.read_text())
    server.kill()
    start(python, "-c", SERVER, str(port), str(theirs))
    assert poll(lambda: theirs.exists() and theirs.read_text().count("/v1/models") > 20)
    assert "Authorization" not in theirs.read_text()


def reply_json(code: int, value: Any) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body)


def test_token_is_counted_by_the_reply(watching: Any, serve: Any) -> None:
    reply = {"choices": [{"text": " Paris"}], "usage": {"completion_tokens": 1}}
    server = serve(reply_json(200, reply))
    watch_port(watching, server.port)
    watching.do("token", paths=["/v1/completions"], model="m", tokens=1, timeout_s=5)
    answered = watching.wait(facts.TokenAnswered)
    assert (answered.status, answered.tokens, answered.body, answered.keyed, answered.model) == (200, 1, "", False, "m")
    sent = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert sent == {"model": "m", "prompt": "The capital of France is", "max_tokens": 1, "temperature": 0}


@pytest.mark.parametrize("refusal", [404, 405, 501, 400])
def test_token_goes_on_to_the_next_path(watching: Any, serve: Any, refusal: int) -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        good = reply_json(200, {"usage": {"completion_tokens": 1}})
        connection.sendall(good if b"chat" in request else reply_json(refusal, {}))

    server = serve(answer)
    watch_port(watching, server.port)
    watching.do("token", paths=["/v1/completions", "/v1/chat/completions"], model="m", tokens=1, timeout_s=5)
    assert watching.wait(facts.TokenAnswered).tokens == 1
    assert b'"messages"' in server.requests[-1]


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        ({"timings": {"predicted_n": 3}}, 3),
        ({"tokens_predicted": 2}, 2),
        ([{"meta_info": {"completion_tokens": 4}}], 4),
        ({"usage": {"completion_tokens": 0}}, 0),
        ({"usage": {"completion_tokens": True}}, None),
        ({"usage": None}, None),
        ("Paris", None),
    ],
)
def test_token_count_is_read_from_every_form(watching: Any, serve: Any, reply: Any, tokens: int | None) -> None:
    watch_port(watching, serve(reply_json(200, reply)).port)
    watching.do("token", paths=["/generate"], model="", tokens=1, timeout_s=5)
    assert watching.wait(facts.TokenAnswered).tokens == tokens


def test_token_that_fails_shows_the_reply(watching: Any, serve: Any) -> None:
    watch_port(watching, serve(reply_json(500, {"error": "EngineDeadError"})).port)
    watching.do("token", paths=["/v1/completions"], model="m", tokens=1, timeout_s=5)
    answered = watching.wait(facts.TokenAnswered)
    assert (answered.status, answered.tokens) == (500, None)
    assert "EngineDeadError" in answered.body


def test_metrics_are_seen_and_their_loss_is_told_once(watching: Any, serve: Any, poll: Any) -> None:
    answers = [b'HTTP/1.1 200 OK\r\n\r\nrun{a="b"} 2\nwait 1\ntok_total 512\n']
    server = serve(lambda connection, _: connection.sendall(answers[-1]))
    watch_port(watching, server.port)
    names = {"running": ["none", "run"], "waiting": ["wait"], "tokens_total": ["tok_total"]}
    watching.do("metrics", path="/metrics", every_s=0.02, timeout_s=5, **names)
    seen = watching.wait(facts.MetricsSeen)
    assert (seen.running, seen.waiting, seen.tokens_total) == (2.0, 1.0, 512.0)
    answers.append(b"HTTP/1.1 404 X\r\n\r\n")
    lost = watching.wait(facts.MetricsSeen, lambda fact: fact.running is None)
    asked = len(server.requests)
    assert poll(lambda: len(server.requests) >= asked + 3)
    assert watching.all(facts.MetricsSeen)[-1] is lost
