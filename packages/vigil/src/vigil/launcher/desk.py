"""What is done on the server's host when somebody asks: start, stop, list, show. One request, one answer, both JSON lines."""

import json
import os
import sys
from importlib import import_module
from typing import Any, Callable, Dict

from . import launch, starts, state, stop, taken
from .tail import tail


def note(name: str, folder: str, verdict: Any) -> Dict[str, Any]:
    """Keep a verdict beside the start that it is about, where that start still exists."""
    owner = os.path.realpath(state.server_folder(name)) + os.sep
    if os.path.realpath(folder).startswith(owner) and os.path.isdir(folder):
        state.write_json(os.path.join(folder, "verdict.json"), verdict)
        starts.note_ready(folder, verdict)
    return {}


def around(**asked: Any) -> Dict[str, Any]:
    """Look at what the host shows beside a server's log. Who asks for something else does not load what that takes."""
    found: Dict[str, Any] = import_module("..survey.around", __package__).around(**asked)
    return found


def attest(**asked: Any) -> Dict[str, Any]:
    """Ask a server's processes what they run; who asks for something else does not load what that takes."""
    found: Dict[str, Any] = import_module("..survey.attested", __package__).attest(**asked)
    return found


def switch(**asked: Any) -> Dict[str, Any]:
    """Tell a server whether to speculate, and what it has in force; who asks for something else does not load that."""
    found: Dict[str, Any] = import_module("..survey.switch", __package__).switch(**asked)
    return found


VERBS: Dict[str, Callable[..., Dict[str, Any]]] = {
    "launch": launch.launch,
    "stop": stop.stop,
    "hold": stop.hold,
    "show": state.show,
    "list": state.list_servers,
    "note": note,
    "tail": tail,
    "compare": starts.compare,
    "listener": taken.listener,
    "around": around,
    "attest": attest,
    "switch": switch,
}


def answer(request: Dict[str, Any]) -> Dict[str, Any]:
    """Carry one request out; return {"ok": value} or {"refused": kind, "text": line}."""
    try:
        return {"ok": VERBS[request["verb"]](**request.get("args", {}))}
    except state.Refused as error:
        return {"refused": error.kind, "text": str(error)}
    except OSError as error:
        where = error.filename or request.get("verb")
        return {"refused": "state", "text": "%s: %s" % (os.fsdecode(where) if where else "?", error.strerror or error)}


def main(request: Dict[str, Any]) -> None:
    """Answer one request on standard output; `request` came with the program text."""
    sys.stdout.write(json.dumps(answer(request)) + "\n")
    sys.stdout.flush()
