"""Ask a server for one token again and again, 2 ms after each failure, until one comes; print when it was asked for and had.

Usage: bench_prober.py PORT PATH LIMIT_S. A program of its own: in vigil's process it would take turns with what is measured.
"""

import http.client
import json
import sys
import time

PAUSE_S = 0.002
BODY = json.dumps(
    {"model": "m", "prompt": "The capital of France is", "max_tokens": 1, "n_predict": 1, "temperature": 0}
)


def has_token(port: int, path: str) -> bool:
    """Say whether a token came back."""
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        wire.request("POST", path, BODY, {"Content-Type": "application/json"})
        reply = wire.getresponse()
        reply.read()
    except OSError:
        return False
    finally:
        wire.close()
    return reply.status == 200


def main() -> None:
    """Probe until a token comes, or the time is over."""
    port, path, limit_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    deadline_s = time.time() + limit_s
    while time.time() < deadline_s:
        asked_s = time.time()
        if has_token(port, path):
            print(f"{asked_s:.6f} {time.time():.6f}", flush=True)
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
