"""See the files of settings that a command names with `--config`: their text, or why there is none."""

import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..survey.digest import read_small
from ..survey.interpreter import elsewhere
from .folders import moved

if TYPE_CHECKING:
    from .desk import Question

FILE_BYTES = 256 << 10
MOST_FILES = 4


def see(question: "Question") -> Optional[List[Dict[str, Any]]]:
    """Return what was seen of each file, as `FileSeen`s; None where the command runs elsewhere: its paths are not ours."""
    return None if elsewhere(question.before) else [_seen(one, question) for one in question.files[:MOST_FILES]]


def _seen(given: str, question: "Question") -> Dict[str, Any]:
    if moved(given, question) or "$" in given:
        return {"given": given}
    path = question.place.resolve(given)
    data = read_small(path, FILE_BYTES)
    if data is not None:
        return {"given": given, "text": data.decode("utf-8", "replace")}
    if not os.path.exists(path):
        return {"given": given, "trouble": "there is no such file", "sure": True}
    return {"given": given, "trouble": "it is no file that can be read, or larger than %d bytes" % FILE_BYTES}
