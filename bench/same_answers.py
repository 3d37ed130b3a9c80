"""Ask two or more servers the same prompts greedily, and say where their answers part, and whether that was a near-tie.

.venv/bin/python bench/same_answers.py off=http://127.0.0.1:31001 eagle3=http://127.0.0.1:31003 --prompts FILE.jsonl

The first server is what the others are held to. Speculation keeps greedy answers but for near-ties: in bf16 the same
logits come out a step apart when a batch has another shape, and where two words lie within such a step the other one
is taken; from there on the answers differ. So only the first difference of an answer counts: how far the first
server held the two words apart there, in nats, by its own log-probabilities. Logits of bf16 between 16 and 32 lie 0.125
apart, so two that are each off by one step lie up to 0.25 apart: `--tie`. Any OpenAI-compatible server that returns
`top_logprobs` will do (SGLang, vLLM, llama-server). Standard library only.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PATIENCE_S = 300
TOP = 5
TIE_NATS = 0.25


def asked(url: str, body: dict[str, Any] | None = None) -> Any:
    """Return a reply's JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - the user's own servers
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:  # noqa: S310
        return json.load(reply)


def answers(url: str, prompts: list[Any], new: int, at_once: int) -> list[list[dict[str, Any]]]:
    """Return for each prompt its answer: a list of `{token, logprob, top_logprobs}`."""
    model = asked(f"{url}/v1/models")["data"][0]["id"]

    def one(messages: Any) -> list[dict[str, Any]]:
        body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": new}
        reply = asked(f"{url}/v1/chat/completions", {**body, "logprobs": True, "top_logprobs": TOP})
        found: list[dict[str, Any]] = reply["choices"][0]["logprobs"]["content"]
        return found

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, prompts))


def parting(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> tuple[int, float | None] | None:
    """Return the first token at which two answers differ, and how many nats the first one's server held them apart.

    None: the answers are the same. No nats: the other's word is not among the likeliest, or only one answer ends there.
    """
    for place, (here, there) in enumerate(zip(one, other, strict=False)):
        if here["token"] != there["token"]:
            known = {each["token"]: each["logprob"] for each in here["top_logprobs"]}
            apart = abs(here["logprob"] - known[there["token"]]) if there["token"] in known else None
            return place, apart
    return None if len(one) == len(other) else (min(len(one), len(other)), None)


def judged(ones: list[list[dict[str, Any]]], others: list[list[dict[str, Any]]], tie_nats: float) -> dict[str, Any]:
    """Return how many answers are the same, part at a near-tie, or part elsewhere."""
    found = [parting(one, other) for one, other in zip(ones, others, strict=True)]
    parted = [each for each in found if each is not None]
    near = [apart for _, apart in parted if apart is not None and apart <= tie_nats]
    return {
        "answers": len(found),
        "same": len(found) - len(parted),
        "near_ties": len(near),
        "elsewhere": [{"token": place, "nats": apart} for place, apart in parted if apart is None or apart > tie_nats],
        "widest_near_tie_nats": round(max(near, default=0.0), 4),
        "tokens_compared": sum(
            len(one) if each is None else each[0] + 1 for one, each in zip(ones, found, strict=True)
        ),
    }


def main() -> int:
    """Print a row for each server; exit with 1 where an answer parts elsewhere than at a near-tie."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL")
    parser.add_argument("--prompts", type=Path, required=True, help="JSONL with messages")
    parser.add_argument("--most", type=int, help="prompts to ask")
    parser.add_argument("--new", type=int, default=256, help="tokens of an answer, at most")
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--tie", type=float, default=TIE_NATS, help="nats")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    prompts = [json.loads(line)["messages"] for line in given.prompts.read_text().splitlines()][: given.most]
    servers = [each.split("=", 1) for each in given.servers]
    found = {name: answers(url, prompts, given.new, given.at_once) for name, url in servers}
    (first, ones), *rest = found.items()
    result = {name: judged(ones, others, given.tie) for name, others in rest}
    for name, row in result.items():
        print(
            f"{name} against {first}: {row['same']} of {row['answers']} answers the same, {row['near_ties']} part at a near-tie "
            f"(at most {row['widest_near_tie_nats']} nats), {len(row['elsewhere'])} elsewhere; "
            f"{row['tokens_compared']} tokens compared"
        )
    if given.out:
        given.out.write_text(json.dumps({"against": first, "tie_nats": given.tie, "rows": result}, indent=1) + "\n")
    return int(any(row["elsewhere"] for row in result.values()))


if __name__ == "__main__":
    sys.exit(main())
