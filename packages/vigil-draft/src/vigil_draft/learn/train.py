"""The training loop, of one process or of each of several."""

from __future__ import annotations

import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from vigil.errors import UsageError, VigilError
from vigil_draft.data import prepared
from vigil_draft.formats.identity import identity_of
from vigil_draft.formats.provenance import SCHEMA
from vigil_draft.learn import checkpoint, folder, forecast
from vigil_draft.learn.draft import Draft
from vigil_draft.learn.order import Plan, rate, rows_of, steps_per_epoch
from vigil_draft.learn.progress import Lines
from vigil_draft.learn.step import Objective, Tally
from vigil_draft.processes import orphaned
from vigil_draft.states.asked import data_sha256
from vigil_draft.states.batch import Corpus
from vigil_draft.states.files import FileStates
from vigil_draft.states.source import Source
from vigil_draft.states.target import Target, folder_of


class DivergedError(VigilError):
    """The loss or its gradient is no number any more."""


@contextmanager
def _together() -> Iterator[None]:
    """Do something with the other processes; where one of them is gone, say so in one line (gloo and NCCL raise RuntimeError)."""
    try:
        yield
    except RuntimeError as error:
        raise VigilError(
            f"another process of the training went away, which has the reason: {str(error)[:100]}"
        ) from None


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

    def progress(self) -> float:
        """Return the part of the training that is done, by steps or by time, whichever is further; rank 0's clock counts."""
        seconds = time.monotonic() - self.began
        part = max(self.step / self.steps, seconds / (60 * self.plan.minutes) if self.plan.minutes else 0.0)
        if self.plan.minutes and self.plan.nproc > 1:
            shared = torch.tensor([part], device=self.device, dtype=torch.float64)
            with _together():
                distributed.broadcast(shared, 0)
            part = float(shared)
        return part

    def foreseen(self, each_s: float) -> tuple[int, float]:
        """Return the step at which it will end and the seconds until then, at so many seconds a step."""
        steps, minutes = max(0, self.steps - self.step), self.plan.minutes
        left_s = each_s * steps
        if minutes is not None and (by_time_s := max(0.0, self.began + 60 * minutes - time.monotonic())) < left_s:
            steps, left_s = round(by_time_s / each_s), by_time_s
        return self.step + steps, left_s

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
        with _together():
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
    line.say(_before(training))
    if training.step:
        line.say(f"goes on after step {training.step}")
    try:
        _all_steps(training, line)
        return line.end()
    except OSError as error:  # a full disk; what is read says so itself
        raise VigilError(
            f"{plan.out}: step {training.step}: write failed: {error.strerror}: the last checkpoint is kept, "
            "the same command goes on from it"
        ) from None


def _all_steps(training: Training, line: Lines) -> None:
    plan = training.plan
    saved, watched = time.monotonic(), [time.monotonic()]
    while training.step < training.steps and (progress := training.progress()) < 1:
        line.add(training.advance(progress))
        if len(watched) <= forecast.WATCHED:
            watched.append(time.monotonic())
            if len(watched) > forecast.WATCHED and not training.rank:
                line.say(_after(training, watched))
        if orphaned():
            raise VigilError("the process that started this one is gone")
        if time.monotonic() - saved >= 60 * plan.save_minutes:
            training.save()
            saved = time.monotonic()
    training.save()


def _before(training: Training) -> str:
    """Return what it will take; UsageError where the disk cannot hold it."""
    plan, out = training.plan, training.out
    disk = forecast.disk_of(
        sum(weight.numel() for weight in training.draft.parameters()),
        len(training.draft.vocabulary),
        len(training.target.embedding),
    )
    there = sum(path.stat().st_size for path in (out / checkpoint.FILE, out / "model.safetensors") if path.exists())
    free = shutil.disk_usage(out).free
    forecast.refuse_small_disk(plan.out, disk, there, free)
    corpus = training.corpus
    lengths = [end - begin for row in corpus.rows for begin, end in map(corpus.span, row)]
    return forecast.told_before(plan, lengths, training.steps, disk, free)


def _after(training: Training, watched: list[float]) -> str:
    """Return when it will end, by the steps that were watched (moments between them)."""
    plan, source, rows = training.plan, training.source, training.corpus.rows
    some = rows_of(plan, len(rows), training.step - 1, training.rank)
    began = time.monotonic()
    float(source.computed(some, training.corpus.batch(some).to(training.device)).last[0, 0])  # waits for the GPU
    states_s = time.monotonic() - began
    pace = forecast.pace_of([b - a for a, b in pairwise(watched)], states_s, source.room)
    left_s = pace.left_s(plan, len(rows), training.step, steps_per_epoch(plan, len(rows)))
    if training.device.type == "cuda":
        now = torch.cuda.max_memory_allocated(training.device)
    else:
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    to_come = max(0, min(source.room, len(rows)) - len(source.kept)) * source.row_bytes
    limit_s = None if plan.minutes is None else training.began + 60 * plan.minutes - time.monotonic()
    return forecast.told_after(pace, left_s, limit_s, time.time(), (now, now + to_come))
