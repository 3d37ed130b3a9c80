"""Another program on our port: a listener that is not the server. Standard library only.

`--answer`: `404` (a web server), `silent` (accepts, says nothing), `openai` (a whole other inference server with another model).
"""

import argparse
import pathlib
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from options import seconds


class NotFound(BaseHTTPRequestHandler):
    """Answers 404 to everything, as `python -m http.server` does."""

    def do_GET(self) -> None:
        """Answer 404."""
        self.send_error(404, "File not found")

    def do_POST(self) -> None:
        """Answer 404."""
        self.do_GET()


def main() -> None:
    """Take the port and keep it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--answer", choices=("404", "silent", "openai"), default="404")
    parser.add_argument("--after", type=seconds, default=0.0, help="take the port only after this time")
    options = parser.parse_args()
    time.sleep(options.after)
    if options.answer == "openai":
        import server  # noqa: PLC0415 - the other answers start quicker without it

        server.main(
            [
                "--style",
                "vllm",
                "--port",
                str(options.port),
                "--load",
                "0s",
                "--warmup",
                "0s",
                "--model",
                "squatters-model",
            ]
        )
    elif options.answer == "404":
        HTTPServer(("127.0.0.1", options.port), NotFound).serve_forever()
    else:
        with socket.create_server(("127.0.0.1", options.port)) as listener:
            held = []
            while True:
                held.append(listener.accept())


if __name__ == "__main__":
    main()
