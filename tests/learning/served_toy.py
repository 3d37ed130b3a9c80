"""A server of the toy target that gives hidden states as vLLM or SGLang do, right or with a fault that is told."""

from __future__ import annotations

import fcntl
import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

CONTEXT, LAYERS = 512, 7


class Toy:
    """The toy target in fp32: for token ids, the states at all boundaries (7: before the final norm), and the next token."""

    def __init__(self, folder: Path) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._one = threading.Lock()
        self._kept: dict[int, torch.Tensor] = {}
        for number, place in enumerate([*self.model.model.layers, self.model.model.norm]):
            place.register_forward_pre_hook(self._hook(number), with_kwargs=True)

    def _hook(self, number: int) -> Any:
        def keep(_module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            self._kept[number] = (given[0] if given else named["hidden_states"])[0]

        return keep

    def of(self, ids: list[int]) -> tuple[torch.Tensor, int]:
        with self._one, torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0, -1]
            return torch.stack([self._kept[k] for k in range(LAYERS + 1)], dim=1), int(logits.argmax())

    def normed(self, states: torch.Tensor) -> torch.Tensor:
        with self._one, torch.no_grad():  # the norm's hook keeps what it is given, here too
            return self.model.model.norm(states)


class Server:
    """Serves in a thread while it is entered. `fault`: what it does wrong; `hold`: the request that waits for ever."""

    def __init__(  # noqa: PLR0913, PLR0917 - a stand-in, with its knobs
        self, toy: Toy, engine: str, handed: Path, fault: str = "", ids: tuple[int, ...] = (2, 3, 4, 7), hold: int = -1
    ) -> None:
        self.toy, self.engine, self.handed, self.fault, self.ids, self.hold = toy, engine, handed, fault, ids, hold
        self.asked = 0
        self.held = threading.Event()
        self.seen: set[tuple[int, ...]] = set()
        self._requests, self._files = itertools.count(), itertools.count()
        self._over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.say(outer.page(self.path))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                number = next(outer._requests)
                outer.asked = number + 1
                if number == outer.hold:
                    outer.held.set()
                    outer._over.wait()
                if outer.fault == "dies" and number > 20:
                    self.close_connection = True
                    return
                if outer.fault == "broken" and number > 20:
                    self.say({"error": {"message": "it broke"}}, 500)
                    return
                told = outer.answer(self.path, body)
                self.say(told, 400 if "error" in told else 200)

            def say(self, told: dict[str, Any] | None, status: int = 200) -> None:
                content = json.dumps(told or {}).replace("NaN", "null").encode()  # as orjson does
                self.send_response(status if told is not None else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def page(self, path: str) -> dict[str, Any] | None:
        if path == "/v1/models":
            context = 16 if self.fault == "context" else CONTEXT
            return {"data": [{"id": "toy", "owned_by": self.engine, "max_model_len": context}]}
        if path == "/version" and self.engine == "vllm":
            return {"version": "0.32.0"}
        if path == "/server_info" and self.engine == "sglang":
            flag = {"enable_return_aux_hidden_states": self.fault != "no flag"} if self.fault != "old" else {}
            chunk = 16 if self.fault == "chunks" else -1
            layers = {"return_aux_hidden_state_layer_ids": [each - 1 for each in self.ids]}
            return {"version": "0.5.23", "chunked_prefill_size": chunk, "api_key": "hidden", **flag, **layers}
        return None

    def states(self, ids: list[int]) -> tuple[torch.Tensor, int]:
        """Return the states that it gives, with its fault."""
        whole, following = self.toy.of(ids)
        picked = [whole[:, each + (self.fault == "layer" and each < LAYERS)] for each in self.ids]
        if self.fault == "normed":
            picked[-1] = self.toy.normed(picked[-1])
        states = torch.stack(picked, dim=1)
        if self.fault == "shifted":
            states = states.roll(1, 0)
        if self.fault == "NaN":
            states = states.clone()
            states[3, 1, 5] = float("nan")
        return states, following

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "/generate" and self.engine == "sglang":
            return self._generated(body)
        if path == "/v1/completions" and self.engine == "vllm":
            return self._completed(body)
        return {"error": {"message": f"no {path}"}}

    def _generated(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = body["input_ids"]
        states, following = self.states(ids)
        cached = 0
        key = tuple(ids) if self.fault == "cached" else (*ids, body["extra_key"])
        if key in self.seen:
            cached = len(ids) - 1
        self.seen.add(key)
        rows = states.flatten(1).tolist()[cached:]
        told = {"prompt_tokens": len(ids) - (self.fault == "cuts"), "cached_tokens": cached, "hidden_states": [rows]}
        return {"text": "", "output_ids": [following], "meta_info": told}

    def _completed(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = body["prompt"]
        states, following = self.states(ids)
        if self.fault == "cached" and tuple(ids) in self.seen:
            states = torch.cat([torch.zeros_like(states[:-1]), states[-1:]])
        self.seen.add(tuple(ids))
        path = self.handed / f"cmpl-{next(self._files)}.safetensors"
        if self.fault != "nothing written":
            self._write(path, states.to(torch.bfloat16).contiguous(), ids)
        told = {"path": "/etc/passwd", "elsewhere": str(self.handed.parent / "elsewhere.safetensors")}.get(
            self.fault, str(path)
        )
        return {
            "choices": [{"token_ids": [following], "prompt_token_ids": ids}],
            "usage": {"prompt_tokens": len(ids) - (self.fault == "cuts")},
            "kv_transfer_params": None if self.fault == "no flag" else {"hidden_states_path": told},
        }

    def _write(self, path: Path, states: torch.Tensor, ids: list[int]) -> None:
        """Hold the lock from before the answer until the file is whole, which is after it, as vLLM does."""
        lock = path.with_name(path.name + ".lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = torch.tensor(ids[:-1] if self.fault == "other tokens" else ids)

        def write() -> None:
            path.write_bytes(b"half")
            save_file({"hidden_states": states, "token_ids": tokens}, path)
            lock.close()

        threading.Timer(0.01, write).start()
