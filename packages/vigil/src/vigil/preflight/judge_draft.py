"""Judge the folder of a draft for an engine and a release, without a command: what `vigil check` would say of it, and no more."""

import msgspec

from vigil.preflight import releases
from vigil.preflight.check_files import check_files
from vigil.preflight.command import Command
from vigil.preflight.draft_eagle3 import check_eagle3
from vigil.preflight.draft_kind import draft_from
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.placing import DRAFTS
from vigil.preflight.seen_models import ModelSeen
from vigil.scout import desk

ENGINES = ("sglang", "vllm")
"""Those that take EAGLE-3 drafts and whose loaders are known here."""
_ORDER = list(Severity)


def look_at(draft: str, target: str | None = None, *, deep: bool = True) -> tuple[ModelSeen, ModelSeen | None]:
    """Return what lies in the folders of a draft and of its target; headers and small files are read, no pickle is opened.

    Raises:
        msgspec.ValidationError: The scout and we are not of one make.

    """
    asked = [{"what": DRAFTS["sglang"][0], "given": draft}]
    asked += [{"what": "model", "given": target}] if target is not None else []
    seen = desk.answer(desk.question_of({"models": asked, "deep": deep}), ["models"])
    models = msgspec.convert(seen.get("models") or [], tuple[ModelSeen, ...])
    return models[0], models[1] if target is not None else None


def nearest(engine: str, version: str) -> str:
    """Return the release in the table whose number is nearest to a version: between two the table says nothing for sure."""
    table, wanted = releases.tables()[engine], releases.numbers_of(version)
    return min(table.releases, key=lambda one: (_distance(releases.numbers_of(one), wanted), releases.numbers_of(one)))


def _distance(one: releases.Version, other: releases.Version) -> int:
    """Return how far two versions are from each other, the first number counting most."""
    padded = [(*version, 0, 0, 0)[:3] for version in (one, other)]
    first, second = (major * 1_000_000 + minor * 1000 + patch for major, minor, patch in padded)
    return abs(first - second)


def judge_draft(engine: str, version: str, draft: ModelSeen, target: ModelSeen | None) -> list[Finding]:
    """Return what a release of an engine would make of an EAGLE-3 draft, the worst first.

    Of another kind of model only its files are judged: `draft_from` says what it is.
    """
    command = Command(words=(), own=0, engine=engine, version=version)
    named = msgspec.structs.replace(draft, what=DRAFTS[engine][0])
    found = list(check_files(command, named))
    read = draft_from(named)
    if read is not None and read.kind == "eagle3":
        found += check_eagle3(command, named, read, target, version)
    return sorted(found, key=lambda one: _ORDER.index(one.severity))
