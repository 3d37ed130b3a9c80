"""Train the same draft on one device for the same time, by `vigil draft train` and by speculators' own command, and compare.

    PYTHON bench/draft_trainers.py --target T --train data/train --heldout data/heldout --work W --trainer-python PYTHON2

PYTHON has torch and vigil-draft (.engines/draft), PYTHON2 speculators 0.9. Same are the target's states, from files of
`vigil draft extract`; the draft's shape and words; tokens a step, length, chain and the weights of its steps; AdamW without
weight decay, its rate, warm-up and cosine; fp32 weights, on a GPU with bf16 products. Each trainer's own is the rest:
speculators freezes the head, counts the loss also where the target's word is none of the draft's, clips at 1.0 (ours 0.5),
has 0.999 as AdamW's second beta (0.95), compiles, and reads each state anew from its file with 12 processes, where ours reads
it once and keeps it in memory. The arm speculators-muon has its own defaults: Muon, rate 1e-3, falling straight.
speculators goes first, for about `--seconds` by the speed of a short run; ours is given the seconds that it took. No clock
counts the start: imports, compiling, loading. Finished arms in W are not trained again. With `--keep` the figures go to
docs/results/draft-trainers.json.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vigil_draft.data import prepared
from vigil_draft.states.batch import Corpus

RESULT = Path(__file__).parent.parent / "docs" / "results" / "draft-trainers.json"
ENOUGH = 0.05
"""What a trainer of our own must gain in acceptance at equal time (issue 6)."""
MUON = (
    "--optimizer",
    "muon",
    "--lr",
    "1e-3",
    "--muon-lr",
    "1e-3",
    "--weight-decay",
    "0.01",
    "--scheduler-type",
    "linear",
)
ARMS = {"speculators": (), "speculators-muon": MUON, "own": ()}


def vigil(*arguments: str) -> str:
    """Run `vigil draft` with this Python; return what it prints, and let its progress through."""
    asked = [sys.executable, "-m", "vigil_draft", *arguments]
    return subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout


def subset(data: Path, most: int, into: Path) -> Path:
    """Write the first documents of prepared data, up to so many tokens."""
    docs = prepared.read(data)
    count = max(1, sum(start <= most for start in docs.starts[1:]))
    upto = docs.starts[count]
    part = prepared.Documents(docs.token_ids[:upto], docs.loss_mask[:upto], docs.starts[: count + 1])
    into.mkdir(parents=True, exist_ok=True)
    prepared.write_manifest(into, [prepared.write_shard(into, 0, part)], {"from": str(data), "most_tokens": most})
    return into


def trained(arm: str, asked: argparse.Namespace, given: list[str], kept: tuple[float, float]) -> dict[str, Any]:
    """Train one arm and evaluate its draft; `kept` are the GiB that all states take in memory, and tokens a padded token."""
    out = asked.work / arm
    more = ["--keep-gib", str(kept[0] * 1.01), "--epochs", "100000", "--save-minutes", "600"]
    if arm != "own":
        more = ["--trainer", "speculators", "--trainer-python", asked.trainer_python]
        more += [f"--trainer-argument={each}" for each in ARMS[arm]]
    begun = time.monotonic()
    print(f"{arm}:", file=sys.stderr, flush=True)
    vigil("train", *given, "--out", str(out), "--minutes", str(asked.seconds / 60), *more)
    wall_s = time.monotonic() - begun
    record = [json.loads(line) for line in (out / "record.jsonl").read_text().splitlines()]
    last = record[-1]
    per_step = last.get("tokens_a_step", asked.tokens_per_step * kept[1])
    held = ["--target", asked.target, "--data", str(asked.heldout), "--length", str(asked.length)]
    estimate = json.loads(vigil("eval", str(out), *held, "--json"))
    return {
        "arm": arm,
        "seconds": last["seconds"],
        "steps": last["step"],
        "tokens_seen": round(last["step"] * per_step),
        "tokens_per_s": round(last["step"] * per_step / last["seconds"]),
        "fastest_tokens_per_s": round(max(each["tokens_per_s"] for each in record) * (kept[1] if arm == "own" else 1)),
        "peak_gib": last["peak_gib"],
        "of_it_states_gib": round(kept[0], 2) if arm == "own" and last["peak_gib"] else 0.0,
        "whole_command_s": round(wall_s, 1),
        "coverage": estimate["coverage"],
        "joint": estimate["joint"],
        "acceptance_length": {k: each["served"] for k, each in estimate["acceptance_length"].items()},
        "record": record,
        "about": json.loads((out / "vigil.json").read_text()),
    }


def gain(rows: list[dict[str, Any]], k: str) -> float:
    """Return by which part our draft is accepted longer than the better of the others, the target's own token counted."""
    lengths = {row["arm"]: row["acceptance_length"][k]["with_bonus"] for row in rows}
    return float(lengths.pop("own") / max(lengths.values()) - 1)


