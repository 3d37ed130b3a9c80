"""The training loop, of one process or of each of several."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from vigil.errors import UsageError, VigilError
from vigil_draft.data import prepared
from vigil_draft.formats.identity import identity_of
from vigil_draft.formats.provenance import SCHEMA
from vigil_draft.learn import checkpoint, folder
from vigil_draft.learn.draft import Draft
from vigil_draft.learn.order import Plan, rate, rows_of, steps_per_epoch
from vigil_draft.learn.step import Objective, Tally
from vigil_draft.processes import orphaned
from vigil_draft.states.asked import data_sha256
from vigil_draft.states.batch import Corpus
from vigil_draft.states.files import FileStates
from vigil_draft.states.source import Source
from vigil_draft.states.target import Target, folder_of

LINE_EVERY_S = 10.0


class DivergedError(VigilError):
    """The loss or its gradient is no number any more."""


def words_of(corpus: Corpus, size: int, whole: int) -> torch.Tensor:
    """Return the most frequent words among the tokens that count, sorted; filled up with low ids where there are not enough."""
    counts = Counter(corpus.loss_tokens.tolist())
    order = sorted(range(whole), key=lambda word: (-counts[word], word))
    return torch.tensor(sorted(order[: min(size, whole)]))


class Training:
    """One process's training: its parts, and where it stands."""

    def __init__(self, plan: Plan, device: torch.device, rank: int) -> None:
        self.plan, self.device, self.rank, self.out = plan, device, rank, Path(plan.out)
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.target = Target(plan.target, device, dtype, plan.boundaries)
        self.corpus = Corpus(prepared.read(Path(plan.data)), plan.length, plan.seed)
        if int(self.corpus.token_ids.max()) >= len(self.target.embedding):
            raise UsageError(
                f"{plan.data}: has token ids that {plan.target} does not know: prepared with another tokenizer"
            )
        facts = {"data_sha256": data_sha256(Path(plan.data)), "boundaries": list(self.target.boundaries)}
        self.identity = identity_of(folder_of(plan.target))
        files = FileStates(Path(plan.states), self.corpus, facts, self.identity) if plan.states else None
        self.source = Source(self.target, self.corpus, files.read if files else None, keep_gib=plan.keep_gib)
        words = words_of(self.corpus, plan.draft_vocab, len(self.target.embedding))
        self.config = folder.config_for(self.target, len(words), plan.inner)
        self.draft: Draft = folder.make(self.config, words, self.target)
        self.draft.begin(self.target, plan.seed)
        self.objective = Objective(self.draft, self.target)
        self.optimizer = torch.optim.AdamW(
            self.draft.parameters(), lr=plan.lr, betas=(0.9, 0.95), weight_decay=0.0, fused=device.type == "cuda"
        )
        self.step, self.spent_s = checkpoint.read(self.out, self.draft, self.optimizer, plan.facts())
        self.steps = plan.epochs * steps_per_epoch(plan, len(self.corpus.rows))
        self.began = time.monotonic() - self.spent_s

    @property
    def progress(self) -> float:
        """Return the part of the training that is done, by steps or by time, whichever is further; rank 0's clock counts."""
        seconds = time.monotonic() - self.began
        part = max(self.step / self.steps, seconds / (60 * self.plan.minutes) if self.plan.minutes else 0.0)
        if self.plan.minutes and self.plan.nproc > 1:
            shared = torch.tensor([part], device=self.device, dtype=torch.float64)
            distributed.broadcast(shared, 0)
            part = float(shared)
        return part

    def advance(self, progress: float) -> Tally:
        """Do one step."""
        batch, states = self.source.of(rows_of(self.plan, len(self.corpus.rows), self.step, self.rank))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, tally = self.objective.losses(batch, states, self.plan.ttt, self.plan.decay)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.plan.nproc > 1:
            self._share()
        size = torch.nn.utils.clip_grad_norm_(self.draft.parameters(), self.plan.clip)
        if not bool(torch.isfinite(size)):
            raise DivergedError(
                f"step {self.step}: the gradient is no number: the last checkpoint is kept; try a lower --lr"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.plan, progress)
        self.optimizer.step()
        self.step += 1
        return tally

    def _share(self) -> None:
        """Take the mean of all processes' gradients."""
        grads = [weight.grad for weight in self.draft.parameters() if weight.grad is not None]
        flat = torch.cat([grad.flatten() for grad in grads])
        distributed.all_reduce(flat)
        flat /= self.plan.nproc
        for grad, part in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
            grad.copy_(part.view_as(grad))

    def save(self) -> None:
        """Write the checkpoint and the draft as it stands (the first process does)."""
        if self.rank:
            return
        seconds = time.monotonic() - self.began
        reached = checkpoint.Reached(self.step, seconds)
        checkpoint.write(self.out, self.draft, self.optimizer, self.plan.facts(), reached)
        folder.write(self.out, self.draft, self.config, self.provenance(seconds))

    def provenance(self, seconds: float) -> dict[str, Any]:
        """Say where the draft came from."""
        import transformers  # noqa: PLC0415 - imported by the target already

        from vigil_draft import __version__  # noqa: PLC0415

        return {
            "schema": SCHEMA,
            "made_by": "vigil draft train",
            "version": __version__,
            "target": self.plan.target,
            "target_identity": self.identity,
            "command": sys.argv,
            "plan": self.plan.facts(),
            "data": prepared.read_manifest(Path(self.plan.data)),
            "steps": self.step,
            "seconds": round(seconds, 1),
            "boundaries": list(self.target.boundaries),
            "conventions": "boundary k is the state after k layers; residual before hidden_norm; "
            "the state before the final norm is fed back",
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
            "device": torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu",
        }


