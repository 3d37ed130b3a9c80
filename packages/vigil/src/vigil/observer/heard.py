"""Who of a server's Python processes said what it runs, and why the others did not."""

import os
from typing import Any, Dict, List, Optional, Sequence

from .account import VALUE_CHARS
from .attesters import Answer
from .life import ATTESTERS, state_folder
from .named import MASK
from .process import read_argv, read_environ, read_stat
from .redact import Redactor, is_secret_name
from .stacks import dump, find_tool, is_python

MOST_PROCESSES = 256
STOPPED = "Tt"
NOTHING_LOADED = "it loaded nothing of the engine"
_WORDS = {
    "silent": "it did not answer in time: it holds its interpreter, or hangs",
    "gone": "it closed without an answer",
    "foreign": "another user's program listens at its socket",
    "broken": "what it answered is no account",
    "many": "it was not asked: there are too many processes",
}


def processes(
    answers: List[Answer], known: Dict[int, str], redactor: Redactor, *, launched: bool, uid: Optional[int] = None
) -> List[Dict[str, Any]]:
    """Return each process of the server: one that answered, or is a Python and did not, and why not.

    `uid`: of the user whose sockets are asked.
    """
    answered = {answer.pid: answer for answer in answers}
    found = []
    order = sorted(
        answered, key=lambda one: not answered[one].error
    )  # where not all fit, who said nothing must be told
    for pid in [*(pid for pid in known if pid not in answered), *order][:MOST_PROCESSES]:
        answer = answered.get(pid)
        title = known.get(pid) or " ".join(read_argv(pid))
        if not title:
            continue  # it ended meanwhile
        error = _why_silent(pid, uid, launched=launched) if answer is None else _WORDS.get(answer.error, "")
        if answer is not None and answer.error == "silent":
            error += _place_of(pid)
        if answer is None and not error:
            continue  # no Python
        shown = redactor.clean(title)[:VALUE_CHARS]
        marks = answer.told.get("marks") if answer is not None else None
        found.append({"pid": pid, "title": shown, "error": redactor.clean(error), "marks": _marks(marks, redactor)})
    return sorted(found, key=lambda one: one["pid"])


def _place_of(pid: int) -> str:
    """Return where a process that does not answer stands: whether it was stopped, and what py-spy sees, which needs no answer."""
    stat = read_stat(pid)
    if stat is not None and stat.state in STOPPED:
        return "; it is stopped, by a signal or a debugger"
    tool = find_tool(pid)
    frames = dump(tool, pid)[0] if tool else []
    return "; py-spy sees it in %s" % frames[0] if frames else ""


def _why_silent(pid: int, uid: Optional[int], *, launched: bool) -> str:
    """Return why a process has no attester; "" where it is no Python."""
    if not is_python(pid):
        return ""
    if not launched:
        return "vigil did not start it, so that no attester is in it"
    if "VIGIL_ATTEST" not in dict(read_environ(pid)):
        return "it was not given the attester (its environment was replaced, or overwritten by its title)"
    if _ignores_path(read_argv(pid)):
        return "it ignores PYTHONPATH, or has no site module (-I, -E, -S)"
    if uid is not None and _uid_of(pid) not in (uid, None):
        return "it runs as another user, who cannot open a socket for its attester"
    return _why_hidden(dict(read_environ(pid)).get("PYTHONPATH", "")) or NOTHING_LOADED


def _uid_of(pid: int) -> Optional[int]:
    try:
        return os.stat("/proc/%d" % pid).st_uid
    except OSError:
        return None


def _ignores_path(argv: Sequence[str]) -> bool:
    """Say whether an interpreter's own options, which end where its program begins, keep the attester out."""
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word == "-" or word.startswith("--"):
            return False
        for at, letter in enumerate(word[1:], 1):
            if letter in "IES":
                return True
            if letter in "cm":
                return False
            if letter in "WX":  # what follows is its value
                if at == len(word) - 1:
                    next(words, None)
                break
    return False


def _why_hidden(python_path: str) -> str:
    """Return why the attester is not what an interpreter with that path loads; "" where it is."""
    ours = os.path.join(state_folder(), ATTESTERS) + os.sep
    for folder in python_path.split(os.pathsep):
        if folder.startswith(ours):
            return ""
        if folder and os.path.isfile(os.path.join(folder, "sitecustomize.py")):
            return "another sitecustomize (%s) stands before the attester on its PYTHONPATH" % folder
    return "its PYTHONPATH was set anew, without the attester"


def _marks(value: Any, redactor: Redactor) -> Dict[str, str]:
    if not isinstance(value, dict):
        return {}
    found = {str(name)[:200]: one for name, one in value.items() if isinstance(one, str)}
    return {name: MASK if is_secret_name(name) else redactor.clean(one)[:VALUE_CHARS] for name, one in found.items()}
