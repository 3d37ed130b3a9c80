"""Meaning: `step` turns one fact after another into a verdict. Pure; see `step`."""

from .effects import AskToken, Effect, Keep, Look, Probe, ReadMetrics
from .report import report
from .state import Asked, Judgement, State
from .step import step
from .words import EXIT_CODES, OVER, SERVING, Attempt, Evidence, PhaseSpan, Verdict, Word

__all__ = [
    "EXIT_CODES",
    "OVER",
    "SERVING",
    "AskToken",
    "Asked",
    "Attempt",
    "Effect",
    "Evidence",
    "Judgement",
    "Keep",
    "Look",
    "PhaseSpan",
    "Probe",
    "ReadMetrics",
    "State",
    "Verdict",
    "Word",
    "report",
    "step",
]
