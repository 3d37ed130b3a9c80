"""The engine's table, as a plan wants it."""

import msgspec

from vigil.engine_table import EngineTable
from vigil.engines import detect, table
from vigil.plan import Plan


def table_of(plan: Plan) -> EngineTable:
    """Return the table of the plan's engine: the one named, or the one that its command shows."""
    found = table(plan.engine) if plan.engine else detect(plan.command)
    if plan.health_path is not None:
        found = msgspec.structs.replace(found, health_path=plan.health_path)
    return msgspec.structs.replace(found, serves=False) if plan.job else found
