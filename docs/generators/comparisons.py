"""The real comparisons in the page on measuring, from what bench/comparisons.py kept."""

from pathlib import Path

import msgspec

from generators.markdown import block
from vigil.bench.report import Report, report
from vigil.cli.telling import text_of

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "results" / "comparisons"
TITLES = {
    "llama": "llama-server on the CPU, without and with n-gram drafts",
    "vllm": "vLLM on the CPU, without and with n-gram drafts",
    "h200": "SGLang on an H200: off, n-gram, and EAGLE-3 with a random draft",
    "waves": "SGLang on an H200, all requests in step: off, and EAGLE-3 with a random draft",
}
WORDS = {
    "llama": """One core of two for the server, made prompts. An n-gram table brings many tokens at once where a text
repeats itself, and nothing else: *drafted* says which share of all tokens came so.""",
    "vllm": """One core of two for the engine, made prompts. A small model at temperature 0 soon repeats itself, which is
what an n-gram method lives on: *drafted* says which share of all tokens came from drafts.""",
    "h200": """A model of 7.76B parameters with dummy weights. `eagle3` is pure cost: its draft, of the width of an 8B's,
is random, and nothing of it is accepted. Such a model repeats itself, which an n-gram table knows by heart:
*accept* says how much. A prompt takes 39 ms here (there are no graphs for it), in which all others wait: how the requests fall
together is another in each round, and moves the throughput by up to 1.75 times. Such intervals ask for longer rounds.""",
    "waves": """The same servers, 256 requests at each load, which begin together (`--requests 256`): prompts are read
together, too, and what is left is what a step costs.""",
}


def parts() -> dict[str, dict[str, str]]:
    """Return the part of the page by its name."""
    found = [
        f"### {TITLES[name]}\n\n{WORDS[name]}\n\n{section(name, TITLES[name])}"
        for name in TITLES
        if (FOLDER / f"{name}.json").exists()
    ]
    return {"bench.md": {"comparisons": "\n\n".join(found)}}


def section(name: str, title: str) -> str:
    """Return what a comparison found, as `vigil report` tells it, and its picture."""
    kept = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Report)
    told = text_of(report(kept.meta, kept.rows, kept.servers))
    alt = f"{title}: throughput and speed for one user against concurrency, all arms with their intervals"
    return f"{block(told, 'text')}\n\n![{alt}](pictures/compare-{name}.svg)"
