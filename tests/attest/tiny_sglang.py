"""An environment with a tiny SGLang in it: a server with one rank, installed as from a wheel, so that an edit shows."""

import base64
import hashlib
import os
import sys
from pathlib import Path

FILES = {
    "sglang/__init__.py": "",
    "sglang/srt/__init__.py": "",
    "sglang/srt/server_args.py": """
import dataclasses

_global_server_args = None


@dataclasses.dataclass
class ServerArgs:
    port: int = 30000
    model_path: str = ""
    max_running_requests: int = 48
    api_key: str = ""
""",
    "sglang/srt/worker.py": "class Worker:\n    pass\n",
    "sglang/srt/unused.py": "class Unused:\n    pass\n",
    "sglang/srt/rank.py": """
import time

from sglang.srt.worker import Worker


def run(pipe):
    worker = Worker()
    pipe.send("up")
    time.sleep(600)
""",
    "sglang/launch_server.py": """
import argparse
import json
import multiprocessing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sglang.srt import rank, server_args


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        told = {"/v1/models": {"data": [{"id": "m"}]}, "/server_info": {"port": 1, "max_running_requests": 48}}
        self.reply(told.get(self.path))

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        meta = {"completion_tokens": 64, "spec_verify_ct": 20} if self.path == "/generate" else {}
        self.reply({"meta_info": meta, "usage": {"completion_tokens": 1}, "choices": []})

    def reply(self, value):
        data = json.dumps(value or {}).encode()
        self.send_response(404 if value is None else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--model-path", default="")
    parser.add_argument("--max-running-requests", type=int, default=256)
    parser.add_argument("--api-key", default="")
    asked = parser.parse_args()
    args = server_args.ServerArgs(**vars(asked))
    args.max_running_requests = min(48, args.max_running_requests)  # without a word
    server_args._global_server_args = args
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    context.Process(target=rank.run, args=(there,), daemon=True).start()
    here.recv()
    ThreadingHTTPServer(("127.0.0.1", asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
""",
}


def make_environment(folder: Path) -> tuple[Path, Path]:
    """Make the environment; return its interpreter and the folder of its packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "env" / "lib" / version / "site-packages"
    info = site / "sglang-0.5.9.dist-info"
    info.mkdir(parents=True)
    real = Path(os.path.realpath(sys.executable))
    python = folder / "env" / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(real)
    (folder / "env" / "pyvenv.cfg").write_text(f"home = {real.parent}\nversion = 3.11.0\n")
    for name, text in FILES.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.9\n")
    (info / "RECORD").write_text("".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in FILES.items()))
    return python, site


def digest(text: str) -> str:
    """Return a text's hash as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
