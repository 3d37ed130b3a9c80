"""A load that several processes of the client share, with the real command line, against the streaming fake."""

import json
import os
import signal
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_stream import Fake, fake

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from vigil_cli import Running, Vigil, until

from vigil.bench.load import Share
from vigil.bench.messages import packed, unpacked
from vigil.bench.pulse import Heart, Pulse, worst
from vigil.bench.reply import Failure, Reply
from vigil.bench.summary import Seen, notes_on

QUICK = ("--repeats", "1", "--input", "32", "--output", "16")


@pytest.fixture
def vigil(tmp_path: Path) -> Iterator[Vigil]:
    ours = Vigil(tmp_path)
    yield ours
    ours.close()


def measured(done: Any) -> dict[str, Any]:
    """Return the one row of a measurement."""
    assert done.rc == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert len(rows) == 1
    found: dict[str, Any] = rows[0]
    return found


def test_processes_share_one_load_and_give_one_set_of_figures(vigil: Vigil) -> None:
    with fake("--step", "0.005", "--log-prompts") as server:
        done = vigil(
            "bench", server.url, "--concurrency", "5", *QUICK, "--requests", "41", "--processes", "3", "--json"
        )
        seen = server.seen()

    row = measured(done)
    assert (row["sent"], row["ended"], row["failures"], row["output_tokens"]) == (41, 41, {}, 16)
    assert row["output_per_s"] * row["window_s"] == pytest.approx(41 * 16, rel=0.02)
    assert row["tpot_s"]["p50"] == pytest.approx(0.005, rel=0.2)
    assert row["client"]["processes"] == 3
    assert row["serve"]["max_concurrent_requests"] == seen["most_running"] == 5
    prompts = seen["prompts"][-41:]
    assert len(set(prompts)) == 41


def test_processes_find_a_steady_state_at_a_concurrency_and_send_at_a_rate(vigil: Vigil) -> None:
    with fake("--step", "0.004") as server:
        closed = vigil(
            "bench", server.url, "--concurrency", "6", *QUICK, "--seconds", "1", "--processes", "2", "--json"
        )
        at_rate = vigil("bench", server.url, "--rate", "100", *QUICK, "--seconds", "3", "--processes", "2", "--json")

    row = measured(closed)
    assert row["steady"]
    assert row["output_per_s"] == pytest.approx(6 * 16 / (16.5 * 0.004), rel=0.15)
    assert measured(at_rate)["requests_per_s"] == pytest.approx(100, rel=0.25)  # 300 arrivals: 6 % by chance


def test_no_more_processes_are_started_than_have_something_to_do(vigil: Vigil) -> None:
    with fake("--step", "0.002") as server:
        done = vigil("bench", server.url, "--concurrency", "1", *QUICK, "--requests", "4", "--processes", "4", "--json")

    assert measured(done)["client"]["processes"] == 1


def begun(vigil: Vigil, server: Fake, *more: str) -> Running:
    """Return a measurement by three processes that is under way."""
    loads = ("--concurrency", "6", "--seconds", "60", "--repeats", "1", "--input", "16", "--output", "8")
    running = vigil.start("bench", server.url, *loads, "--processes", "3", *more)
    until(lambda: server.seen()["most_running"] >= 6, "six requests at once")
    return running


def ours(vigil: Vigil, running: Running) -> list[int]:
    """Return the pids of the client processes."""
    return [pid for pid in vigil.processes() if pid != running.pid]


def test_a_client_process_that_dies_is_told_in_one_line(vigil: Vigil) -> None:
    with fake("--step", "0.004") as server:
        running = begun(vigil, server)
        hands = ours(vigil, running)
        os.kill(hands[0], signal.SIGKILL)
        done = running.end()

    assert len(hands) == 3
    assert done.rc == 1
    last = done.err.splitlines()[-1]
    assert last.startswith("vigil: client process ")
    assert last.endswith("of 3 was killed by SIGKILL; finished rows are kept")
    assert "Traceback" not in done.err
    assert vigil.processes() == []


