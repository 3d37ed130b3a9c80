"""Says why an attempt ended, or where it stands: rules as data, a reader of tracebacks, a failure's fingerprint. Pure."""

from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.find import Findings, diagnose, examine
from vigil.diagnosis.fingerprint import fingerprint
from vigil.diagnosis.load import load_rules
from vigil.diagnosis.stuck import Stuck
from vigil.diagnosis.wanted import Wanted, WantedTexts, wanted

__all__ = [
    "Cause",
    "End",
    "Findings",
    "Stuck",
    "Wanted",
    "WantedTexts",
    "diagnose",
    "examine",
    "fingerprint",
    "load_rules",
    "wanted",
]