def train(plan: Plan, device: torch.device, rank: int = 0) -> dict[str, Any]:
    """Train to the end, from the last checkpoint where there is one; return the last line of the record."""
    training = Training(plan, device, rank)
    line = Lines(training)
    if training.step:
        line.say(f"goes on after step {training.step}")
    saved = time.monotonic()
    while training.step < training.steps and (progress := training.progress) < 1:
        line.add(training.advance(progress))
        if orphaned():
            raise VigilError("the process that started this one is gone")
        if time.monotonic() - saved >= 60 * plan.save_minutes:
            training.save()
            saved = time.monotonic()
    training.save()
    return line.write()


class Lines:
    """The progress line every ten seconds, and the record beside it (both by the first process)."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.tally: Tally | None = None
        self.steps, self.since = 0, time.monotonic()
        self.last: dict[str, Any] = {}

    def say(self, text: str) -> None:
        """Print a line, once for all processes."""
        if not self.training.rank:
            print(text, file=sys.stderr, flush=True)

    def add(self, tally: Tally) -> None:
        """Count a step; print where the time has come."""
        self.tally = tally if self.tally is None else self.tally + tally
        self.steps += 1
        if time.monotonic() - self.since >= LINE_EVERY_S:
            self.write()

    def write(self) -> dict[str, Any]:
        """Print and record the steps since the last line; return the record."""
        if self.tally is None:
            return self.last
        training, plan, now = self.training, self.training.plan, time.monotonic()
        tokens = self.steps * plan.rows_per_step * plan.nproc * plan.length
        joint = self.tally.joint
        accuracy = [float(each) for each in self.tally.right / self.tally.guesses.clamp(min=1)]
        self.last = {
            "step": training.step,
            "of": training.steps,
            "seconds": round(now - training.began, 1),
            "tokens_per_s": round(tokens / (now - self.since)),
            "loss": round(float(self.tally.loss.sum()) / self.steps, 4),
            "accuracy": [round(each, 4) for each in accuracy],
            "joint": [round(each, 4) for each in joint],
            "acceptance_length_k3": round(1 + sum(joint[:3]), 3),
            "acceptance_length": round(1 + sum(joint), 3),
            "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if training.device.type == "cuda" else None,
        }
        if not training.rank:
            with (training.out / "record.jsonl").open("a") as file:
                file.write(json.dumps(self.last) + "\n")
            shown = " ".join(f"{each:.3f}" for each in accuracy)
            self.say(
                f"step {training.step}/{training.steps}  {self.last['tokens_per_s']} tokens/s  loss {self.last['loss']:.3f}"
                f"  accuracy {shown}  acceptance length {self.last['acceptance_length_k3']:.2f} (k 3),"
                f" {self.last['acceptance_length']:.2f} (k {plan.ttt})"
            )
        self.tally, self.steps, self.since = None, 0, now
        return self.last
