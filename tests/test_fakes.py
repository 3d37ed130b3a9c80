"""The fakes themselves: what they promise must be so before anything is measured with them."""

import contextlib
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sshd import free_port

FAKES = pathlib.Path(__file__).resolve().parent / "fakes"


@contextlib.contextmanager
def fake(*flags: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    command = [sys.executable, str(FAKES / "server.py"), "--port", str(port), *flags]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process, port
        finally:
            process.kill()


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(link):
        link.request("POST" if body is not None else "GET", path, json.dumps(body) if body is not None else None)
        reply = link.getresponse()
        return reply.status, reply.read()


def ask_until(port: int, path: str, status: int) -> bytes:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError):
            got, body = ask(port, path)
            if got == status:
                return body
        time.sleep(0.02)
    raise AssertionError(f"{path} never answered {status}")


def test_healthy_fake_serves_counted_tokens() -> None:
    with fake("--style", "sglang", "--load", "100ms", "--warmup", "0s", "--model", "m", "--enable-metrics") as (
        _,
        port,
    ):
        assert ask_until(port, "/health", 200) == b""
        assert json.loads(ask(port, "/v1/models")[1])["data"][0]["id"] == "m"
        status, body = ask(port, "/v1/completions", {"prompt": "x", "max_tokens": 3})
        assert (status, json.loads(body)["usage"]["completion_tokens"]) == (200, 3)
        assert b'sglang:generation_tokens_total{model_name="m"} 3.0' in ask(port, "/metrics")[1]


def test_llamacpp_fake_listens_before_it_has_loaded() -> None:
    with fake("--style", "llamacpp", "--stick", "sleep", "--after", "0s") as (_, port):
        assert b"Loading model" in ask_until(port, "/health", 503)


@pytest.mark.parametrize(
    ("death", "code"), [("exit:0", 0), ("exit:7", 7), ("usage", 2), ("signal:9", -9), ("abort", -6), ("oom", -9)]
)
def test_fake_dies_as_asked_and_marks_the_moment(tmp_path: pathlib.Path, death: str, code: int) -> None:
    mark = tmp_path / "mark"
    with fake("--style", "sglang", "--load", "10s", "--die", death, "--after", "50ms", "--mark", str(mark)) as (
        process,
        _,
    ):
        assert process.wait(timeout=20) == code
    assert mark.read_text().splitlines()[-1].split()[::2] == ["FAULT", death]


def test_unknown_flag_ends_the_fake_as_it_ends_the_engine() -> None:
    command = [
        sys.executable,
        str(FAKES / "bin" / "sglang"),
        "serve",
        "--model-path",
        "m",
        "--num-speculative-tokens",
        "16",
    ]
    ran = subprocess.run(command, capture_output=True, check=False, timeout=20)
    assert ran.returncode == 2
    assert ran.stdout.endswith(b"sglang serve: error: unrecognized arguments: --num-speculative-tokens\n")


def test_deaths_of_a_list_come_one_an_attempt(tmp_path: pathlib.Path) -> None:
    codes = []
    for _ in range(3):
        with fake("--load", "10s", "--die", "exit:3,exit:4", "--after", "10ms", "--attempts", str(tmp_path / "n")) as (
            process,
            _,
        ):
            codes.append(process.wait(timeout=20))
    assert codes == [3, 4, 4]


def test_worker_carries_the_engine_s_title() -> None:
    with fake("--style", "vllm", "--workers", "1", "--load", "100ms") as (process, port):
        ask_until(port, "/health", 200)
        (worker,) = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert pathlib.Path(f"/proc/{worker}/cmdline").read_bytes().rstrip(b"\0") == b"VLLM::EngineCore"
        assert pathlib.Path(f"/proc/{worker}/comm").read_text() == "VLLM::EngineCor\n"


def test_lie_hang_is_green_and_answers_no_request() -> None:
    with fake("--load", "50ms", "--lie", "hang", "--at", "bound") as (_, port):
        ask_until(port, "/health", 200)
        with socket.create_connection(("127.0.0.1", port), timeout=0.3) as link:
            link.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            with pytest.raises(TimeoutError):
                link.recv(1)
