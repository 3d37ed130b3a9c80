"""See the models' folders and files."""

from typing import TYPE_CHECKING, Any, Dict, List

if TYPE_CHECKING:
    from .desk import Question


def see(question: "Question") -> List[Dict[str, Any]]:
    """Return what was seen."""
    _ = question
    return []
