"""Prompts to answers of the target, through SGLang's native /generate with token ids in and out.

`answers.py write --prompts FILE... --model DIR --url URL... --out DIR [--seconds N] [--most N]` writes DIR/train and DIR/heldout;
`answers.py live --data DIR/heldout --url URL --out FILE.json [--most N]` measures the acceptance length of a server with a draft;
`answers.py heldout --prompts FILE... --model DIR --out FILE.jsonl` writes the prompts that `write` trains on none of.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import random
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vigil_draft.data import prepared

A_REQUEST = 16
PATIENCE_S = 300
HELD_OUT = 20
"""One prompt in twenty, by its hash, is not trained on."""


def prompts_of(files: list[Path]) -> list[list[dict[str, str]]]:
    """Return conversations that end with the user, each once."""
    found = {}
    for path in files:
        opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                given = json.loads(line)
                messages = given.get("messages") or [{"role": "user", "content": given["prompt"]}]
                while messages and messages[-1]["role"] != "user":
                    messages = messages[:-1]
                if messages:
                    found[json.dumps(messages)] = messages
    return list(found.values())


def tokens_of(conversations: list[Any], model: str) -> list[list[int]]:
    """Return token ids, by the target's template."""
    from transformers import AutoTokenizer  # noqa: PLC0415 - seconds

    tokenizer = AutoTokenizer.from_pretrained(model)
    return [
        list(tokenizer.apply_chat_template(each, add_generation_prompt=True)["input_ids"]) for each in conversations
    ]


