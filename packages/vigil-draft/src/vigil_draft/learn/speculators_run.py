"""The other trainer: speculators 0.9's own command as a child process, and its draft taken over into our folder.

It reads states from files (`vigil draft extract`). What decides the draft is given as to ours: shape, words, states,
tokens a step, chain and the weights of its steps, AdamW, rate, cosine, warm-up. Its own stay its head, which is frozen,
its loss, which counts where the target's word is none of the draft's too, and its clip of 1.0. It does not go on from
checkpoints. Each of its epochs ends with a validation, so it is given the data as often as it is to see it, as one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from vigil.errors import UsageError, VigilError
from vigil_draft import __version__
from vigil_draft.data import prepared
from vigil_draft.formats.provenance import SCHEMA
from vigil_draft.learn import folder
from vigil_draft.learn.order import Plan
from vigil_draft.learn.speculators_lines import Lines
from vigil_draft.learn.train import words_of
from vigil_draft.states.asked import data_sha256
from vigil_draft.states.batch import Corpus
from vigil_draft.states.files import FileStates
from vigil_draft.states.target import Target

SERIES = "0.9."
LOG_EVERY = 10
TRIAL_STEPS = 121
"""Steps from which its speed is foretold, by their second half: its readers begin with a store of 48 batches."""
CHILD = Path(__file__).with_name("speculators_child.py")
CONVENTIONS = (
    "boundary k is the state after k layers; residual before hidden_norm; the state before the final norm is fed back"
)


def version_in(python: str) -> str:
    """Return the version of speculators that a Python has; UsageError where it has none, or another series."""
    asked = [python, "-c", "from importlib.metadata import version; print(version('speculators'))"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        raise UsageError(f"--trainer-python {python}: {error.strerror}") from None
    if not found.startswith(SERIES):
        has = f"has speculators {found}" if found else "has no speculators"
        raise UsageError(
            f"{python} {has}: pip install 'speculators=={SERIES}*' there, or name another --trainer-python"
        )
    return found


def launch(plan: Plan, python: str, more: list[str]) -> dict[str, Any]:
    """Train with speculators in that Python, with more arguments for its command; return the record's last line."""
    if plan.states is None or plan.nproc > 1:
        raise UsageError("--trainer speculators: reads --states (vigil draft extract), in one process")
    version = version_in(python)
    target = Target(plan.target, torch.device("cpu"), torch.float32, plan.boundaries)
    corpus = Corpus(prepared.read(Path(plan.data)), plan.length, plan.seed)
    facts = {"data_sha256": data_sha256(Path(plan.data)), "boundaries": list(target.boundaries), "length": plan.length}
    files = FileStates(Path(plan.states), corpus, facts).unseen
    words = words_of(corpus, plan.draft_vocab, len(target.embedding))
    config = folder.config_for(target, len(words), plan.inner)
    job = {
        "states": str(Path(plan.states).resolve()),
        "files": sorted(files, key=lambda name: int(name[3:].split(".")[0])),
        "words": words.tolist(),
        "vocabulary": len(target.embedding),
        "arguments": [*arguments(plan, len(words), target.boundaries), *more],
    }
    tokens = sum(end - begin for row in corpus.rows for begin, end in map(corpus.span, row))
    run = Run(plan, python, job, config, tokens)
    record, told = run.trained()
    draft = folder.make(config, words, target)
    draft.load_state_dict(taken_over(run.result, words))
    versions = {"speculators": version, "torch": told["torch"]}
    about = {"versions": versions, "device": told["device"], "arguments": told["arguments"]}
    folder.write(Path(plan.out), draft, config, provenance(plan, record, target.boundaries) | about)
    shutil.rmtree(run.folder)
    return record


def provenance(plan: Plan, record: dict[str, Any], boundaries: tuple[int, ...]) -> dict[str, Any]:
    """Say where the draft came from."""
    return {
        "schema": SCHEMA,
        "made_by": "vigil draft train --trainer speculators",
        "version": __version__,
        "target": plan.target,
        "command": sys.argv,
        "plan": plan.facts(),
        "data": prepared.read_manifest(Path(plan.data)),
        "steps": record["step"],
        "seconds": record["seconds"],
        "boundaries": list(boundaries),
        "conventions": CONVENTIONS,
    }


