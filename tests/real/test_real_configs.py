"""What we say of JSON for vLLM's classes, held against the classes of the installed vLLM: nothing that it takes is refused."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENGINES

from vigil.preflight.config_values import wanted
from vigil.preflight.seen_parser import ParserSeen
from vigil.scout import desk
from vigil.supervise.ahead import sight_of

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]
PYTHON = ENGINES / "vllm" / "bin" / "python"
VALUES: tuple[Any, ...] = (True, 0, 1, 3, 2.5, "x", "true", "4", [1], ["a"], {"a": 1}, None, "FULL", "kv_both", "none")
# Runs in vLLM's Python: for each [class, JSON] whether pydantic takes it. A class is known by its name, in whichever file.
ASK = """
import importlib, json, pkgutil, sys
import vllm.config
from pydantic import TypeAdapter
homes = [vllm.config, *(importlib.import_module("vllm.config." + one.name) for one in pkgutil.iter_modules(vllm.config.__path__))]
def taken(owner, text):
    try:
        TypeAdapter(next(getattr(one, owner) for one in homes if hasattr(one, owner))).validate_json(text)
    except Exception:
        return False
    return True
print(json.dumps([taken(*one) for one in json.load(sys.stdin)]))
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParserSeen:
    if not PYTHON.exists():
        pytest.skip("no vLLM here: tests/real/install-vllm.sh installs it")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    words = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", "m"]
    asked = {"engine": "vllm", "words": words, "cwd": str(tmp_path)}
    parser = sight_of(desk.answer(desk.question_of(asked), ["parser"])).parser
    assert parser is not None
    return parser


def test_no_value_that_vllm_takes_is_refused(seen: ParserSeen) -> None:
    asked, refused = [], []
    for owner, config in (seen.configs or {}).items():
        asked.append((owner, json.dumps({"no_field_of_it": 1})))
        refused.append(config.closed)
        for name, field in config.fields.items():
            for value in (*VALUES, *(field.choices or ())):
                asked.append((owner, json.dumps({name: value})))
                refused.append(wanted(value, field) is not None)

    told = subprocess.run([PYTHON, "-c", ASK], input=json.dumps(asked).encode(), capture_output=True, check=True)
    taken = json.loads(told.stdout.splitlines()[-1])

    assert [one for one, ours, theirs in zip(asked, refused, taken, strict=True) if ours and theirs] == []
    assert sum(refused) > 1000  # of some 3500: the rest is not judged, or is right
