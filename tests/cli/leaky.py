"""A server that tells its secrets to everybody: in its log, its title, its answers, and in its last words.

Usage: leaky.py --port N --api-key KEY [--die]; HF_TOKEN is told, too.
"""

import os
import pathlib
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fakes"))

from proctitle import set_title


def words_of(key: str, token: str) -> list[str]:
    """Return the ways in which engines were seen to print a key."""
    return [
        f"server_args=ServerArgs(model_path='m', api_key='{key}', port=1)",
        f"args: Namespace(api_key=['{key}'], model='m')",
        f"launched: serve m --api-key {key} --port 1",
        f"launched: serve m --api-key={key}",
        f'{{"api_key": "{key}", "hf_token": "{token}"}}',
        f"HF_TOKEN={token}",
        f"request headers: Authorization: Bearer {key}",
        f"using token {token} for the hub",
        f"the bare word {key} in the middle",
        "url=https://user:planted-url-password@hub.example/m",
    ]


class Echo(BaseHTTPRequestHandler):
    """Fails with the caller's own header in the body."""

    def do_GET(self) -> None:
        """Answer 500 and tell the key; only the list of models is well."""
        if self.path == "/v1/models":
            self.reply(200, b'{"data": [{"id": "m"}]}')
            return
        body = f"cannot serve {self.headers.get('Authorization')} with {os.environ.get('HF_TOKEN')}".encode()
        self.reply(500, body)

    do_POST = do_GET  # noqa: N815 - http.server's names

    def reply(self, status: int, body: bytes) -> None:
        """Send one answer."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep http.server's own log out."""


def main() -> None:
    """Tell everything, then die of it or serve."""
    argv = sys.argv[1:]
    given = next(word for word in argv if word.startswith("--api-key"))
    key = given.partition("=")[2] or argv[argv.index(given) + 1]
    for line in words_of(key, os.environ.get("HF_TOKEN", "")):
        print(line, flush=True)
    if "--title" in argv:
        set_title(f"leaky {key}")
    if "--die" in argv:
        raise RuntimeError(f"cannot start with api_key='{key}' and {os.environ.get('HF_TOKEN')}")
    HTTPServer(("127.0.0.1", int(argv[argv.index("--port") + 1])), Echo).serve_forever()


if __name__ == "__main__":
    main()
