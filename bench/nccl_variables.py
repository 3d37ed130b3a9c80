"""Make `preflight/nccl.json`: the variables that each release of NCCL reads, how, and the words that some of them take.

    git clone --bare https://github.com/NVIDIA/nccl nccl.git
    bench/nccl_variables.py nccl.git

Read is the source at the tags of the releases, as text. Names that only plugins read (`ext-*`, `plugins`) are none of NCCL's own.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "packages/vigil/src/vigil/preflight/nccl.json"
# The last of each minor release from 2.18 (2023) on; what each torch brings is one of them, or differs from one after its patch.
TAGS = (
    "v2.18.6-1", "v2.19.4-1", "v2.20.5-1", "v2.21.5-1", "v2.22.3-1", "v2.23.4-1", "v2.24.3-1", "v2.25.1-1", "v2.26.6-1",
    "v2.27.7-1", "v2.28.9-1", "v2.29.7-1", "v2.30.7-1",
)  # fmt: skip
_PARAM = re.compile(r'\bNCCL_PARAM\(\s*\w+\s*,\s*"(\w+)"')
_READ = re.compile(r'\b(?:ncclGetEnv|(?:std::)?getenv)\("(NCCL_\w+)"')
_LEVEL = re.compile(r'ncclGetLevel\([^,]+,\s*(?:NULL|nullptr|"(\w+)")\s*,\s*"(\w+)"')
_DEFINED = re.compile(r"DEFINE_NCCL_PARAM\(\s*\w+\s*,\s*([\w *]+?)\s*,\s*(NCCL_\w+)")
_QUOTED = re.compile(r'"(\w+)"')
Read = Callable[[str], str]


def main(folder: str) -> None:
    """Write the table."""
    texts = [_sources(folder, tag) for tag in TAGS]
    kinds = [_variables(text) for text in texts]
    words = {name: [read(text) for text in texts] for name, read in WORDS.items()}
    told = {
        "releases": [tag[1:].partition("-")[0] for tag in TAGS],
        "variables": {name: _kinds(name, kinds) for name in sorted(set().union(*kinds))},
        "words": {name: _places(found) for name, found in words.items()},
    }
    parts = [f' "releases": {json.dumps(told["releases"])}']
    for part in ("variables", "words"):
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in told[part].items())  # type: ignore[attr-defined]
        parts.append(f' "{part}": {{\n{rows}\n }}')
    TARGET.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")
    print(", ".join(f"{tag}: {len(found)}" for tag, found in zip(TAGS, kinds, strict=True)))


def _sources(folder: str, tag: str) -> str:
    """Return all of the library's source at a tag, in one text."""
    git = ["git", "--git-dir", folder]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", tag, "src"], capture_output=True, check=True, text=True
    ).stdout
    names = [one for one in listed.splitlines() if one.endswith((".cc", ".cpp", ".h", ".hpp"))]
    return "\n".join(
        subprocess.run([*git, "show", f"{tag}:{name}"], capture_output=True, check=True).stdout.decode(
            "utf-8", "replace"
        )
        for name in names
    )


def _variables(text: str) -> dict[str, str]:
    """Return the variables with how each is read: "number" (strtoll), "level", "text", or "other" (a form of its own)."""
    found = dict.fromkeys(_READ.findall(text), "text")
    found.update((f"NCCL_{name}", "number") for name in _PARAM.findall(text))
    for off, level in _LEVEL.findall(text):
        found.update({level: "level", **({off: "number"} if off else {})})
    found.update((name, "text" if "char" in kind else "other") for kind, name in _DEFINED.findall(text))
    return found


def _kinds(name: str, releases: list[dict[str, str]]) -> dict[str, list[int]]:
    there: dict[str, list[int]] = {}
    for at, one in enumerate(releases):
        if name in one:
            there.setdefault(one[name], []).append(at)
    return there


def _places(found: list[list[str]]) -> dict[str, list[int]]:
    """Return each word with the releases that take it."""
    words = dict.fromkeys(word for one in found for word in one)
    return {word: [at for at, one in enumerate(found) if word in one] for word in words}


def _array(name: str) -> Callable[[str], list[str]]:
    """Return a reader of a list of names: `const char* NAME[...] = { "A", "B" };`."""
    pattern = re.compile(rf"\b{name}\[[^\]]*\]\s*=\s*\{{([^}}]*)\}}")

    def read(text: str) -> list[str]:
        match = pattern.search(text)
        return _QUOTED.findall(match.group(1)) if match is not None else []

    return read


def _choices(variable: str, key: str) -> Callable[[str], list[str]]:
    """Return a reader of words that a chain of comparisons, or (from 2.30 on) a table of options tells."""

    def read(text: str) -> list[str]:
        table = re.search(rf"DEFINE_NCCL_PARAM\(\s*\w+\s*,[^,]*,\s*{key}\b(.*?)\);\n", text, re.DOTALL)
        if table is not None:
            return re.findall(r'makeOption\("(\w+)"', table.group(1))
        return list(dict.fromkeys(re.findall(rf'strcasecmp\(\s*{variable}\s*,\s*"(\w+)"', text)))

    return read


def _levels(text: str) -> list[str]:
    """Return the names of distances as far as SYS: what follows is no level."""
    names = _array("topoPathTypeStr")(text)
    return names[: names.index("SYS") + 1]


WORDS: dict[str, Callable[[str], list[str]]] = {
    "NCCL_ALGO": _array("ncclAlgoStr"),
    "NCCL_PROTO": _array("ncclProtoStr"),
    "functions": _array("ncclFuncStr"),
    "levels": _levels,
    "NCCL_DEBUG": _choices("nccl_debug", "NCCL_DEBUG"),
    "NCCL_DEBUG_SUBSYS": _choices("subsys", "NCCL_DEBUG_SUBSYS"),
}

if __name__ == "__main__":
    main(*sys.argv[1:2] or sys.exit(__doc__))
