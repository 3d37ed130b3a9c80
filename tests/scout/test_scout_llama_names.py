"""What an installed llama.cpp knows, by the texts in its library: nothing is run."""

from pathlib import Path
from typing import Any

import pytest

from preflight.lists import gguf_of
from scout.folders_of import asked

ELF = b"\x7fELF" + bytes(60)
CONTROLS = b"gptneox\0starcoder2\0command-r\0"


def build_of(tmp_path: Path, architecture: str = "gemma4", **about: Any) -> Any:
    """Return what was seen of the build for a file of an architecture; llama-server lies in {tmp_path}/bin."""
    (tmp_path / "m.gguf").write_bytes(gguf_of({"general.architecture": architecture}))
    words = [str(tmp_path / "bin" / "llama-server"), "-m", "m.gguf"]
    asking = {"what": "model", "given": "m.gguf"}
    return asked(asking, cwd=tmp_path, engine="llamacpp", words=words, **about)[0]["build"]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "llama-server"
    path.parent.mkdir()
    path.write_bytes(ELF)
    path.chmod(0o755)
    return path


def test_a_name_in_the_library_beside_the_program_is_known(server: Path, tmp_path: Path) -> None:
    (server.parent / "libllama.so").write_bytes(ELF + CONTROLS + b"gemma3\0gemma4\0")
    assert build_of(tmp_path) == {"known": ["gemma4"]}
    assert build_of(tmp_path, "gemma5") == {"known": []}
    assert build_of(tmp_path, "emma4") == {"known": ["emma4"]}  # it may be the end of a longer one: no refusal
    assert build_of(tmp_path, "gemma") == {"known": []}


def test_a_library_that_changed_is_read_again(server: Path, tmp_path: Path) -> None:
    (server.parent / "libllama.so").write_bytes(ELF + CONTROLS)
    assert build_of(tmp_path) == {"known": []}
    (server.parent / "libllama.so").write_bytes(ELF + CONTROLS + b"gemma4\0")
    assert build_of(tmp_path) == {"known": ["gemma4"]}


def test_any_library_that_may_be_loaded_counts(server: Path, tmp_path: Path) -> None:
    (server.parent / "libllama.so").write_bytes(ELF + CONTROLS)
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "libllama.so").write_bytes(ELF + CONTROLS + b"gemma4\0")
    assert build_of(tmp_path, env={"LD_LIBRARY_PATH": str(tmp_path / "newer")}) == {"known": ["gemma4"]}


def test_a_program_that_holds_all_itself_is_read(server: Path, tmp_path: Path) -> None:
    server.write_bytes(ELF + bytes(1 << 20) + CONTROLS + b"gemma4\0")
    assert build_of(tmp_path) == {"known": ["gemma4"]}


def test_nothing_is_said_where_the_names_lie_elsewhere(server: Path, tmp_path: Path) -> None:
    assert build_of(tmp_path) is None  # no names in it
    (server.parent / "libllama.so").write_bytes(ELF + CONTROLS)
    server.write_text("#!/bin/sh\nexec /opt/llama/bin/llama-server\n")
    assert build_of(tmp_path) is None  # a script


def test_a_library_that_is_too_large_leaves_it_open(server: Path, tmp_path: Path) -> None:
    library = server.parent / "libllama.so"
    library.write_bytes(ELF + CONTROLS)
    with library.open("r+b") as file:
        file.truncate(1 << 40)
    assert build_of(tmp_path) is None
