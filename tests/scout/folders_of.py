"""What the scout says of a command's models, asked in this process as a host would be."""

import json
import os
from pathlib import Path
from typing import Any

from vigil.scout import desk


def asked(*models: dict[str, str], cwd: Path, env: dict[str, str] | None = None, **about: Any) -> list[dict[str, Any]]:
    """Return what was seen; it goes through JSON, as it does on its way from a host."""
    state = {"XDG_STATE_HOME": str(cwd / ".state"), "HOME": str(cwd), "HF_HOME": str(cwd / "hf"), **(env or {})}
    request = {
        "engine": "vllm",
        "words": ["vllm", "serve"],
        "models": list(models),
        "cwd": str(cwd),
        "env": state,
        **about,
    }
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = state["XDG_STATE_HOME"]
    try:
        answer = desk.answer(desk.question_of(request), ["models"])
    finally:
        del os.environ["XDG_STATE_HOME"]
        if before is not None:
            os.environ["XDG_STATE_HOME"] = before
    assert answer["troubles"] == []
    seen: list[dict[str, Any]] = json.loads(json.dumps(answer["models"]))
    return seen


def served(path: Path, **about: Any) -> dict[str, Any]:
    """Return what was seen of a model that is served."""
    return asked({"what": "model", "given": str(path)}, cwd=path.parent, **about)[0]


def drafted(path: Path, **about: Any) -> dict[str, Any]:
    """Return what was seen of a draft."""
    return asked({"what": "--speculative-config", "given": str(path)}, cwd=path.parent, **about)[0]
