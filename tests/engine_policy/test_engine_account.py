"""What a deciding process tells of itself, who may tell it something, and what it relies on in its engine."""

import json
import os
import socket
import stat
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vigil_engine.attestation import Acceptance, Attestation, shown
from vigil_engine.contract import Fields, Function, differences
from vigil_engine.control import listen
from vigil_engine.decider import Decider
from vigil_engine.schedule import off_above
from vigil_engine.vllm import Table, load

QUICK = {**off_above(2, 3, "vllm"), "dwell_steps": 2, "rest_steps": 2, "most_rest_steps": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ("deep" * 30) / "engine"  # deeper than the address of a socket may be long
    made.mkdir(parents=True)
    return made


@pytest.fixture
def decider(folder: Path) -> Decider:
    return Decider(QUICK, Attestation(str(folder), "vllm", "0.32.0"))


def account(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / f"engine-{os.getpid()}.json").read_text()))


def ask(folder: Path, line: bytes) -> Any:
    at = os.open(folder, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(f"/proc/self/fd/{at}/engine-{os.getpid()}.sock")
        client.sendall(line)
        client.shutdown(socket.SHUT_WR)
        try:
            told = b"".join(iter(lambda: client.recv(65536), b""))
        except ConnectionResetError:  # it had not read all of ours
            told = b""
    os.close(at)
    return json.loads(told) if told else None


def test_account_tells_k_since_when_and_each_spell(folder: Path, decider: Decider) -> None:
    ks = []
    for running in (1, 1, 9, 9, 9, 1, 1):
        ks.append(decider.step(running))
        if ks[-1]:
            decider.attestation.acceptance.saw(3, 2)
    told = account(folder)
    assert ks == [3, 3, 3, 0, 0, 0, 3]
    assert (told["deciding"], told["k"], told["switches"], told["switches_last_minute"]) == (True, 3, 2, 2)
    assert [(one["k"], one["step"], one["to_step"], one["length"]) for one in told["spells"]] == [
        (3, 1, 4, 3.0),
        (0, 4, 7, None),
    ]
    assert told["since"]["step"] == 7
    assert decider.status()["acceptance"]["total"] == {
        "drafts": 4,
        "drafted_tokens": 12,
        "accepted_tokens": 8,
        "length": 3.0,
    }


def test_account_is_its_owners_alone_and_never_half_written(folder: Path, decider: Decider) -> None:
    decider.step(1)
    path = folder / f"engine-{os.getpid()}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in folder.iterdir()] == [path.name]


def test_account_that_cannot_be_written_costs_the_account_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    decider = Decider(QUICK, Attestation(str(tmp_path / "file" / "engine"), "vllm", ""))
    assert decider.step(1) == 3


def test_recent_acceptance_forgets_what_is_long_ago() -> None:
    counted = Acceptance()
    counted.saw(3, 3)
    counted.turn()
    counted.saw(3, 0)
    assert counted.recent() == [2, 6, 3]
    counted.turn()
    assert shown(counted.recent()) == {"drafts": 1, "drafted_tokens": 3, "accepted_tokens": 0, "length": 1.0}
    assert counted.total == [2, 6, 3]


def test_mode_is_in_force_at_the_next_step(folder: Path, decider: Decider) -> None:
    listen(str(folder), decider)
    assert stat.S_IMODE((folder / f"engine-{os.getpid()}.sock").stat().st_mode) == 0o600
    assert decider.step(1, decider.asked()) == 3
    answer = ask(folder, b'{"do": "off"}\n')
    assert (answer["mode"], answer["pending"], answer["k"]) == ("auto", "off", 3)
    assert decider.step(1, decider.asked()) == 0
    answer = ask(folder, b'{"do": "status"}\n')
    assert (answer["mode"], answer["pending"], answer["k"]) == ("off", None, 0)


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"off\n", b"[]\n", b'{"do": "exec"}\n', b'{"do": ["off"]}\n', b"\xff\n", b"[" * 5000]
)
def test_request_that_is_none_changes_nothing(folder: Path, decider: Decider, line: bytes) -> None:
    listen(str(folder), decider)
    answer = ask(folder, line)
    assert answer is None or "can be asked" in answer["error"]
    assert decider.asked() is None
    assert ask(folder, b'{"do": "status"}\n')["mode"] == "auto"


def test_table_answers_from_what_runs_and_not_from_what_a_step_schedules(decider: Decider) -> None:
    scheduler = types.SimpleNamespace(running=[1])
    table = Table(scheduler, [0, 3, 3, 0, 0], decider)
    assert [table[4], table[4]] == [3, 3]
    scheduler.running = [1, 2, 3]
    assert [table[1], table[1]] == [3, 0]
    assert len(table) == 5


def test_table_whose_decision_fails_gives_the_engines_own(folder: Path, decider: Decider) -> None:
    table = Table(object(), [0, 3, 0], decider)
    assert [table[1], table[2]] == [3, 0]
    told = account(folder)
    assert (told["deciding"], "no attribute 'running'" in told["errors"][0]) == (False, True)


class Engine:
    """Stands for a class of an engine."""

    kept: int

    def begin(self, load: int) -> int:
        return self.kept + load


