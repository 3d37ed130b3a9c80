"""Measure what an observer costs beside a ready server: share of one core, over a minute.

    PYTHONPATH=packages/vigil/src python bench/observer_idle.py [SECONDS]

The server is a stand-in with eight workers that logs two lines a second and answers health, models, metrics and completions.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = """
import http.server, json, os, socket, subprocess, sys, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def answer(self):
        body = {"/health": b"", "/metrics": b"x{a=\\"b\\"} 1\\n" * 4000 + b"run 1\\nwait 0\\ntok_total 5\\n"}.get(self.path)
        if body is None: body = json.dumps({"data": [{"id": "m"}], "usage": {"completion_tokens": 1}}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    do_GET = answer
    def do_POST(self): self.rfile.read(int(self.headers["content-length"])); self.answer()
work = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(9999)"]) for _ in range(8)]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[1], "w").write(str(server.server_address[1]))
def log():
    n = 0
    while True:
        n += 1
        print(f"[2026-11-30 12:00:00] Decode batch, #running-req: 1, #token: {n}, gen throughput (token/s): 96.1", flush=True)
        time.sleep(float(sys.argv[2]))
threading.Thread(target=log, daemon=True).start()
server.serve_forever()
"""


def busy_ns(pid: int) -> int:
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def commands(pid: int, log: Path, port: int) -> list[dict[str, object]]:
    paces = {"log_s": 0.25, "tree_s": 1.0, "sample_s": 5.0}
    metrics = {"running": ["run"], "waiting": ["wait"], "tokens_total": ["tok_total"]}
    return [
        {
            "do": "watch",
            "pid": pid,
            "log": str(log),
            "port": port,
            "host": "127.0.0.1",
            "paces": paces,
            "workers": ["x::"],
        },
        {"do": "keep", "texts": [f"a sign of trouble, number {number}" for number in range(190)]},
        {"do": "probe", "probe": "health", "path": "/health", "every_s": 2.0, "timeout_s": 5, "repeat_s": 10},
        {"do": "metrics", "path": "/metrics", "every_s": 5, "timeout_s": 5, **metrics},
    ]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        log, port_file = Path(folder, "log"), Path(folder, "port")
        with log.open("wb") as out:
            server = subprocess.Popen([sys.executable, "-c", SERVER, str(port_file), "0.5"], stdout=out)
        while not port_file.exists() or not port_file.read_text():
            time.sleep(0.05)
        program = [sys.executable, "-c", "from vigil.observer.stdio import main; main()"]
        observer = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert observer.stdin  # noqa: S101 - for the type checker
        for command in commands(server.pid, log, int(port_file.read_text())):
            observer.stdin.write(json.dumps(command).encode() + b"\n")
        observer.stdin.flush()
        time.sleep(35.0)  # the server is no longer young: names settle
        begun, before = time.monotonic(), busy_ns(observer.pid)
        time.sleep(seconds)
        share = (busy_ns(observer.pid) - before) / 1e9 / (time.monotonic() - begun)
        print(f"{share:.4%} of a core")
        observer.stdin.close()
        observer.wait()
        for child in subprocess.run(
            ["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=False
        ).stdout.split():
            subprocess.run(["kill", child], check=False)
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
