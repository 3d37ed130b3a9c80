"""See the host."""

from typing import TYPE_CHECKING, Any, Dict

if TYPE_CHECKING:
    from .desk import Question


def see(question: "Question") -> Dict[str, Any]:
    """Return what was seen."""
    _ = question
    return {}