def ask(url: str, prompts: list[list[int]], new: int) -> list[dict[str, Any]]:
    """Have some prompts answered greedily, to their natural end."""
    body = {"input_ids": prompts, "sampling_params": {"temperature": 0, "max_new_tokens": new}}
    request = urllib.request.Request(f"{url}/generate", json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:  # noqa: S310 - the script's own server
        found: list[dict[str, Any]] = json.load(reply)
    return found


def ask_all(
    urls: list[str], prompts: list[list[int]], new: int, at_once: int, seconds: float
) -> list[tuple[list[int], dict[str, Any]]]:
    """Ask several servers, each with so many requests open, until all is answered or the time is up."""
    ends, began = time.monotonic() + seconds, time.monotonic()
    pieces = [prompts[n : n + A_REQUEST] for n in range(0, len(prompts), A_REQUEST)]

    def one(numbered: tuple[int, list[list[int]]]) -> list[tuple[list[int], dict[str, Any]]]:
        number, piece = numbered
        if time.monotonic() > ends:
            return []
        try:
            return list(zip(piece, ask(urls[number % len(urls)], piece, new), strict=True))
        except OSError as error:
            print(f"a request failed: {error}", file=sys.stderr)
            return []

    with ThreadPoolExecutor(max(1, at_once * len(urls) // A_REQUEST)) as pool:
        found = [each for part in pool.map(one, enumerate(pieces)) for each in part]
    tokens = sum(len(reply["output_ids"]) for _, reply in found)
    took = time.monotonic() - began
    print(f"{len(found)} of {len(prompts)} prompts, {tokens} tokens in {took:.0f} s: {tokens / took:.0f} a second")
    return found


def is_held_out(prompt: list[int]) -> bool:
    """Return whether a prompt is one of those that are not trained on."""
    return int.from_bytes(hashlib.sha256(repr(prompt).encode()).digest()[:4], "big") % HELD_OUT == 0


def heldout(asked: argparse.Namespace) -> None:
    """Write the held-out prompts as JSONL, in an order of chance."""
    conversations = prompts_of(asked.prompts)
    pairs = zip(conversations, tokens_of(conversations, asked.model), strict=True)
    kept = [each for each, prompt in pairs if len(prompt) + asked.new <= asked.length and is_held_out(prompt)]
    random.Random(0).shuffle(kept)
    asked.out.write_text("".join(json.dumps({"messages": each}) + "\n" for each in kept[: asked.most]))
    print(f"{len(kept)} of {len(conversations)} prompts are held out")


def write(asked: argparse.Namespace) -> None:
    """Write train and held-out data."""
    prompts = tokens_of(prompts_of(asked.prompts), asked.model) if not asked.toy else toy_prompts(asked.toy)
    prompts = [each for each in prompts if len(each) + asked.new <= asked.length]
    random.Random(0).shuffle(prompts)
    sides: dict[str, list[Any]] = {"train": [], "heldout": []}
    for prompt, reply in ask_all(asked.url, prompts[: asked.most], asked.new, asked.at_once, asked.seconds):
        said = reply["output_ids"]
        if said:
            side = "heldout" if is_held_out(prompt) else "train"
            sides[side].append(([*prompt, *said], [*[False] * len(prompt), *[True] * len(said)]))
    for side, pairs in sides.items():
        folder = asked.out / side
        folder.mkdir(parents=True, exist_ok=True)
        entry = prepared.write_shard(folder, 0, prepared.documents(pairs))
        prepared.write_manifest(
            folder,
            [entry],
            {"target": asked.model, "side": side, "temperature": 0, "max_new_tokens": asked.new, "command": sys.argv},
        )
        print(side, json.dumps(entry))


def toy_prompts(count: int) -> list[list[int]]:
    """Return prompts for the toy target."""
    chance = random.Random(7)
    return [[chance.randrange(3, 256) for _ in range(chance.randrange(3, 12))] for _ in range(count)]


def live(asked: argparse.Namespace) -> None:
    """Measure the acceptance length of a server with a draft on held-out prompts; count the answers that are as without."""
    docs = prepared.read(asked.data)
    given = {}
    for begin, end in zip(docs.starts, docs.starts[1:], strict=False):
        tokens, mask = list(docs.token_ids[begin:end]), docs.loss_mask[begin:end]
        first = mask.index(1)
        given[tuple(tokens[:first])] = tokens[first:]
    prompts = [list(each) for each in given][: asked.most]
    began = time.monotonic()
    replies = ask_all([asked.url], prompts, asked.new, asked.at_once, asked.seconds)
    took = time.monotonic() - began
    rows = [
        (reply["meta_info"]["completion_tokens"], reply["meta_info"].get("spec_verify_ct", 0)) for _, reply in replies
    ]
    chance = random.Random(0)
    ratio = lambda some: sum(max(0, a - 1) for a, _ in some) / max(1, sum(b for _, b in some))  # noqa: E731
    spread = sorted(ratio(chance.choices(rows, k=len(rows))) for _ in range(1000))
    same = sum(reply["output_ids"] == given[tuple(prompt)][: len(reply["output_ids"])] for prompt, reply in replies)
    result = {
        "prompts": len(rows),
        "tokens": sum(a for a, _ in rows),
        "verify_steps": sum(b for _, b in rows),
        "acceptance_length": round(ratio(rows), 4),
        "low": round(spread[24], 4),
        "high": round(spread[974], 4),
        "tokens_per_verify_step": round(sum(a for a, _ in rows) / max(1, sum(b for _, b in rows)), 4),
        "same_answers": same,
        "tokens_per_s": round(sum(a for a, _ in rows) / took),
        "first_meta_info": replies[0][1]["meta_info"] if replies else None,
    }
    asked.out.write_text(json.dumps(result, indent=1))
    print(json.dumps(result))


def main() -> None:
    """Do one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "live", "heldout"])
    parser.add_argument("--prompts", type=Path, nargs="*", default=[])
    parser.add_argument("--model")
    parser.add_argument("--url", nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--most", type=int)
    parser.add_argument("--new", type=int, default=512)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--toy", type=int)
    asked = parser.parse_args()
    if asked.what == "live":
        asked.url = asked.url[0]
    {"live": live, "write": write, "heldout": heldout}[asked.what](asked)


if __name__ == "__main__":
    main()
