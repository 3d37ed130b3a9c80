"""Where a measured schedule is kept for `--speculate auto`: by the command, whatever name, address or port the server gets."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from vigil.engines.registry import find
from vigil.plan import Plan
from vigil.screen import hide_in_command
from vigil.store.folder import state_folder


def place_of(plan: Plan) -> Path:
    """Return the file of a plan's command."""
    words = (plan.host, plan.engine or "", *_unplaced(plan.command))
    digest = hashlib.sha256("\0".join(hide_in_command(words)).encode()).hexdigest()[:16]
    return Path(state_folder()) / "schedules" / f"{digest}.json"


def _unplaced(words: Sequence[str]) -> Iterator[str]:
    """Yield a command's words without those that say where, and under which name, it serves; a shell's text stays as it is."""
    table, before, own = find(words)
    flags = {*table.port_flags, *table.host_flags, *table.name_flags}
    yield from before
    skip = False
    for word in own:
        name, equals, _ = word.partition("=")
        plain = "--" + name[2:].replace("_", "-") if name.startswith("--") else name
        if not skip and plain not in flags:
            yield word
        skip = not skip and plain in flags and not equals
