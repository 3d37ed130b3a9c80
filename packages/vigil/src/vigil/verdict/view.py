"""One look at a state: how the rules learn of time, so that they need not run again before it can matter."""

import math

from vigil.engine_table import EngineTable
from vigil.policy import Policy
from vigil.verdict.state import State


class View:
    """A state as the rules see it.

    Invariant: whatever `passed` has said stays true until `next_s`, if nothing but time changes.
    """

    __slots__ = ("next_s", "now_s", "policy", "state", "table")

    def __init__(self, state: State, table: EngineTable) -> None:
        self.state = state
        self.table = table
        self.policy: Policy = state.asked.policy
        self.now_s = state.now_s
        self.next_s = math.inf

    def passed(self, at_s: float) -> bool:
        """Say whether the moment has come; remember it where it has not."""
        if self.now_s >= at_s:
            return True
        self.next_s = min(self.next_s, at_s)
        return False
