"""Vigil brings LLM inference servers up and tells the truth about them.

`watch(plan)` and `up(plan)` are the library; `Plan` says what to start or to watch; a `Verdict` is what comes back. They are
imported when first used, so that the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vigil.api import up, watch
    from vigil.errors import VigilError
    from vigil.plan import Plan
    from vigil.policy import Policy
    from vigil.verdict import Verdict, Word

__version__ = "0.1.0"
__all__ = ["Plan", "Policy", "Verdict", "VigilError", "Word", "up", "watch"]

_HOMES = {
    "up": ".api",
    "watch": ".api",
    "VigilError": ".errors",
    "Plan": ".plan",
    "Policy": ".policy",
    "Verdict": ".verdict",
    "Word": ".verdict",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'vigil' has no attribute {name!r}")
    return getattr(import_module(home, __name__), name)
