"""Meaning: `step` turns one fact after another into a verdict. Pure; see `step`."""

from vigil.verdict.effects import (
    AskToken,
    Attest,
    DumpStacks,
    Effect,
    Keep,
    Look,
    MeasureSpeculation,
    Probe,
    ReadMetrics,
)
from vigil.verdict.expected import Expectation, read_expectation
from vigil.verdict.report import report
from vigil.verdict.state import Asked, Judgement, State
from vigil.verdict.step import step
from vigil.verdict.words import EXIT_CODES, OVER, SERVING, Attempt, Evidence, Expected, PhaseSpan, Verdict, Word

__all__ = [
    "EXIT_CODES",
    "OVER",
    "SERVING",
    "AskToken",
    "Asked",
    "Attempt",
    "Attest",
    "DumpStacks",
    "Effect",
    "Evidence",
    "Expectation",
    "Expected",
    "Judgement",
    "Keep",
    "Look",
    "MeasureSpeculation",
    "PhaseSpan",
    "Probe",
    "ReadMetrics",
    "State",
    "Verdict",
    "Word",
    "read_expectation",
    "report",
    "step",
]
