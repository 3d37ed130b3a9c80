"""What the docs tell a reader to type: it parses, it compiles, it runs."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.pages import DOCS, PAGES, ROOT, code_blocks, commands, name_of, vigil_lines
from vigil.verdict import EXIT_CODES, Word

COMMAND_LINES = vigil_lines()
UP = ROOT / "examples" / "up.py"
FAKE = ROOT / "tests" / "fakes" / "server.py"


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return str(taken.getsockname()[1])


@pytest.mark.parametrize(("where", "words"), COMMAND_LINES, ids=[where for where, _ in COMMAND_LINES])
def test_command_in_the_docs_is_one_that_vigil_takes(where: str, words: list[str]) -> None:
    command: Any = commands()[words[0]]
    while getattr(command, "commands", None):  # `vigil flags diff`
        words = words[1:]
        command = command.commands[words[0]]
    known = {flag for one in command.params for flag in one.opts}
    ours = words[1 : words.index("--")] if "--" in words else words[1:]
    assert {word.partition("=")[0] for word in ours if re.match(r"--?[a-z]", word)} - known == set(), where
    command.make_context(words[0], words[1:])  # parses: required values are there, numbers are numbers


def test_make_targets_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    told = {
        name for page in PAGES for name in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert told - targets == set()


def test_page_on_adding_an_engine_works_as_it_is_written() -> None:
    blocks = code_blocks(DOCS / "add-an-engine.md", "python")
    space: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "add-an-engine.md", "exec"), space)  # noqa: S102 - our own page
    assert space["TABLE"].name == "lantern"
    log = code_blocks(DOCS / "add-an-engine.md", "text")[0]
    assert log.strip() == space["LOG"]


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "library.md"], ids=name_of)
def test_python_in_the_docs_compiles(page: Path) -> None:
    blocks = [block for block in code_blocks(page, "python") if "import vigil" in block]
    assert blocks
    for block in blocks:
        compile(block, name_of(page), "exec")


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_example_brings_a_server_up(tmp_path: Path) -> None:
    up = run(tmp_path, str(UP), sys.executable, str(FAKE), "--port", free_port())
    stopped = [
        run(tmp_path, "-m", "vigil", "stop", one["name"]).returncode
        for one in json.loads(run(tmp_path, "-m", "vigil", "ps", "--json").stdout)
    ]
    assert up.stdout.startswith("ready: "), up.stdout + up.stderr
    assert up.returncode == 0
    assert stopped == [0]


def test_example_says_what_to_do_about_a_death(tmp_path: Path) -> None:
    died = run(tmp_path, str(UP), "/nowhere/server")
    assert died.returncode == EXIT_CODES[Word.REFUSED]
    assert "what to do: " in died.stdout


def test_example_follows_a_server_that_somebody_else_started(tmp_path: Path) -> None:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, FAKE, "--port", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, ROOT / "examples/follow.py", f"http://127.0.0.1:{port}"]
    example = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    with server, example:
        try:
            assert example.stdout is not None
            assert any("  ready  " in line for line in example.stdout)
            server.kill()
            assert any("ended" in line for line in example.stdout)
        finally:
            server.kill()
            example.kill()
