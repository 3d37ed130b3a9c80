"""Meaning: `step` turns one fact after another into a verdict. Pure; see `step`."""

from vigil.verdict.effects import AskToken, DumpStacks, Effect, Keep, Look, Probe, ReadMetrics
from vigil.verdict.report import report
from vigil.verdict.state import Asked, Judgement, State
from vigil.verdict.step import step
from vigil.verdict.words import EXIT_CODES, OVER, SERVING, Attempt, Evidence, PhaseSpan, Verdict, Word

__all__ = [
    "EXIT_CODES",
    "OVER",
    "SERVING",
    "AskToken",
    "Asked",
    "Attempt",
    "DumpStacks",
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
