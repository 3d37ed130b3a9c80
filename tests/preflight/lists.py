"""The lists of broken and of good commands: TOML files beside this one, read here, with the folders that they speak of made.

A case:

    [[case]]
    name = "the flag of the first story"
    source = "STORIES.md, 1"                      # a public report, an engine's source, a reference
    command = "python -m sglang.launch_server --model-path {here}/m --num-speculative-tokens 16"
    version = "0.5.10"                            # the engine's; its table answers, since no engine is looked for
    code = "FLAG001"                              # "" or missing: a good command
    corrected = "--speculative-num-draft-tokens 16"   # stands in the command as it would be right; "" where nothing can be pasted
    look = true                                   # look for its folders though it makes none
    [case.env]
    HF_HUB_OFFLINE = "1"
    [case.files]                                  # text of a file, below {here}
    "m/config.json" = '{"architectures": ["LlamaForCausalLM"]}'
    [case.tensors]                                # safetensors files: name -> "DTYPE AxB", header only, then zeros (sparse)
    "m/model.safetensors" = { "lm_head.weight" = "BF16 32000x64" }
    [case.gguf]                                   # GGUF files: their metadata (texts, numbers, lists of texts), no tensors
    "m.gguf" = { "general.architecture" = "llama", "llama.block_count" = 32 }
    [case.host]                                   # what the scout would have seen of the host, over a plain one
    gpus = 1
"""

import json
import shlex
import struct
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "I64": 8, "BOOL": 1, "U8": 1, "I32": 4}


class Case(NamedTuple):
    """One command of the lists."""

    name: str
    source: str
    command: str
    version: str | None
    code: str
    corrected: str
    env: dict[str, str]
    files: dict[str, str]
    tensors: dict[str, dict[str, str]]
    gguf: dict[str, dict[str, Any]]
    host: dict[str, Any]
    look: bool

    def words(self, here: Path) -> tuple[str, ...]:
        """Return the command's words, with `{here}` filled in."""
        return tuple(shlex.split(self.command.replace("{here}", str(here))))

    def variables(self, here: Path) -> dict[str, str]:
        """Return its environment, with `{here}` filled in."""
        return {name: value.replace("{here}", str(here)) for name, value in self.env.items()}

    def make(self, here: Path) -> None:
        """Make the files that the command speaks of, below `here`."""
        for name, text in self.files.items():
            path = here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{here}", str(here)), "utf-8")
        for name, tensors in self.tensors.items():
            path = here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_safetensors(path, tensors)
        for name, metadata in self.gguf.items():
            path = here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gguf_of(metadata))


def cases() -> list[Case]:
    """Return all cases of all files."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for row in tomllib.loads(path.read_text("utf-8")).get("case", []):
            fields = {
                "version": None,
                "code": "",
                "corrected": "",
                "env": {},
                "files": {},
                "tensors": {},
                "gguf": {},
                "host": {},
                "look": False,
            }
            found.append(Case(**{**fields, **row}))
    return found


def write_safetensors(path: Path, tensors: dict[str, str]) -> None:
    """Write a file whose header is real and whose data are zeros that take no room on the disk."""
    header: dict[str, Any] = {}
    end = 0
    for name, told in tensors.items():
        dtype, _, shape = told.partition(" ")
        sizes = [int(one) for one in shape.split("x") if one]
        count = 1
        for size in sizes:
            count *= size
        begin, end = end, end + count * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": sizes, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def gguf_of(metadata: dict[str, Any]) -> bytes:
    """Return a GGUF file of version 3 with this metadata and no tensors: numbers as uint32, truths as such, lists of texts."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata))
    return head + b"".join(_text(name) + _value(value) for name, value in metadata.items())


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    return struct.pack("<I", 8) + _text(value)
