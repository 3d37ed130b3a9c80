"""A target of bytes, and a server of it: each byte is a token, answers are a function of the question, faults come as told.

As a program it serves like an engine that speculates, `--accept` tokens a step; it takes flags of real ones, and heeds `--port`.
"""

import argparse
import json
import math
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

START, END, FIRST_BYTE = 0, 1, 3
WORDS = ("<|start|>", "<|end|>", "<|other|>")
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def ids_of(text: str) -> list[int]:
    """Return the ids of text in which nothing is structure."""
    return [FIRST_BYTE + one for one in text.encode()]


def text_of(ids: list[int]) -> str:
    """Return ids as text, structure spelled out."""
    return b"".join(WORDS[one].encode() if one < FIRST_BYTE else bytes([one - FIRST_BYTE]) for one in ids).decode()


def make_model(folder: Path, template: str = TEMPLATE) -> Path:
    """Write a model's folder: what there is of it is its tokenizer."""
    folder.mkdir()
    added = [
        {
            "id": at,
            "content": word,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for at, word in enumerate(WORDS)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    whole = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
        "post_processor": None, "decoder": level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "vocab": {word: at for at, word in enumerate([*WORDS, *_letters()])},
            "merges": [],
        },
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(whole), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}), "utf-8")
    (folder / "chat_template.jinja").write_text(template, "utf-8")
    (folder / "config.json").write_text('{"eos_token_id": 1}', "utf-8")
    return folder


def _letters() -> list[str]:
    """Return the letter that stands for each byte in vocabularies of the kind of GPT-2's."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(one) if one in plain else chr(next(others)) for one in range(256)]


class FakeTarget:
    """Serves the bytes' target as an engine would. `asked`: the prompts that were answered, as text, in their order.

    `fault(number)` says for the question number `number`, from 1, what becomes of it: None, a status, or "drop".
    `hold` (a number): from that question on, none is answered until `let_go` is set.
    """

    def __init__(self, engine: str = "vllm", shift: int = 0, hold: int = 0, context: int = 4096, port: int = 0) -> None:
        self.engine, self.shift, self.hold, self.context = engine, shift, hold, context
        self.accept = 0.0  # tokens a step, 0 where it does not speculate
        self.drafts = self.accepted = 0
        self.fault: Callable[[int], int | str | None] = lambda _: None
        self.retry_after = "0"
        self.say: Callable[[str], str] = lambda prompt: "It is " + str(sum(prompt.encode()) % 9973) + "."
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.held, self.let_go = threading.Event(), threading.Event()
        self.number = 0
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int | str, dict[str, Any]]:
        """Return status and body of an answer."""
        if path in {"/tokenize", "/v1/tokenize"} and self.engine != "other":
            return 200, {
                "tokens": [one + self.shift for one in _all_ids(body.get("prompt") or body.get("content") or "")]
            }
        with self.lock:
            self.number += 1
            number = self.number
            self.bodies.append(body)
        if self.hold and number >= self.hold:
            self.held.set()
            self.let_go.wait(30)
        if (what := self.fault(number)) is not None:
            return what, {"error": {"message": "not now"}}
        return self._answered(path, body)

    def _answered(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        ids = body.get("prompt") or body.get("input_ids") or body.get("text")
        prompt = text_of(ids) if isinstance(ids, list) else str(ids or body.get("messages"))
        limit = body.get("max_tokens") or body.get("n_predict") or body["sampling_params"]["max_new_tokens"]
        with self.lock:
            self.asked.append(prompt)
        text = self.say(prompt)
        tokens = [*ids_of(text), END][:limit]
        ended = tokens[-1] == END
        text = text[:limit]
        return 200, self._body(path, text, tokens, ended=ended, wants_ids=bool(body.get("return_token_ids")))

    def _body(self, path: str, text: str, tokens: list[int], *, ended: bool, wants_ids: bool) -> dict[str, Any]:
        usage = {"prompt_tokens": 5, "completion_tokens": len(tokens)}
        finish = {"finish_reason": "stop" if ended else "length"}
        told: dict[str, Any] = {"finish_reason": {"type": finish["finish_reason"]}, "completion_tokens": len(tokens)}
        if self.accept:
            steps = math.ceil((len(tokens) - 1) / self.accept)
            with self.lock:
                self.drafts += steps
                self.accepted += len(tokens) - 1 - steps
            told |= {"spec_verify_ct": steps}
        if path == "/generate":
            return {"text": text, "output_ids": tokens, "meta_info": told}
        if path == "/completion":
            return {"content": text, "tokens": tokens, "stop_type": "eos" if ended else "limit"}
        if path == "/v1/chat/completions":
            return {"choices": [{"message": {"content": text}, **finish}], "usage": usage}
        return {"choices": [{"text": text, "token_ids": tokens if wants_ids else None, **finish}], "usage": usage}

    def metrics(self) -> str:
        """Return the counters as vLLM writes them."""
        names = {"drafts": self.drafts, "accepted_tokens": self.accepted}
        return "".join(f"vllm:spec_decode_num_{name}_total {value}\n" for name, value in names.items() if self.accept)


def _all_ids(text: str) -> list[int]:
    """Return the ids of text in which words of the structure are structure."""
    for at, word in enumerate(WORDS):
        before, found, after = text.partition(word)
        if found:
            return [*_all_ids(before), at, *_all_ids(after)]
    return ids_of(text)


PATHS = {
    "vllm": {"/v1/completions", "/v1/chat/completions", "/tokenize"},
    "sglang": {"/generate", "/v1/completions", "/v1/chat/completions", "/tokenize"},
    "llamacpp": {"/completion", "/v1/chat/completions", "/tokenize"},
    "other": {"/v1/chat/completions"},
}


def _handler(fake: FakeTarget) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            listed = {"id": "bytes", "owned_by": fake.engine, "max_model_len": fake.context}
            if self.path == "/metrics" and fake.engine == "vllm":
                self.answer(200, fake.metrics().encode())
                return
            self.answer(200 if self.path in {"/v1/models", "/health"} else 404, {"data": [listed]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, reply = (
                fake.reply(self.path, body) if self.path in PATHS[fake.engine] else (404, {"detail": "Not Found"})
            )
            if status == "drop":
                self.close_connection = True
                return
            self.answer(int(status), reply)

        def answer(self, status: int, reply: dict[str, Any] | bytes) -> None:
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if status in {429, 503}:
                self.send_header("Retry-After", fake.retry_after)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def main() -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--plays", default="vllm")
    parser.add_argument("--accept", type=float, default=2.0)
    options, _ = parser.parse_known_args()
    fake = FakeTarget(options.plays, port=options.port)
    fake.accept = options.accept
    fake.say = lambda prompt: "It is " + "so " * (20 + sum(prompt.encode()) % 40)
    threading.Event().wait()


if __name__ == "__main__":
    main()
