"""What a few answers tell of speculation, where a server's counters cannot be read."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from vigil.observer.drafting import measure, read_measure
from vigil.observer.exchange import Target, make_target


@pytest.fixture
def llama() -> Iterator[tuple[Target, dict[str, Any]]]:
    """A llama-server without `--metrics`; the timings that it answers with may be changed."""
    timings: dict[str, Any] = {"predicted_n": 64}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send_error(501)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            data = json.dumps({"timings": timings}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield make_target("http", "127.0.0.1", server.server_address[1]), timings
    server.shutdown()
    thread.join()
    server.server_close()


ASKED = {"path": "/completion", "metrics": "/metrics", "drafts": ["llamacpp:spec_decode_num_drafts_total"]}


def test_answers_that_count_their_drafts_need_no_counters_to_say_that_there_were_none(
    llama: tuple[Target, dict[str, Any]],
) -> None:
    told = measure(llama[0], None, read_measure(ASKED))

    assert told == {"answers": [{"tokens": 64}] * 3, "source": "/completion"}


def test_answers_without_any_count_need_the_counters(llama: tuple[Target, dict[str, Any]]) -> None:
    llama[1].clear()
    told = measure(llama[0], None, read_measure(ASKED))

    assert told["error"] == "its counters (/metrics) cannot be read"
