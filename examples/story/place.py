"""Where the story is told, and how it runs what a user would type."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telling import Step, shown

K = 3
"""Tokens that are drafted a step."""
FLAGS = "--dtype bfloat16 --max-model-len 1024 --enforce-eager"


@dataclass(frozen=True)
class Place:
    """The repository, the folder in which everything lands, the minutes of training, and a port that nobody has."""

    root: Path
    work: Path
    minutes: float
    port: int

    @property
    def vllm(self) -> Path:
        """The environment of vLLM for the CPU."""
        return self.root / ".engines" / "vllm"

    @property
    def target(self) -> Path:
        """SmolLM2-135M-Instruct as a folder."""
        return self.root / ".engines" / "models" / "SmolLM2-135M-Instruct"

    @property
    def draft(self) -> Path:
        """The draft of this story."""
        return self.work / "draft"

    @property
    def kept(self) -> Path:
        """The draft that ships with the repository, in `draft`; what its making left, in `made`."""
        return self.root / "packages" / "vigil-draft-smollm2" / "src" / "vigil_draft_smollm2"

    def serve(self, *more: str) -> list[str]:
        """Return a command that serves the target with vLLM on the CPU."""
        flags = [*FLAGS.split(), "--max-num-seqs", "8", "--port", str(self.port)]
        return [str(self.vllm / "bin" / "vllm"), "serve", str(self.target), *flags, *more]

    def speculating(self) -> list[str]:
        """Return the flags that ask vLLM for speculation with the draft that ships here."""
        config = {"method": "eagle3", "model": str(self.kept / "draft"), "num_speculative_tokens": K}
        return ["--speculative-config", json.dumps(config)]


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    rc: int
    out: str
    err: str

    @property
    def told(self) -> dict[str, Any]:
        """What it printed as JSON: the whole, or the last line."""
        try:
            return dict(json.loads(self.out))
        except ValueError:
            return dict(json.loads(self.out.strip().rpartition("\n")[2] or "{}"))


def vigil(place: Place, step: Step, line: str, *values: object, more: Sequence[str] = ()) -> Done:
    """Run `vigil LINE`, each `{}` of which is the next value; `more`: words after it."""
    return _run(place, step, [str(place.root / ".venv" / "bin" / "vigil")], _words(line, values, more), {})


def learn(place: Place, step: Step, line: str, *values: object) -> Done:
    """Run `vigil draft LINE` in the Python that has torch."""
    python = [str(place.root / ".engines" / "draft" / "bin" / "python"), "-m", "vigil_draft"]
    sources = ":".join(str(place.root / "packages" / one / "src") for one in ("vigil", "vigil-draft"))
    return _run(place, step, python, _words(line, values, ()), {"PYTHONPATH": sources})


def expect_success(step: Step, done: Done) -> None:
    """End the story where a command failed without which there is no next one."""
    if done.rc != 0:
        print(done.out[-2000:], done.err[-4000:], file=sys.stderr)
        raise SystemExit(f"{step.title}: exit code {done.rc} of: {step.commands[-1]}")


def _words(line: str, values: Sequence[object], more: Sequence[str]) -> list[str]:
    left = iter(values)
    return [*(str(next(left)) if word == "{}" else word for word in line.split()), *more]


def _run(place: Place, step: Step, program: list[str], words: list[str], env: dict[str, str]) -> Done:
    command = [*program, *words]
    step.commands.append(shown(command, place.root))
    print(f"$ {step.commands[-1]}", flush=True)
    empty = place.work / "empty"  # vLLM runs `python -m` for a part of its work: files there would be imported
    empty.mkdir(parents=True, exist_ok=True)
    own = {"XDG_STATE_HOME": str(place.work / "state"), "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", **env}
    done = subprocess.run(command, cwd=empty, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    with (place.work / "commands.log").open("a") as file:
        file.write(f"$ {step.commands[-1]}\n{done.stdout}{done.stderr}[exit code {done.returncode}]\n\n")
    return Done(done.returncode, done.stdout, done.stderr)
