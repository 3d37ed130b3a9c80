"""The fake's HTTP side: an OpenAI-like server that may lie."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from talk import Talk

LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
FOREVER_S = 86400.0


class Conduct:
    """What the server does now: `stage` (loading, warming, ready), the `lie` in force, and its own counters."""

    def __init__(self, options: Any, talk: Talk) -> None:
        self.options, self.talk = options, talk
        self.stage = "loading"
        self.lie: str | None = None
        self.tokens = 0
        self.running = 0
        self.when_asked: Callable[[], None] | None = None  # called after the first completion
        self._lock = threading.Lock()

    def count_tokens(self, number: int) -> None:
        """Add generated tokens to the counters."""
        with self._lock:
            self.tokens += number

    def note_completion(self) -> None:
        """Take note that a completion was answered."""
        with self._lock:
            first, self.when_asked = self.when_asked, None
        if first is not None:
            first()

    def flow(self) -> None:
        """Play the traffic of unseen clients: tokens flow, and the log says so about every second."""
        rate = self.options.background_load
        pause_s = 0.1
        since_line_s = 0.0
        self.running = 8
        while True:
            time.sleep(pause_s)
            self.count_tokens(max(1, round(rate * pause_s)))
            since_line_s += pause_s
            if since_line_s >= self.options.scale and self.talk.style.decode:
                since_line_s = 0.0
                self.talk.line(self.talk.style.decode, running=8, waiting=3, tokens=self.tokens, rate=rate)


class Server(ThreadingHTTPServer):
    """One thread a request; carries the conduct for the handlers."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], conduct: Conduct) -> None:
        self.conduct = conduct
        super().__init__(address, Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that went away are no news."""


class Handler(BaseHTTPRequestHandler):
    """Answers as the engine of the style would at this stage, or as the lie wants."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 600

    def do_GET(self) -> None:
        """Answer a question about the server."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer a request for tokens."""
        self._answer("POST")

    def _answer(self, method: str) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else b""
        conduct = self.server.conduct
        path = self.path.partition("?")[0]
        if self._refused_by_lie(conduct.lie, path) or self._refused_by_key(path):
            return
        if conduct.stage == "loading":
            self._send(503, LOADING)
        elif path in {"/health", "/health_generate", "/ready"}:
            self._send_health()
        elif path == "/v1/models" and method == "GET":
            self._send(200, self._models())
        elif path == "/metrics" and method == "GET":
            self._send_metrics()
        elif method == "POST" and path in {"/v1/completions", "/v1/chat/completions", "/completion", "/generate"}:
            while conduct.stage == "warming":  # the first request waits for the kernels
                time.sleep(0.002)
            self._send_completion(path, body)
        else:
            self._send(404, {"detail": "Not Found"})

    def _refused_by_lie(self, lie: str | None, path: str) -> bool:
        """Play the lies that come before any endpoint; return whether the request is done with."""
        health = path in {"/health", "/health_generate", "/ready"}
        tokens = self.command == "POST"
        if (
            lie == "mute"
            or (lie == "mute-health" and health)
            or (lie == "hang" and tokens)
            or (lie == "starve" and (health or tokens))
        ):
            self._hang()
        elif lie == "redirect":
            self._send(302, b"", {"Location": "https://login.example.com/?next=" + path})
        elif lie == "locked":
            self._send(401, {"error": "Unauthorized"})
        elif lie == "fail" and tokens:
            self._send(
                500,
                {
                    "error": {
                        "message": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                        "code": 500,
                    }
                },
            )
        elif lie == "unhealthy" and health:
            self._send(503, b"")
        else:
            return False
        return True

    def _refused_by_key(self, path: str) -> bool:
        key = self.server.conduct.options.api_key
        if not key or not path.startswith("/v1/") or self.headers.get("Authorization") == f"Bearer {key}":
            return False
        self._send(401, {"error": "Unauthorized"})
        return True

    def _hang(self) -> None:
        """Hold the connection while the lie lasts, then drop it."""
        conduct, lie = self.server.conduct, self.server.conduct.lie
        deadline_s = time.monotonic() + FOREVER_S
        while conduct.lie == lie and time.monotonic() < deadline_s:
            time.sleep(0.05)
        self.close_connection = True

    def _send_health(self) -> None:
        conduct = self.server.conduct
        if conduct.stage == "warming":
            self._send(503, b"")
            return
        wanted = conduct.options.health_body
        body = conduct.talk.style.health_ok if wanted is None else {"empty": b"", "ok": b'{"status":"ok"}'}[wanted]
        self._send(200, body)

    def _models(self) -> dict[str, Any]:
        conduct = self.server.conduct
        name = "somebody-elses-model" if conduct.lie == "other-model" else conduct.options.served
        owner = conduct.talk.style.name
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": int(time.time()), "owned_by": owner, "root": name}],
        }

    def _send_metrics(self) -> None:
        conduct = self.server.conduct
        style = conduct.talk.style
        if not conduct.options.metrics:
            self._send(501 if style.name == "llamacpp" else 404, {"detail": "Not Found"})
            return
        rows = (
            (style.metric_running, "gauge", conduct.running),
            (style.metric_waiting, "gauge", 0),
            (style.metric_tokens, "counter", conduct.tokens),
        )
        label = "" if style.name == "llamacpp" else f'{{model_name="{conduct.options.served}"}}'
        text = "".join(
            f"# HELP {name} Fake.\n# TYPE {name} {kind}\n{name}{label} {float(value)}\n" for name, kind, value in rows
        )
        self._send(200, text.encode(), {"Content-Type": "text/plain; version=0.0.4"})

    def _send_completion(self, path: str, body: bytes) -> None:
        conduct = self.server.conduct
        try:
            asked = json.loads(body or b"{}")
        except ValueError:
            self._send(400, {"error": "not JSON"})
            return
        number = (
            0 if conduct.lie == "tokenless" else min(int(asked.get("max_tokens") or asked.get("n_predict") or 16), 64)
        )
        conduct.count_tokens(number)
        text = " Paris" * number
        usage = {"prompt_tokens": 5, "completion_tokens": number, "total_tokens": 5 + number}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        choice |= (
            {"message": {"role": "assistant", "content": text}} if "chat" in path else {"text": text, "logprobs": None}
        )
        reply = {
            "id": "cmpl-1",
            "object": "text_completion",
            "created": int(time.time()),
            "model": conduct.options.served,
            "choices": [choice],
        }
        if conduct.lie != "uncounted":
            reply["usage"] = usage
        self._send(200, reply)
        conduct.note_completion()

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        kind = "application/json" if data else "text/plain"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self._log_access(status)

    def _log_access(self, status: int) -> None:
        talk = self.server.conduct.talk
        if talk.style.access:
            words = {
                200: "200 OK",
                503: "503 Service Unavailable",
                401: "401 Unauthorized",
                404: "404 Not Found",
                500: "500 Internal Server Error",
            }
            peer = f"{self.client_address[0]}:{self.client_address[1]}"
            shown = self.path.encode("ascii", "replace").decode()[:200]
            talk.line(
                talk.style.access, peer=peer, method=self.command, path=shown, status=words.get(status, str(status))
            )

    def log_message(self, *_: Any) -> None:
        """Keep http.server's own log out of the fake's."""
