"""`--speculate`, and the flag that people asked for: what they make of a command, and where they are refused."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from vigil.attest.plugin import plugin_of
from vigil.cli.speculating import speculating
from vigil.errors import UsageError
from vigil.launcher.plugin import read_plugin
from vigil.plan import Plan
from vigil.speculation.vllm import ranges_of

CONFIG = {"method": "eagle3", "model": "/draft", "num_speculative_tokens": 3}
VLLM = ("vllm", "serve", "/model", "--speculative-config", json.dumps(CONFIG))
TWO: dict[str, Any] = {"schema": 1, "engine": "vllm", "k": 3, "tiers": [{"k": 3}, {"k": 0, "above": 8, "below": 6}]}
FLAG = "--speculative-disable-batch-threshold"


def made(*command: str, wish: str | None = "off-above:32") -> Plan:
    return speculating(Plan(command=command), wish)


def config_of(words: tuple[str, ...]) -> dict[str, Any]:
    return dict(json.loads(words[words.index("--speculative-config") + 1]))


def test_plan_without_a_wish_stays_as_it_is() -> None:
    plan = Plan(command=VLLM)
    assert speculating(plan, None) is plan


def test_off_above_asks_vllm_for_ranges_and_expects_the_schedule() -> None:
    plan = made(*VLLM, "--max-num-seqs", "128")
    assert config_of(plan.command) == {
        **CONFIG,
        "num_speculative_tokens_per_batch_size": [[1, 32, 3], [33, 126, 0], [127, 127, 3], [128, 65536, 0]],
    }
    held = json.loads(plan.schedule or "")
    assert held["tiers"] == [{"k": 3}, {"k": 0, "above": 32, "below": 24}]
    assert [one.partition("=")[0] for one in plan.expect] == ["speculate"]


@pytest.mark.parametrize(
    "words", [(FLAG, "32"), (f"{FLAG}=32",), (FLAG.replace("-", "_").replace("__", "--", 1), "32")]
)
def test_the_flag_that_people_asked_for_is_the_same_and_never_reaches_the_engine(words: tuple[str, ...]) -> None:
    plan = made(*VLLM, *words, wish=None)
    same = made(*VLLM)
    assert (plan.command, plan.schedule, plan.expect) == (same.command, same.schedule, same.expect)


def test_the_flag_is_taken_out_of_a_shells_text() -> None:
    plan = made("bash", "-c", f"exec {' '.join(VLLM[:4])} '{VLLM[4]}' {FLAG} 32", wish=None)
    assert FLAG not in plan.command[2]
    assert "num_speculative_tokens_per_batch_size" in plan.command[2]


def test_schedule_of_a_file_is_taken(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(TWO))
    plan = made(*VLLM, wish=str(tmp_path / "s.json"))
    assert json.loads(plan.schedule or "")["tiers"] == TWO["tiers"]


@pytest.mark.parametrize(
    ("command", "wish", "said"),
    [
        (VLLM, "off-above:0", "off above 0 running requests: 1 is the least"),
        (VLLM, "off_above:3", "--speculate 'off_above:3': give off-above:N"),
        (VLLM, "/nowhere.json", "--speculate /nowhere.json: No such file or directory"),
        (VLLM, "auto", "--speculate auto: no schedule was measured for this command yet"),
        (
            VLLM[:3],
            "off-above:3",
            "--speculate off-above:3: the command asks for no speculation (--speculative-config)",
        ),
        ((*VLLM, FLAG, "x"), None, f"{FLAG} 'x': give the number of running requests"),
        ((*VLLM, FLAG, "8"), "off-above:3", f"--speculate and {FLAG} are both given: leave one out"),
        ((*VLLM, "-dp", "2"), "off-above:3", "vLLM does not switch with --data-parallel-size 2"),
        ((*VLLM[:4], '{"method": "ngram"}'), "off-above:3", "does not say how many tokens to draft"),
        (
            (*VLLM[:4], '{"num_speculative_tokens_per_batch_size": [[1, 2, 3]]}'),
            "off-above:3",
            "of its own: leave one of them out",
        ),
        (
            (*VLLM[:3], "--speculative-config.method", "ngram"),
            "off-above:3",
            "give --speculative-config as one JSON object",
        ),
        (("llama-server", "-m", "m.gguf"), "off-above:3", "llama-server cannot switch speculation while it runs"),
        (("./serve.sh", FLAG, "8"), None, "no start of vLLM or SGLang is seen in this command"),
    ],
)
def test_what_cannot_be_switched_is_refused_in_one_line(command: tuple[str, ...], wish: str | None, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(*command, wish=wish)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"engine": "sglang"}, "the schedule is for sglang, and the command starts vllm"),
        (
            {"k": 5, "tiers": [{"k": 5}]},
            "the schedule was made for k 5, and the command asks for 3 draft tokens a step",
        ),
        ({"schema": 3}, "the schedule's schema is 3; 1 is known here"),
    ],
)
def test_schedule_for_something_else_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**TWO, **changed}))
    with pytest.raises(UsageError, match=said):
        made(*VLLM, wish=str(path))


@pytest.mark.parametrize("most", [None, 1, 2, 3, 8, 9, 10, 11, 256])
def test_ranges_are_what_vllm_takes_and_hold_every_k_where_there_is_room(most: int | None) -> None:
    ranges = ranges_of(TWO, [0, 3], most)
    assert ranges[0][0] == 1
    assert all(begin <= end for begin, end, _ in ranges)
    assert all(after[0] == before[1] + 1 for before, after in pairwise(ranges))
    reached = {k for begin, _, k in ranges if begin <= (most or 1024)}
    assert reached == ({0, 3} if most != 1 else {3})


def test_what_travels_is_an_installed_package_as_python_sees_it(tmp_path: Path) -> None:
    asked = plugin_of('{"schema": 1}', {"adaptive.json": "{}"})
    plugin = read_plugin(asked)
    assert plugin is not None
    assert {"vigil_engine/policy.py", "vigil_engine/vllm.py"} <= set(plugin.files)
    points = next(text for name, text in plugin.files.items() if name.endswith("entry_points.txt"))
    assert "[vllm.general_plugins]\nvigil-engine = vigil_engine.vllm:load" in points
    assert plugin_of(None, {}) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"files": {}},
        {"files": {"../../.bashrc": "x"}},
        {"files": {"vigil_engine/policy.py": 3}},
        {"name": "../x"},
        {"placed": {"../x.json": "{}"}},
        {"schedule": None},
        {"schedule": "a\0b"},
    ],
)
def test_request_that_holds_something_else_puts_nothing_in(changed: dict[str, Any]) -> None:
    asked = plugin_of("{}", {})
    assert asked is not None
    assert read_plugin({**asked, **changed}) is None
