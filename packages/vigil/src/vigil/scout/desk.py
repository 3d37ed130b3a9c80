"""Answer one request: look at each part, and say what was seen. A part that cannot be looked at is noted; the others go on."""

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple

from ..observer.redact import Redactor
from ..survey.interpreter import Place
from ..survey.look import strings
from . import config_files, folders, machine, parser

PARTS: Dict[str, Callable[["Question"], Any]] = {
    "parser": parser.see,
    "models": folders.see,
    "host": machine.see,
    "files": config_files.see,
}


class Question(NamedTuple):
    """What is asked. `words` is the whole command, `own` the words of the engine itself (behind its name), `before` those before.

    `models`: what the command names as models, each {"what": flag or "model", "given": its value, "revision": ...}.
    `packages`: the engine's own. `port`, `address`: where it would listen. `deep`: also what takes seconds.
    `files`: files of settings that the command names.
    """

    engine: str
    words: List[str]
    own: List[str]
    before: List[str]
    place: Place
    models: List[Dict[str, str]]
    packages: List[str]
    port: int
    address: str
    deep: bool
    files: List[str]


def main(request: Dict[str, Any]) -> None:
    """Answer one request on standard output: {"ok": {part: what was seen, ..., "troubles": [...], "took_s": {...}}}."""
    found = answer(question_of(request), request.get("parts") or list(PARTS))
    sys.stdout.write(json.dumps({"ok": found}) + "\n")
    sys.stdout.flush()


def question_of(request: Dict[str, Any]) -> Question:
    """Return the question that a request asks; what is missing in it is empty. `assigned`: what a shell sets before."""
    cwd = str(request.get("cwd") or os.getcwd())
    env = {**os.environ, **{str(name): str(value) for name, value in (request.get("env") or {}).items()}}
    for name, value in (request.get("assigned") or {}).items():
        env[str(name)] = Place(env, cwd).fill(str(value))
    return Question(
        engine=str(request.get("engine") or "generic"),
        words=strings(request.get("words")),
        own=strings(request.get("own")),
        before=strings(request.get("words"))[: int(request.get("before") or 0) or None],
        place=Place(env, cwd),
        models=[one for one in request.get("models") or [] if isinstance(one, dict)],
        packages=strings(request.get("packages")),
        port=int(request.get("port") or 0),
        address=str(request.get("address") or ""),
        deep=bool(request.get("deep")),
        files=strings(request.get("files")),
    )


def answer(question: Question, parts: List[str]) -> Dict[str, Any]:
    """Look at the parts that are asked for."""
    found: Dict[str, Any] = {"troubles": [], "took_s": {}}
    redactor = Redactor()
    for name in parts:
        began_s = time.monotonic()
        try:
            found[name] = PARTS[name](question)
        except Exception as error:
            text = "%s: %s: %s" % (name, type(error).__name__, str(error)[:300])
            found["troubles"].append(redactor.clean(text))
        found["took_s"][name] = round(time.monotonic() - began_s, 3)
    return found
