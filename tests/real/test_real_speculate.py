"""`vigil up --speculate` with a real vLLM on the CPU: speculation is dropped under load and taken up after it, and it is told."""

import json
import threading
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENGINES, Site, until

from vigil_draft_smollm2 import DRAFT
from vigil_draft_smollm2 import PROMPTS as HELD_OUT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]
HOME = ENGINES / "vllm"
FLAGS = ("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "1024", "--max-num-seqs", "6")
ENV = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
# A step takes 20 to 100 ms here: the default dwell and rest would take minutes.
QUICK = {
    "schema": 1, "engine": "vllm", "k": 3, "tiers": [{"k": 3}, {"k": 0, "above": 2, "below": 2}],
    "dwell_steps": 4, "rest_steps": 4, "most_rest_steps": 16, "measured_on": None,
}  # fmt: skip
KEPT_ACCEPTANCE = (
    0.85  # of what it was before the spell without speculation: some hundred drafts know it within a tenth
)


@pytest.fixture
def server(site: Site, hf_model: Path) -> list[str]:
    """The command line of vLLM with the kept draft, on the test's port."""
    if not (HOME / ".installed").is_file():
        pytest.skip("no vLLM here: tests/real/install-vllm.sh installs it")
    asked = {"method": "eagle3", "model": str(DRAFT), "num_speculative_tokens": 3}
    program = (str(HOME / "bin" / "vllm"), "serve", str(hf_model))
    return [*program, *FLAGS, "--port", str(site.port), "--speculative-config", json.dumps(asked)]


@pytest.fixture
def quick(tmp_path: Path) -> str:
    path = tmp_path / "quick.json"
    path.write_text(json.dumps(QUICK))
    return str(path)


@pytest.fixture(scope="module")
def prompts() -> list[list[dict[str, str]]]:
    return [json.loads(line)["messages"] for line in Path(HELD_OUT).read_text().splitlines()[:24]]


def answer(site: Site, messages: list[dict[str, str]], tokens: int) -> str:
    """Return the server's greedy answer."""
    body = {"messages": messages, "max_tokens": tokens, "temperature": 0}
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{site.url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as reply:  # noqa: S310
        return str(json.load(reply)["choices"][0]["message"]["content"])


def together(site: Site, wanted: list[tuple[list[dict[str, str]], int]]) -> list[threading.Thread]:
    """Ask for several answers at once."""
    threads = [threading.Thread(target=answer, args=(site, *one), daemon=True) for one in wanted]
    for thread in threads:
        thread.start()
    return threads


def spec(site: Site, do: str = "status") -> dict[str, Any]:
    """Return what the one deciding process says to `vigil spec`."""
    done = site("spec", "s", do, "--json")
    assert done.rc == 0, done.out + done.err
    (told,) = json.loads(done.out)["processes"]
    return dict(told)


def account(site: Site) -> dict[str, Any]:
    """Return the account as it lies on the disk: for looking often."""
    (path,) = (site.state / "vigil/servers/s/current/engine").glob("engine-*.json")
    return dict(json.loads(path.read_text()))


def length_between(before: dict[str, Any], after: dict[str, Any]) -> float:
    """Return the tokens a step between two accounts."""
    counts = [one["acceptance"]["total"] for one in (before, after)]
    return 1 + (counts[1]["accepted_tokens"] - counts[0]["accepted_tokens"]) / (
        counts[1]["drafts"] - counts[0]["drafts"]
    )


def test_speculation_is_dropped_under_load_taken_up_after_it_and_told(
    site: Site, server: list[str], quick: str, prompts: list[list[dict[str, str]]]
) -> None:
    done = site.watch("vllm-speculate", *server, options=("--speculate", quick), env=ENV).end()
    assert (done.rc, done.words) == (0, ["ready"]), done.err + done.out
    (met,) = done.verdict["expectations"]
    assert (met["met"], met["expectation"].partition("=")[0]) == (True, "speculate")

    start = spec(site)
    alone = [answer(site, one, 48) for one in prompts[:3]]
    before = spec(site)
    assert (before["deciding"], before["mode"], before["k"], before["switches"]) == (True, "auto", 3, 0)

    # One request lives through the load of four others, and beyond it.
    long = together(site, [(prompts[4], 320)])
    crowd = together(site, [(one, 40) for one in prompts[5:9]])
    until(lambda: account(site)["k"] == 0, "the load to drop speculation", 60.0)
    for thread in crowd:
        thread.join(120)
    until(lambda: account(site)["k"] == 3, "speculation to be taken up", 60.0)
    resumed = spec(site)
    for thread in long:
        thread.join(120)
    through = spec(site)
    assert [one["k"] for one in through["spells"]] == [3, 0]
    assert [one["load"] > 2 for one in (through["spells"][1], through["since"])] == [True, False]
    assert through["spells"][1]["drafts"] <= 5  # those that were under way when it was dropped

    again = [answer(site, one, 48) for one in prompts[:3]]
    after = spec(site)
    assert again == alone
    assert length_between(through, after) > KEPT_ACCEPTANCE * length_between(start, before)
    long_after = length_between(resumed, through)
    assert long_after > 1.5, f"what lived through the spell accepts {long_after:.2f} tokens a step"

    spec(site, "off")
    assert answer(site, prompts[0], 24)
    off = spec(site)
    assert (off["mode"], off["k"], off["acceptance"]["spell"]["length"]) == ("off", 0, None)
    spec(site, "on")
    for thread in together(site, [(one, 24) for one in prompts[5:9]]):
        thread.join(120)
    on = spec(site)
    assert (on["mode"], on["k"], max(on["loads"]) > 2) == ("on", 3, True)
    assert spec(site, "auto")["pending"] == "auto"
    assert answer(site, prompts[0], 8)
    told = spec(site)
    assert (told["mode"], told["refused"], told["errors"]) == ("auto", [], [])
    steps = [one["step"] for one in (*told["spells"], told["since"])]
    assert all(later - earlier >= QUICK["dwell_steps"] for earlier, later in pairwise(steps))  # type: ignore[operator]
    site("stop", "s")
