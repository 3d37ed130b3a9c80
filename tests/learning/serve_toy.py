"""A server with SGLang's /generate over the toy target, on one thread: for rehearsals of tests/gpu/draft.sh.

python tests/learning/serve_toy.py --port N --model-path DIR [--speculative-draft-model-path DIR --speculative-num-steps K]
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import torch
from speculate import as_batch, speculate

from vigil_draft.learn import folder
from vigil_draft.states.target import Target


class Handler(BaseHTTPRequestHandler):
    target: Target
    draft: Any = None
    steps = 3

    def do_GET(self) -> None:
        self.answer({"data": [{"id": self.target.path}], "model_path": self.target.path})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompts, new = asked["input_ids"], asked["sampling_params"]["max_new_tokens"]
        self.answer([self.one(prompt, new) for prompt in prompts])

    def one(self, prompt: list[int], new: int) -> dict[str, Any]:
        if self.draft is not None:
            said, steps = speculate(self.target, self.draft, prompt, new, self.steps)
            return {
                "output_ids": said,
                "meta_info": {
                    "completion_tokens": len(said),
                    "spec_verify_ct": steps,
                    "finish_reason": {"type": "length"},
                },
            }
        said = []
        for _ in range(new):
            _, last = self.target.states(as_batch([*prompt, *said]))
            said.append(int(self.target.greedy(last[-1:])))
        return {"output_ids": said, "meta_info": {"completion_tokens": len(said), "finish_reason": {"type": "length"}}}

    def answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--model-path")
    parser.add_argument("--speculative-draft-model-path")
    parser.add_argument("--speculative-num-steps", type=int, default=3)
    asked, _ = parser.parse_known_args()
    torch.set_num_threads(1)
    Handler.target = Target(asked.model_path, torch.device("cpu"), torch.float32)
    if asked.speculative_draft_model_path:
        Handler.draft, _ = folder.read(Path(asked.speculative_draft_model_path), Handler.target)
        Handler.steps = asked.speculative_num_steps
    HTTPServer.request_queue_size = 64
    HTTPServer(("127.0.0.1", asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