def test_a_kill_of_the_parent_leaves_no_client_process(vigil: Vigil) -> None:
    with fake("--step", "0.004") as server:
        running = begun(vigil, server)
        assert len(ours(vigil, running)) == 3
        running.signal(signal.SIGKILL)
        running.end()
        until(lambda: not vigil.processes(), "the end of all client processes")


def test_ctrl_c_ends_all_processes_with_one_line(vigil: Vigil) -> None:
    with fake("--step", "0.004") as server:
        running = begun(vigil, server)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of them
        done = running.end()

    assert done.rc == 130
    assert done.err.splitlines()[-1].startswith("vigil: interrupted; finished rows are kept")
    assert "Traceback" not in done.err
    assert vigil.processes() == []


def test_no_key_stands_in_a_command_line_of_ours(vigil: Vigil) -> None:
    vigil.env["KEY"] = "sk-very-secret-12345"
    with fake("--step", "0.004") as server:
        running = begun(vigil, server, "--api-key-env", "KEY")
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in ours(vigil, running)]
        running.signal(signal.SIGINT)
        running.end()

    assert len(lines) == 3
    assert not any(b"very-secret" in line for line in lines)


@pytest.mark.parametrize("words", ["0", "65"])
def test_a_number_of_processes_that_cannot_be_is_refused(vigil: Vigil, words: str) -> None:
    done = vigil("bench", "http://127.0.0.1:9", "--processes", words)

    assert (done.rc, done.err.count("\n"), f"--processes {words}: give 1 to 64" in done.err) == (2, 1, True)


@pytest.mark.parametrize(("total", "of"), [(1, 1), (7, 3), (2, 5), (4096, 64)])
def test_shares_are_the_whole_and_nearly_equal(total: int, of: int) -> None:
    parts = [Share(number=number, of=of).part(total) for number in range(of)]

    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1


def test_a_reply_is_the_same_on_the_other_side() -> None:
    reply = Reply(12.5)
    reply.arrivals, reply.output_tokens, reply.retry_after_s = array("d", [13.0, 13.25]), 7, 0.5
    reply.failure, reply.detail, reply.finish = Failure.THROTTLED, "429: slow down", None

    other = unpacked(packed(reply))

    assert [getattr(other, name) for name in Reply.__slots__] == [getattr(reply, name) for name in Reply.__slots__]
    assert isinstance(other.failure, Failure)


def test_the_process_that_fares_worst_is_the_limit_and_the_advice_depends_on_why() -> None:
    def pulse(share: float, late_s: float = 0.0, processes: int = 1) -> Pulse:
        return Pulse(cpu_share=share, lag_p50_s=0.0, lag_p99_s=late_s, processes=processes, cores=4)

    both = worst([pulse(0.2), pulse(0.9)])

    assert both.limit == "one of the 2 client processes used 90% of a core"
    assert both.advice == "give --processes 4"
    assert pulse(0.95).advice == "give --processes 2"
    assert pulse(0.95, processes=4).advice == "measure from a machine with more cores"
    assert pulse(0.1, 0.2).limit == "the event loop of the client woke up 200 ms late"
    assert pulse(0.1, 0.2).advice == "it used 10% of a core: what else runs here is in its way"
    assert pulse(0.2).limit is None


def test_a_row_whose_client_was_the_limit_says_what_helps() -> None:
    pulse = Pulse(cpu_share=0.97, lag_p50_s=0.0, lag_p99_s=0.0, cores=8)

    notes = notes_on(Seen([], 0.0, 1.0), pulse, steady=True, trouble=None)

    assert "the client used 97% of a core: give --processes 2" in notes


def test_a_heart_is_the_same_on_the_other_side() -> None:
    assert Heart.unpacked(Heart().packed()).packed() == Heart().packed()
