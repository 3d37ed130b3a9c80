"""What we say of JSON for vLLM's classes, held against the classes of the installed vLLM: nothing that it takes is refused."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENGINES

from vigil.preflight.config_text import FILLED, read
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


# Runs in vLLM's Python: what PyYAML makes of each file, names and values, null where it takes none.
READ = """
import json, sys, yaml
def told(text):
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else None
print(json.dumps([told(one) for one in json.load(sys.stdin)], default=str))
"""
WORDS = ("8000", "0.9", "yes", "Off", "~", "'a b'", '"c: d"', "1_000", "1e3", "1.5e+3", "4k", "http://h:80/x", "a b # c", "- x",
         "[a, 'b', 2.5]", "{a: 1, b: [c]}", '{"k": true}', "[]", "'it''s'", "a:b", ".5", "-1", "x: ", "[a", "'open")  # fmt: skip


@pytest.mark.usefixtures("seen")
def test_settings_are_read_as_pyyaml_reads_them() -> None:
    texts = [
        f"one: {first}\ntwo:\n  - {second}\n  - z\nthree:\n  four: {first}\n" for first in WORDS for second in WORDS
    ]
    told = subprocess.run([PYTHON, "-c", READ], input=json.dumps(texts).encode(), capture_output=True, check=True)

    for text, theirs in zip(texts, json.loads(told.stdout), strict=True):
        ours = {one.key: one.value for one in read(text).entries if one.value != FILLED}
        if theirs is not None:
            assert ours == {name: value for name, value in theirs.items() if name in ours}, text
