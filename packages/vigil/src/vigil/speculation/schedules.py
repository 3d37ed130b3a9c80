"""Schedules as vigil-engine reads and makes them: found by its entry point, since vigil itself imports nothing of it."""

from importlib import metadata
from typing import Any

import msgspec

from vigil.attest.plugin import MISSING
from vigil.errors import UsageError

GROUP, NAME = "vigil.speculation", "schedule"


class Schedules(msgspec.Struct, frozen=True):
    """vigil-engine's module `schedule`: what it refuses comes out as a usage error of one line."""

    module: Any

    def off_above(self, most: int, k: int, engine: str) -> dict[str, Any]:
        """Return the schedule that is off above `most` running requests."""
        return self._asked(self.module.off_above, most, k, engine)

    def read(self, text: str) -> dict[str, Any]:
        """Return what a schedule's file says, checked."""
        return self._asked(self.module.read, text)

    def digest(self, held: dict[str, Any]) -> str:
        """Return the name of what decides in a schedule."""
        return str(self.module.digest(self.module.parse(held)))

    def all_k(self, held: dict[str, Any]) -> list[int]:
        """Return every k that may be in force."""
        return list(self.module.all_k(self.module.parse(held)))

    def _asked(self, function: Any, *given: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = function(*given)
        except self.module.ScheduleError as error:
            raise UsageError(str(error)) from error
        return found


def schedules() -> Schedules:
    """Return what reads schedules.

    Raises:
        UsageError: vigil-engine is not installed here.

    """
    found = list(metadata.entry_points(group=GROUP, name=NAME))
    if not found:
        raise UsageError(MISSING)
    return Schedules(found[0].load())
