"""Remake docs/pictures/run.svg from a real run: a llama-server brought up, stopped, and started with a wrong flag.

Usage: .venv/bin/python docs/picture.py. Needs tmux, and the server that `make demo` installs. The run happens in a terminal of
its own; what stood on its screen at the end is the picture.
"""
# ruff: noqa: INP001 - a script

import os
import shlex
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "run.svg"
COLUMNS, ROWS = 120, 40
PORT = 8080
SERVER = "llama-server -m smollm2.gguf --alias smollm2"
COMMANDS = (
    f"vigil up --name s1 -- {SERVER} --port {PORT}",
    "vigil ps",
    "vigil stop s1",
    f"vigil up --name s2 -- {SERVER} --port {PORT} --num-speculative-tokens 16",
    "echo exit code $?",
)


def tmux(*words: str) -> str:
    """Run a tmux command on a server of our own; return what it printed."""
    command = ["tmux", "-L", f"vigil-picture-{os.getpid()}", "-f", "/dev/null", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def wait_for_prompt(number: int) -> None:
    """Wait until the shell says that it shows its prompt again, and then until the prompt is seen."""
    tmux("wait-for", f"prompt-{number}")
    deadline = time.monotonic() + 10
    while tmux("capture-pane", "-p", "-t", "picture").rstrip().rpartition("\n")[2] != "$":
        if time.monotonic() > deadline:
            raise TimeoutError("the shell shows no prompt")


def screen_of(folder: Path) -> str:
    """Type the commands into a terminal in `folder`; return its screen, colours as escapes."""
    path = f"{ROOT}/.venv/bin:{ROOT}/.engines/llama/bin:{os.environ['PATH']}"
    variables = {"PATH": path, "XDG_STATE_HOME": str(folder / "state"), "PS1": r"\[\e[1;32m\]$\[\e[0m\] "}
    variables["PROMPT_COMMAND"] = "tmux wait-for -S prompt-$((prompts += 1))"
    shell = ["env", *(f"{name}={value}" for name, value in variables.items()), "bash", "--norc", "--noprofile"]
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    tmux("new-session", "-d", "-s", "picture", *size, "-c", str(folder), shlex.join(shell))
    try:
        wait_for_prompt(1)
        for number, command in enumerate(COMMANDS, 2):
            tmux("send-keys", "-t", "picture", "-l", command)
            tmux("send-keys", "-t", "picture", "Enter")
            wait_for_prompt(number)
        return tmux("capture-pane", "-e", "-p", "-t", "picture")
    finally:
        tmux("kill-server")


def svg_of(screen: str) -> str:
    """Return the screen as an SVG that loads nothing from elsewhere."""
    lines = screen.rstrip().splitlines()[:-1]  # the last one is an empty prompt
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    start, end = CONSOLE_SVG_FORMAT.index("@font-face"), CONSOLE_SVG_FORMAT.index(".{unique_id}-matrix")
    local = CONSOLE_SVG_FORMAT[:start] + CONSOLE_SVG_FORMAT[end:]
    local = local.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, Consolas, monospace")
    return console.export_svg(title="vigil", theme=MONOKAI, code_format=local, unique_id="run")


def main() -> None:
    """Make the picture."""
    model = subprocess.run(["sh", ROOT / "tests/llama/install.sh"], check=True, capture_output=True, text=True).stdout
    with socket.create_server(("127.0.0.1", PORT)):
        pass  # a taken port would make another picture
    with tempfile.TemporaryDirectory(prefix="vigil-") as name:
        folder = Path(name)
        (folder / "smollm2.gguf").symlink_to(model.strip())
        screen = screen_of(folder)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(svg_of(screen) + "\n", "utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
