"""Says why an attempt ended: rules as data, the root of a chained traceback, the fingerprint of a failure. Pure."""

from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.find import diagnose
from vigil.diagnosis.fingerprint import fingerprint

__all__ = ["Cause", "End", "diagnose", "fingerprint"]
