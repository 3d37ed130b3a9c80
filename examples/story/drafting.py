"""The first half: a draft from its target, what it promises, and whether it keeps that where it is served."""

import json
import shlex
from pathlib import Path

from place import FLAGS, K, Place, expect_success, learn, vigil
from telling import Step

ANSWERS, NEW, ASKED = 64, 96, 16
TOLERANCE = 0.05


def answers(place: Place) -> Step:
    """Have the target answer prompts itself."""
    step = Step("answers", "Answers by the target itself, to train on")
    prompts = place.work / "prompts.jsonl"
    lines = (place.kept / "made" / "heldout.jsonl").read_text().splitlines()
    prompts.write_text("\n".join(lines[-ANSWERS:]) + "\n")
    line = f"draft prepare --target {{}} --prompts {{}} --out {{}} --max-tokens {NEW} --length 1024 --held-out 0.2 --json --"
    expect_success(step, vigil(place, step, line, place.target, prompts, place.work / "data", more=place.serve()))
    for side in ("train", "heldout"):
        shards = json.loads((place.work / "data" / side / "manifest.json").read_text())["shards"]
        documents, tokens = (sum(one[name] for one in shards) for name in ("documents", "tokens"))
        step.figure(side, f"{documents} answers, {tokens} tokens")
    return step


def states(place: Place) -> Step:
    """Write the target's hidden states to files."""
    step = Step("states", "Hidden states of the target, in files")
    line = "extract --target {} --data {} --out {} --length 256"
    expect_success(step, learn(place, step, line, place.target, place.work / "data" / "train", place.work / "states"))
    files = list((place.work / "states").rglob("*.safetensors"))
    step.figure("files", f"{len(files)}, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB")
    return step


def training(place: Place) -> Step:
    """Train a draft from the files."""
    step = Step("training", f"A draft, trained for {place.minutes:g} min")
    line = (
        "train --target {} --data {} --states {} --out {} --draft-vocab 4864 --length 256 --tokens-per-step 1024 --lr 1e-3 "
        f"--ttt {K} --epochs 1000 --minutes {place.minutes:g} --json"
    )
    folders = (place.work / "data" / "train", place.work / "states", place.draft)
    expect_success(step, learn(place, step, line, place.target, *folders))
    record = [json.loads(each) for each in (place.draft / "record.jsonl").read_text().splitlines()]
    first, last = record[0]["loss"], record[-1]["loss"]
    step.promise("loss", "it falls", f"{first:.2f} to {last:.2f} in {record[-1]['step']} steps", kept=last < first)
    return step


def promise(place: Place) -> Step:
    """Estimate what the draft will give, on answers that it was not trained on."""
    step = Step("promise", "What the draft promises, on answers that were kept away from it")
    line = f"eval {{}} --target {{}} --data {{}} --k {K} --json"
    done = learn(place, step, line, place.draft, place.target, place.work / "data" / "heldout")
    expect_success(step, done)
    (place.work / "estimate.json").write_text(done.out)
    found = done.told["acceptance_length"][str(K)]["served"]
    text = f"{found['with_bonus']:.2f} tokens a step ({found['low']:.2f} to {found['high']:.2f})"
    step.figure(f"acceptance length at k {K}, greedy, with the bonus token", text)
    return step


def formats(place: Place) -> Step:
    """Take the draft into another format and back, and see what the engine makes of it."""
    step = Step("formats", "Into another format and back")
    there, back = place.work / "draft-speculators", place.work / "draft-back"
    for source, to, out in ((place.draft, "speculators", there), (there, "vllm", back)):
        done = vigil(place, step, "draft convert {} {} --to {} --target {} --json", source, out, to, place.target)
        expect_success(step, done)
    first, last = (_tensors(folder / "model.safetensors") for folder in (place.draft, back))
    same = [name for name in first if last.get(name) == first[name]]
    step.promise("tensors byte for byte the same", f"all {len(first)}", str(len(same)), kept=len(same) == len(first))
    done = vigil(place, step, "draft inspect {} --target {} --engine vllm --json", place.draft, place.target)
    step.promise("vLLM loads it as it was trained", "exit code 0", f"exit code {done.rc}", kept=done.rc == 0)
    return step


def kept_promise(place: Place) -> Step:
    """Serve this story's draft and the one that ships here, and hold both to their estimates."""
    step = Step("kept-promise", "Up, ready by a token, and the promise held against what is served")
    made, data = place.kept / "made", place.work / "data" / "heldout"
    drafts = {
        "the draft of this story": (place.draft, place.work / "estimate.json", data / "prompts.jsonl", ASKED, NEW),
        "the draft that ships here": (place.kept / "draft", made / "eval.json", made / "heldout.jsonl", 24, 160),
    }
    line = (
        "draft verify {} --target {} --engine vllm --program {} --promised {} --prompts {} --most {} --max-tokens {} "
        "--json --"
    )
    program = shlex.join(place.serve()[:2])
    for subject, (draft, estimate, prompts, asked, tokens) in drafts.items():
        more = [*FLAGS.split(), "--max-num-seqs", "4"]
        done = vigil(place, step, line, draft, place.target, program, estimate, prompts, asked, tokens, more=more)
        live, promised = (float((done.told.get(name) or {}).get("value", 0)) for name in ("live", "promised"))
        found = f"{live:.2f}: {done.told.get('word')}, {done.told.get('text')}"
        # A draft of two minutes may be of no use, and is `broken` then; what it promised it keeps all the same. So few answers
        # say little: where the intervals overlap it is `ok`.
        kept = done.rc == 0 or live >= (1 - TOLERANCE) * promised > 0
        step.promise(subject, f"{promised:.2f} tokens a step", found, kept=kept)
    return step


def _tensors(path: Path) -> dict[str, bytes]:
    """Return the bytes of each tensor of a safetensors file, under the name that both formats share."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    held = {name: one for name, one in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"}
    spans = {name.replace("midlayer.", "layers.0."): one["data_offsets"] for name, one in held.items()}
    return {name: data[8 + size + begin : 8 + size + end] for name, (begin, end) in spans.items()}