def arguments(plan: Plan, words: int, boundaries: tuple[int, ...]) -> list[str]:
    """Return what decides the draft, as its command takes it."""
    said: dict[str, Any] = {
        "--speculator-type": "eagle3",
        "--verifier-name-or-path": plan.target,
        "--draft-vocab-size": words,
        "--total-seq-len": plan.tokens_per_step,
        "--ttt-steps": plan.ttt,
        "--ttt-step-loss-decay": plan.decay,
        "--optimizer": "adamw",
        "--lr": plan.lr,
        "--weight-decay": 0.0,
        "--scheduler-type": "cosine",
        "--scheduler-warmup-ratio": plan.warmup,
        "--seed": plan.seed,
        "--epochs": 1,
        "--on-missing": "raise",
        "--log-freq": LOG_EVERY,
        "--mask-token-id": 0,  # of another kind of draft; unsaid, it asks for the target's tokenizer
    }
    flags = ["--no-norm-before-residual", "--no-norm-before-fc", "--no-norm-output"]
    flags += ["--target-layer-ids", *map(str, boundaries)]
    return flags + [str(each) for pair in said.items() for each in pair]


def taken_over(path: Path, words: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return its tensors by our names; VigilError where its words are not those that it was given."""
    tensors = load_file(path / "model.safetensors")
    if not torch.equal(tensors.pop("d2t") + torch.arange(len(words)), words):
        raise VigilError(f"{path}: its words are not those that it was given")
    ours = {name.replace("layers.0.", "midlayer."): each for name, each in tensors.items()}
    return {name: each for name, each in ours.items() if name not in {"t2d", "embed_tokens.weight"}}


class Run:
    """One training: what its child is given, and what it tells."""

    def __init__(self, plan: Plan, python: str, job: dict[str, Any], config: dict[str, Any], tokens: int) -> None:
        self.plan, self.python, self.job, self.config, self.tokens = plan, python, job, config, tokens
        self.folder = Path(plan.out).resolve() / "training" / "speculators"
        self.log = self.folder.with_suffix(".log")
        self.result = self.folder / "checkpoints" / "0"

    def trained(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Train the epochs, or as many steps as the minutes hold; return the record's last line and the child's."""
        steps = None
        if self.plan.minutes:
            print(
                "speculators counts steps, not minutes: a short run first, for its speed", file=sys.stderr, flush=True
            )
            seen: list[dict[str, Any]] = []
            with closing(self._told(TRIAL_STEPS)) as trial:  # what it does after its last step is not waited for
                for line in trial:
                    seen += [line] if "done" not in line else []
                    if line.get("step", TRIAL_STEPS) >= TRIAL_STEPS:
                        break
            one, two = seen[len(seen) // 2], seen[-1]
            steps = int(60 * self.plan.minutes * (two["step"] - one["step"]) / (two["at"] - one["at"]))
            steps = max(1, steps // LOG_EVERY) * LOG_EVERY + 1  # the last one is told of
        lines, told = Lines(self.plan, steps), dict[str, Any]()
        for told in self._told(steps):
            if "done" not in told:
                lines.add(told)
        return lines.write(), told

    def _told(self, steps: int | None) -> Generator[dict[str, Any]]:
        """Run the command for so many steps, else for the epochs, and yield each line; VigilError where it ends badly."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "draft.json").write_text(json.dumps(self.config))
        arguments = [*self.job["arguments"], "--data-path", str(self.folder), "--save-path", str(self.result.parent)]
        arguments += [
            "--hidden-states-path",
            str(self.folder / "states"),
            "--draft-config",
            str(self.folder / "draft.json"),
        ]
        arguments += ["--max-steps", str(steps)] if steps else []
        times = -(-steps * self.plan.tokens_per_step // self.tokens) if steps else self.plan.epochs
        job = {**self.job, "arguments": arguments, "folder": str(self.folder), "times": times}
        (self.folder / "job.json").write_text(json.dumps(job))
        asked = [self.python, "-P", str(CHILD), str(self.folder / "job.json")]
        with self.log.open("w") as log, subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=log, text=True) as child:
            try:
                told: dict[str, Any] = {}
                for line in child.stdout or ():
                    told = json.loads(line)
                    yield told
            except BaseException:
                child.kill()
                raise
        if child.returncode or "done" not in told:
            said = [line for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()]
            raise VigilError(
                f"speculators ended with {child.returncode}: {said[-1].strip() if said else ''} (all of it: {self.log})"
            )
