"""What `vigil bench` and `vigil compare` share: their options, and the folder of results."""

import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import anyio
import msgspec
import typer

from vigil.bench.folder import META, read_meta
from vigil.bench.prompts import Prompt, read
from vigil.bench.reply import Limits
from vigil.bench.settings import Point, Settings
from vigil.cli import options
from vigil.errors import UsageError, VigilError
from vigil.store import private_folder

Found = TypeVar("Found")
MOST_POINTS = 64
HIGHEST = 65536
MOST_PROCESSES = 64
DEFAULT_LOADS = "1,2,4,8,16,32"

Concurrency = Annotated[
    str | None, typer.Option("--concurrency", metavar="N,N,...", help="Requests open at once, one load after another.")
]
Rate = Annotated[
    str | None, typer.Option("--rate", metavar="R,R,...", help="Requests a second, arriving at random (Poisson).")
]
Prompts = Annotated[
    Path | None,
    typer.Option("--prompts", metavar="FILE", help="Real prompts: JSONL, or one a line; else they are made."),
]
Input = Annotated[int, typer.Option("--input", metavar="TOKENS", help="Length of made prompts, by the server's count.")]
Output = Annotated[int, typer.Option("--output", metavar="TOKENS", help="Length of answers, or the most of it.")]
RangeRatio = Annotated[
    float,
    typer.Option(
        "--range-ratio", metavar="R", help="Draw each length from (1-R) to (1+R) times what it is; 0: all alike."
    ),
]
Natural = Annotated[
    bool, typer.Option("--natural-ends", help="Let the model end its answers; else they have the length of --output.")
]
Seconds = Annotated[str, typer.Option("--seconds", metavar="TIME", help="Time in steady state at each load.")]
Most = Annotated[
    str | None, typer.Option("--most", metavar="TIME", help="Give a load up after so long; else 4 times that.")
]
Requests = Annotated[
    int | None,
    typer.Option("--requests", metavar="N", help="Measure exactly N requests, as other tools do, first to last."),
]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", help="Rounds over all loads.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of prompts, arrivals and orders.")]
AnySeed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Of prompts, arrivals and orders; else another one each time."),
]
Temperature = Annotated[float, typer.Option("--temperature", metavar="T", help="Of sampling; 0 is greedy.")]
Chat = Annotated[bool, typer.Option("--chat", help="Ask /v1/chat/completions; else /v1/completions.")]
Patience = Annotated[
    str, typer.Option("--patience", metavar="TIME", help="Give a request up after so long without a byte.")
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes", metavar="N", help="Processes of the client that share each load, where one is the limit."
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FOLDER", help="Where results go; one with the same is resumed.")
]


def points_of(concurrency: str | None, rate: str | None) -> tuple[Point, ...]:
    """Return the loads that were asked for; raise `UsageError` for what is none."""
    given = concurrency or (None if rate else DEFAULT_LOADS)
    found = [Point(kind="concurrency", value=one) for one in _numbers(given, "--concurrency", whole=True)]
    found += [Point(kind="rate", value=one) for one in _numbers(rate, "--rate", whole=False)]
    if len(found) > MOST_POINTS:
        raise UsageError(f"{len(found)} loads are more than {MOST_POINTS}: give fewer")
    return tuple(dict.fromkeys(found))


def _numbers(text: str | None, option: str, *, whole: bool) -> list[float]:
    found = []
    for word in (text or "").split(",") if text is not None else []:
        try:
            value = float(int(word)) if whole else float(word)
        except ValueError:
            kind = "whole numbers" if whole else "numbers"
            raise UsageError(f"{option} {text!r}: give {kind} with commas between, such as 1,2,4") from None
        if not 0 < value <= HIGHEST:
            raise UsageError(f"{option} {word.strip()}: give a number above 0, and {HIGHEST} at most")
        found.append(value)
    return found


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the options ask for."""

    points: tuple[Point, ...]
    settings: Settings
    prompts: tuple[Prompt, ...] | None


def settings_of(
    *, input_tokens: int, output_tokens: int, range_ratio: float, seconds: str, most: str | None, requests: int | None,
    repeats: int, seed: int,
    natural_ends: bool, temperature: float, chat: bool, patience: str, processes: int,
) -> Settings:  # fmt: skip
    """Return the settings of the options; raise `UsageError` for what cannot be."""
    for name, value in (("--input", input_tokens), ("--output", output_tokens), ("--repeats", repeats)):
        if value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if requests is not None and requests < 1:
        raise UsageError(f"--requests {requests}: give 1 or more")
    if not 0 <= range_ratio < 1:
        raise UsageError(f"--range-ratio {range_ratio:g}: give 0 or more, and less than 1")
    if not 0 <= temperature <= 2:  # noqa: PLR2004 - what the servers take
        raise UsageError(f"--temperature {temperature:g}: give 0 to 2")
    if not 1 <= processes <= MOST_PROCESSES:
        raise UsageError(f"--processes {processes}: give 1 to {MOST_PROCESSES}")
    seconds_s = options.seconds(seconds, "--seconds")
    silence_s = options.seconds(patience, "--patience")
    if seconds_s < 1 or silence_s <= 0:
        raise UsageError("--seconds and --patience: give 1 s or more")
    return Settings(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        range_ratio=range_ratio,
        seconds=seconds_s,
        most_s=options.seconds(most, "--most") if most else 0.0,
        requests=requests,
        repeats=repeats,
        seed=seed,
        ignore_eos=not natural_ends,
        temperature=temperature,
        chat=chat,
        processes=processes,
        limits=Limits(silence_s=silence_s),
    )


def seed_of(seed: int | None, out: Path | None) -> int:
    """Return the seed: as given, else that of the results that are gone on with, else a new one.

    A server that was measured before holds the prompts of an earlier seed in its cache.
    """
    if seed is not None:
        return seed
    if out is not None and (out / META).exists():
        return read_meta(out).settings.seed
    return secrets.randbelow(1 << 31)


def prompts_of(path: Path | None) -> tuple[Prompt, ...] | None:
    """Return the prompts of a file, or None where they are made."""
    return read(path) if path is not None else None


def folder_for(out: Path | None, title: str) -> Path:
    """Return where results go: where the user says, else a new folder of the state folder."""
    if out is not None:
        return out
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    safe = "".join(one if one.isalnum() or one in "-._" else "-" for one in title)[:60]
    try:
        return private_folder("bench") / f"{stamp}-{safe}-{time.time_ns() % 10**6:06d}"
    except OSError as error:
        raise UsageError(f"there is no place for results: {error.strerror}; give --out FOLDER") from error


def run(work: Callable[[], Awaitable[Found]]) -> Found:
    """Run what measures; an error of ours comes out as itself, and not in a group of one."""
    try:
        return anyio.run(work)
    except BaseExceptionGroup as group:
        ours = next((one for one in _leaves(group) if isinstance(one, VigilError)), None)
        if ours is None:
            raise
        raise ours from None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from _leaves(one)
        else:
            yield one