def told(rows: list[dict[str, Any]]) -> str:
    """Return the table."""
    lines = [
        f"{'':<17} seconds  steps  tokens/s  (fastest)  peak GiB  (states)  acceptance length as engines report it, k 1 to 7"
    ]
    for row in rows:
        lengths = " ".join(f"{each['with_bonus']:.2f}" for each in row["acceptance_length"].values())
        lines.append(
            f"{row['arm']:<17} {row['seconds']:>7} {row['steps']:>6} {row['tokens_per_s']:>9,} {row['fastest_tokens_per_s']:>10,}"
            f"  {row['peak_gib'] or '-':>8} {row['of_it_states_gib'] or '-':>9}  {lengths}"
        )
    if {"own"} < {row["arm"] for row in rows}:
        for k in ("3", "7"):
            more = gain(rows, k)
            lines.append(
                f"k {k}: ours is accepted {more:+.1%} longer: {'more' if more > ENOUGH else 'not more'} than {ENOUGH:.0%}"
            )
    return "\n".join(lines)


def given_by_user() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("train", "heldout", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--trainer-python", default=sys.executable)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["speculators", "own"])
    parser.add_argument("--seconds", type=float, default=75.0)
    parser.add_argument("--tokens", type=int, default=1_500_000, help="of the training data that are used")
    parser.add_argument("--heldout-tokens", type=int, default=200_000)
    parser.add_argument("--draft-vocab", default="4864")
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--tokens-per-step", type=int, default=8192)
    parser.add_argument("--ttt", default="4")
    parser.add_argument("--lr", default="1e-3")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def main() -> int:
    asked = given_by_user()
    data = subset(asked.train, asked.tokens, asked.work / "train")
    asked.heldout = subset(asked.heldout, asked.heldout_tokens, asked.work / "heldout")
    states, given = (
        asked.work / "states",
        ["--target", asked.target, "--data", str(data), "--length", str(asked.length)],
    )
    vigil("extract", *given, "--out", str(states))
    corpus = Corpus(prepared.read(data), asked.length, 0)
    padded = len(corpus.rows) * asked.length
    about = json.loads((states / "manifest.json").read_text())
    kept_gib = padded * ((len(about["boundaries"]) + 1) * about["hidden_size"] * 2 + 8) / 2**30
    part = sum(end - begin for row in corpus.rows for begin, end in map(corpus.span, row)) / padded
    given += [
        "--states",
        str(states),
        "--draft-vocab",
        asked.draft_vocab,
        "--tokens-per-step",
        str(asked.tokens_per_step),
    ]
    given += ["--ttt", asked.ttt, "--lr", asked.lr]
    kept = asked.work / "draft-trainers.json"
    rows: list[dict[str, Any]] = json.loads(kept.read_text())["rows"] if kept.exists() else []
    for arm in sorted({*asked.arms} - {row["arm"] for row in rows}, key=list(ARMS).index):
        if arm == "own" and rows:
            asked.seconds = rows[0]["seconds"]
        rows.append(trained(arm, asked, given, (kept_gib, part)))
        settings = {
            name: value if isinstance(value, int | float | list) else str(value) for name, value in vars(asked).items()
        }
        result = {
            "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "settings": settings,
            "tokens": math.floor(padded * part),
            "rows": rows,
        }
        for path in [kept, *([RESULT] if asked.keep else [])]:
            path.write_text(json.dumps(result, indent=1) + "\n")
    print(told(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
