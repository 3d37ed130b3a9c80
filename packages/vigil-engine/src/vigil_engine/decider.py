"""The decision of each step: the mode that was asked for, the policy, and the account of it."""

from typing import Any, Dict, Optional

from .attestation import Attestation
from .policy import State, k_of, step, told
from .schedule import parse


class Decider:
    """What decides k in one process. Deterministic in the loads and in the modes given at the steps."""

    def __init__(self, held: Dict[str, Any], attestation: Attestation) -> None:
        self.schedule = parse(held)
        self.attestation = attestation
        self.state = State()
        self._asked: Optional[str] = None
        attestation.decides(self.schedule, held.get("measured_on"))

    def ask(self, mode: str) -> None:
        """Take a mode from outside; it is in force from the next step on."""
        self._asked = mode

    def asked(self) -> Optional[str]:
        """Return the mode that was asked for since the last call: for an engine whose ranks must be told it together."""
        mode, self._asked = self._asked, None
        return mode

    def step(self, load: int, mode: Optional[str] = None) -> int:
        """Return the k of the next step, with `load` running requests; `mode`: told to all ranks at this step."""
        state = self.state if mode is None else told(self.state, mode)
        self.state = state = step(self.schedule, state, load)
        k = k_of(self.schedule, state)
        self.attestation.saw(state, k, load)
        return k

    def status(self) -> Dict[str, Any]:
        """Return the account as it is now, with the mode that waits for the next step."""
        pending = self._asked
        return {**self.attestation.told(), "pending": pending if pending != self.state.mode else None}