@pytest.mark.parametrize(
    ("need", "said"),
    [
        (Function(f"{__name__}.Engine.begin", ("self", "load"), ("kept",)), []),
        (Function(f"{__name__}.Engine.begin", ("self", "batch")), [f"{__name__}.Engine.begin takes no batch"]),
        (Function(f"{__name__}.Engine.begin", (), ("lost",)), [f"{__name__}.Engine.begin does not use lost"]),
        (Function(f"{__name__}.Engine.end"), [f"{__name__}.Engine.end is not there (AttributeError: "]),
        (Fields(f"{__name__}.Engine", ("kept",)), []),
        (Fields(f"{__name__}.Engine", ("lost",)), [f"{__name__}.Engine has no lost"]),
        (Fields("no_such_engine.Scheduler", ("x",)), ["no_such_engine.Scheduler is not there (ModuleNotFoundError"]),
    ],
)
def test_contract_names_what_differs(need: Any, said: list[str]) -> None:
    found = differences([need])
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


# --- vLLM's plugin, with a vLLM of a few lines

SCHEDULER = """
class Scheduler:
    def __init__(self, vllm_config):
        self.vllm_config = vllm_config
        self.running = []
        self.num_spec_tokens = 3
        self.dynamic_sd_lookup = vllm_config.table

    def schedule(self):
        return self.dynamic_sd_lookup[len(self.running)]

    def make_spec_decoding_stats(self, stats, num_draft_tokens, num_accepted_tokens, request_id=""):
        return (num_draft_tokens, num_accepted_tokens)
"""
FILES = {
    "__init__.py": "",
    "v1/__init__.py": "",
    "v1/core/__init__.py": "",
    "v1/core/sched/__init__.py": "",
    "v1/core/sched/scheduler.py": SCHEDULER,
    "v1/core/sched/output.py": "class SchedulerOutput:\n    num_spec_tokens_to_schedule: int = 0\n",
    "config/__init__.py": "",
    "config/speculative.py": "class SpeculativeConfig:\n    num_speculative_tokens_per_batch_size = None\n",
}


@pytest.fixture
def vllm(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        path = tmp_path / "site" / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("VIGIL_ENGINE_DIR", str(folder))
    monkeypatch.setenv("VIGIL_ENGINE_SCHEDULE", json.dumps(QUICK))
    yield tmp_path / "site" / "vllm"
    for name in [one for one in sys.modules if one.partition(".")[0] == "vllm"]:
        del sys.modules[name]


def scheduler(table: Any, ranks: int = 1) -> Any:
    from vllm.v1.core.sched.scheduler import Scheduler  # type: ignore[import-not-found]  # noqa: PLC0415

    parallel = types.SimpleNamespace(data_parallel_size=ranks)
    return Scheduler(types.SimpleNamespace(table=table, parallel_config=parallel))


@pytest.mark.usefixtures("vllm")
def test_plugin_takes_the_table_over_once_and_counts_what_is_accepted(folder: Path) -> None:
    load()
    load()
    made = scheduler([0, 3, 3, 0])
    assert account(folder)["deciding"] is True
    made.running = [1, 2, 3]
    assert [made.schedule() for _ in range(3)] == [3, 0, 0]
    assert made.make_spec_decoding_stats(None, num_draft_tokens=3, num_accepted_tokens=2) == (3, 2)
    assert made.dynamic_sd_lookup.decider.attestation.acceptance.total == [1, 3, 2]


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize(
    ("table", "ranks", "why"),
    [
        (None, 1, "the server has no num_speculative_tokens_per_batch_size in its --speculative-config"),
        (None, 4, "vLLM drops it with data parallel 4"),
        ([0, 3, 3], 1, "k [0] is wanted, and num_speculative_tokens_per_batch_size has [3] up to the 2 requests"),
    ],
)
def test_plugin_refuses_an_engine_that_cannot_switch(folder: Path, table: Any, ranks: int, why: str) -> None:
    load()
    made = scheduler(table, ranks)
    assert made.dynamic_sd_lookup is table
    told = account(folder)
    assert (told["deciding"], why in told["refused"][0]) == (False, True)


def test_plugin_leaves_an_engine_of_another_form_as_it_was(folder: Path, vllm: Path) -> None:
    path = vllm / "v1/core/sched/scheduler.py"
    path.write_text(SCHEDULER.replace("num_draft_tokens", "drafted").replace("dynamic_sd_lookup", "spec_lookup"))
    load()
    assert scheduler([0, 3, 0]).spec_lookup == [0, 3, 0]
    refused = account(folder)["refused"]
    assert "vllm.v1.core.sched.scheduler.Scheduler.make_spec_decoding_stats takes no num_draft_tokens" in refused
    assert "vllm.v1.core.sched.scheduler.Scheduler.schedule does not use dynamic_sd_lookup" in refused


@pytest.mark.usefixtures("vllm")
def test_plugin_without_a_schedule_does_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIGIL_ENGINE_SCHEDULE")
    load()
    assert scheduler([0, 3, 0]).dynamic_sd_lookup == [0, 3, 0]
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("vllm")
def test_plugin_with_a_schedule_that_is_none_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIGIL_ENGINE_SCHEDULE", '{"schema": 7}')
    load()
    assert scheduler([0, 3, 0]).dynamic_sd_lookup == [0, 3, 0]
    assert account(folder)["refused"] == ["the schedule's schema is 7; 1 is known here"]
