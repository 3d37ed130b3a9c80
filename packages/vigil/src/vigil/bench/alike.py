"""Limits that engines change on their own when something else is switched on: set alike in all arms, and told. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from vigil.engines import asks_speculation, find
from vigil.engines.commandline import values


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of an engine that speculation changes in silence. `default`: what it becomes then."""

    flag: str
    default: int
    because: str


LIMITS: dict[str, tuple[Limit, ...]] = {
    "sglang": (
        Limit(
            flag="--max-running-requests",
            default=48,
            because="SGLang sets it to 48 under speculation where it is not given (sglang#34290)",
        ),
    ),
}
"""By engine. vLLM 0.32 and llama-server change none of their limits on running requests under speculation."""


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """Commands with limits set alike, and in words what was set."""

    commands: dict[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def alike(commands: Mapping[str, Sequence[str]], most: int) -> Alike:
    """Return the commands with each limit the same. `most`: the heaviest load, which no limit that we choose may cut."""
    found = {name: tuple(words) for name, words in commands.items()}
    notes: list[str] = []
    tables = {name: find(words)[0] for name, words in found.items()}
    for engine, limits in LIMITS.items():
        arms = [name for name, table in tables.items() if table.name == engine]
        if len(arms) > 1 and any(asks_speculation(tables[name], found[name]) for name in arms):
            for limit in limits:
                notes += _set(found, arms, limit, most)
    return Alike(commands=found, notes=tuple(notes))


def _set(commands: dict[str, tuple[str, ...]], arms: Sequence[str], limit: Limit, most: int) -> list[str]:
    """Set one limit in the arms that do not give it; return what to say."""
    given = {name: values(find(commands[name])[2], [limit.flag]) for name in arms}
    stated = {name: some[-1] for name, some in given.items() if some}
    if len(set(stated.values())) > 1:
        shown = ", ".join(f"{name}: {value}" for name, value in stated.items())
        return [f"{limit.flag} differs between the arms, as you gave it ({shown}): what is compared is that, too"]
    value = next(iter(stated.values()), str(max(most, limit.default)))
    missing = [name for name in arms if name not in stated]
    added = [name for name in missing if _can_append(commands[name])]
    for name in added:
        commands[name] = (*commands[name], limit.flag, value)
    notes = [f"{', '.join(added)}: {limit.flag} {value} was added: {limit.because}"] if added else []
    locked = [name for name in missing if name not in added]
    notes += [f"{name}: {limit.flag} {value} could not be added to its command; give it yourself" for name in locked]
    return notes


def _can_append(words: Sequence[str]) -> bool:
    """Say whether a flag at the end of these words reaches the engine: it does not behind `bash -c '...'` or a pipe."""
    own = find(words)[2]
    return bool(own) and tuple(words[-len(own) :]) == own


def differences(servers: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return in words which settings the servers say differ, but for those of speculation itself."""
    names = sorted({name for facts in servers.values() for name in facts})
    found = []
    for name in names:
        seen = {arm: facts.get(name) for arm, facts in servers.items() if name in facts}
        if len(seen) < 2 or name.startswith("speculative") or name == "random_seed":  # noqa: PLR2004
            continue
        if len({str(value) for value in seen.values()}) > 1:
            found.append(f"{name}: " + ", ".join(f"{arm} {value}" for arm, value in seen.items()))
    return found
