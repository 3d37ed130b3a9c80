"""Whether a schedule was measured on what now runs: another model, draft, GPU or engine version has other thresholds."""

import json
from typing import Any

from vigil.errors import VigilError
from vigil.hosts import Reach
from vigil.speculation.measured import differences, identity
from vigil.supervise.inventory import found_by
from vigil.supervise.start import Started


async def measured_elsewhere(
    schedule: str | None, engine: str, reach: Reach, started: Started | None
) -> tuple[str, ...]:
    """Return one warning that names what differs, by what the start's snapshot knows; none where nothing is known to."""
    on: Any = json.loads(schedule).get("measured_on") if schedule else None
    if not isinstance(on, dict) or started is None:
        return ()
    try:
        ran_on = await found_by(reach, started)
    except VigilError:  # the verdict is what was asked for; a warning that cannot be had is none
        return ()
    told = differences(on, identity({"target": {"engine": engine}, "ran_on": ran_on}))
    if not told:
        return ()
    return (f"the schedule was measured on something else: {'; '.join(told)}; vigil tune measures one for this",)
