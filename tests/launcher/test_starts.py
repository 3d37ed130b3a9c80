"""The starts that are kept: the good ones outlive the failed ones, and two are held against each other."""

import json
from pathlib import Path
from typing import Any

import pytest
from desks import Host, RefusedError, wait_for

READY = {"verdict": "ready"}
CRASHED = {"verdict": "crashed", "attempts": [{"n": 1, "ready_s": None}]}


def start(host: Host, verdict: dict[str, Any] | None, plan: str = "p") -> dict[str, Any]:
    """Make one start that ends at once, and note what became of it."""
    started = host.launch("true", plan={"plan_id": plan}, keep={})
    wait_for(lambda: _snapshot(started).get("whole"), "a snapshot")
    host.ended(started)
    if verdict is not None:
        host.ask("note", name="s1", folder=started["folder"], verdict=verdict)
    return started


def _snapshot(started: dict[str, Any]) -> dict[str, Any]:
    path = Path(started["folder"]) / "snapshot.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    assert isinstance(found, dict)
    return found


def numbers(host: Host) -> list[int]:
    starts = host.state / "vigil" / "servers" / "s1" / "starts"
    return sorted(int(path.name[:6]) for path in starts.iterdir())


def imitate(host: Host, count: int, verdict: dict[str, Any] | None, plan: str = "p") -> None:
    """Lay `count` more starts beside the real ones, as they would be kept."""
    starts = host.state / "vigil" / "servers" / "s1" / "starts"
    for number in range(numbers(host)[-1] + 1, numbers(host)[-1] + 1 + count):
        folder = starts / f"{number:06d}-20261130T000000"
        folder.mkdir()
        (folder / "plan.json").write_text(json.dumps({"plan_id": plan}))
        (folder / "server.log").write_text("a long log")
        (folder / "snapshot.json").write_text("{}")
        if verdict is not None:
            (folder / "verdict.json").write_text(json.dumps(verdict))


def test_good_start_outlives_any_number_of_failed_ones(host: Host) -> None:
    good = start(host, READY)
    imitate(host, 40, CRASHED)
    answer = start(host, CRASHED)

    assert numbers(host) == [1, *range(23, 43)]
    assert answer["good"] is True
    assert _snapshot(good)["whole"] is True
    assert not (Path(good["folder"]) / "server.log").exists()  # its log went with the others
    assert host.ask("compare", name="s1")["before"]["number"] == 1


def test_newest_three_good_starts_of_each_plan_are_kept(host: Host) -> None:
    start(host, READY, "a")
    imitate(host, 5, READY, "a")
    imitate(host, 2, READY, "b")
    imitate(host, 25, CRASHED, "a")
    start(host, CRASHED, "a")
    assert numbers(host) == [4, 5, 6, 7, 8, *range(15, 35)]


def test_start_that_became_ready_stays_one_whatever_is_noted_later(host: Host) -> None:
    first = start(host, READY)
    host.ask("note", name="s1", folder=first["folder"], verdict={"verdict": "crashed", "attempts": []})
    second = start(host, {"verdict": "crashed", "attempts": [{"n": 1, "ready_s": 3.0}]})

    assert (first["good"], second["good"]) == (False, True)
    assert host.ask("compare", name="s1", b="2")["before"]["number"] == 1
    start(host, None)
    assert host.ask("compare", name="s1")["before"]["number"] == 2


def test_same_plan_is_compared_with_before_a_newer_other_one(host: Host) -> None:
    start(host, READY, "a")
    start(host, READY, "b")
    start(host, CRASHED, "a")
    assert host.ask("compare", name="s1")["before"]["number"] == 1
    start(host, CRASHED, "c")
    assert host.ask("compare", name="s1")["before"]["number"] == 2


def test_first_start_has_nothing_to_be_compared_with(host: Host) -> None:
    assert start(host, CRASHED)["good"] is False
    assert host.ask("compare", name="s1")["before"] is None


def test_starts_are_named_by_number_or_time(host: Host) -> None:
    start(host, READY)
    imitate(host, 1, CRASHED)
    for text in ("2", "000002", "20261130T000000", "20261130T0000", "000002-20261130T000000"):
        assert host.ask("compare", name="s1", a="1", b=text)["after"]["number"] == 2


@pytest.mark.parametrize("text", ["3", "x", "", " ", "0", "-1", "99999999999999", "../../x", "\0", "\uff11"])
def test_start_that_is_not_there_is_refused_with_those_that_are(host: Host, text: str) -> None:
    start(host, READY)
    with pytest.raises(RefusedError, match=r"there are 1 \(2\d{7}T\d{6}, ready\)") as refused:
        host.ask("compare", name="s1", a=text)
    assert refused.value.kind == "usage"


def test_time_that_fits_several_starts_is_refused(host: Host) -> None:
    start(host, READY)
    imitate(host, 2, CRASHED)
    with pytest.raises(RefusedError, match=r"2 starts of s1 fit 20261130T0000"):
        host.ask("compare", name="s1", a="20261130T0000")


@pytest.mark.parametrize("name", ["nobody", "../x", ""])
def test_name_that_is_not_known_is_refused(host: Host, name: str) -> None:
    start(host, READY)
    with pytest.raises(RefusedError):
        host.ask("compare", name=name)


def test_broken_state_of_a_start_is_no_good_one(host: Host) -> None:
    first = start(host, None)
    for text in ("", "[", "3", '{"attempts": 3}', '{"attempts": [3]}', '{"verdict": ["ready"]}'):
        (Path(first["folder"]) / "verdict.json").write_text(text)
        assert host.ask("compare", name="s1")["after"]["ready"] is False
