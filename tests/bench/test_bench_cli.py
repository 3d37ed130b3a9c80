"""`vigil bench`, `compare` and `report` with the real command line, against the streaming fake."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_stream import FAKE, fake, free_port

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from vigil_cli import COMMAND, Vigil, until

QUICK = ("--seconds", "1", "--repeats", "1", "--input", "32", "--output", "16")


@pytest.fixture
def vigil(tmp_path: Path) -> Iterator[Vigil]:
    ours = Vigil(tmp_path)
    yield ours
    ours.close()


def arm(port: int, *flags: str) -> str:
    return shlex.join([sys.executable, str(FAKE), "--port", str(port), *flags])


def kept(folder: Path) -> list[dict[str, Any]]:
    path = folder / "rows.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_bench_measures_what_the_server_gave(vigil: Vigil) -> None:
    with fake("--step", "0.005", "--tokens-a-step", "2") as server:
        done = vigil("bench", server.url, "--concurrency", "4", *QUICK, "--requests", "40", "--json")
        tokens = server.seen()["tokens"]

    assert done.rc == 0
    found = json.loads(done.out)
    row, figure = found["rows"][0], found["figures"][0]
    assert (row["ended"], row["failures"], row["output_tokens"], row["tokens_an_event"]) == (40, {}, 16, 2)
    assert row["serve"]["total_output_tokens"] == 40 * 16 <= tokens <= 40 * 16 + 14
    assert row["output_per_s"] * row["window_s"] == pytest.approx(640, rel=0.02)
    assert row["input_tokens"] == pytest.approx(32, abs=2)
    assert figure["accept_length"] == pytest.approx(2, abs=0.1) or figure["accept_length"] is None


def test_bench_finds_a_steady_state_at_a_concurrency_and_a_rate(vigil: Vigil) -> None:
    with fake("--step", "0.005") as server:
        done = vigil("bench", server.url, "--concurrency", "3", "--rate", "20", *QUICK)
        seen = server.seen()

    assert done.rc == 0
    assert "3 at once" in done.out
    assert "20 a second" in done.out
    assert seen["most_running"] >= 3


@pytest.mark.parametrize(
    ("flags", "options", "code", "words"),
    [
        ((), ("--model", "other"), 2, "does not list the model 'other'; it lists m"),
        (("--context", "40"), ("--input", "32", "--output", "16"), 2, "do not fit the context of 40 tokens of m"),
        (("--fault", "uncounted"), (), 1, "does not say how many tokens it generated"),
        (("--fault", "hang"), ("--patience", "0.5s"), 1, "nothing usable (silent): not a byte for 0.5 s"),
        (("--fault", "flood"), (), 1, "nothing usable (flooded)"),
        (("--fault", "empty"), (), 1, "nothing usable (empty): 200, and not a token"),
        ((), ("--concurrency", "0"), 2, "--concurrency 0: give a number above 0"),
        ((), ("--concurrency", "1,x"), 2, "give whole numbers"),
        ((), ("--prompts", "nowhere.txt"), 2, "cannot be read: No such file"),
    ],
)
def test_bench_says_in_one_line_what_cannot_be(
    vigil: Vigil, flags: tuple[str, ...], options: tuple[str, ...], code: int, words: str
) -> None:
    with fake("--step", "0.002", *flags) as server:
        done = vigil("bench", server.url, *options)

    assert (done.rc, done.out) == (code, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_bench_asks_nothing_that_an_earlier_bench_asked_unless_a_seed_is_given(vigil: Vigil) -> None:
    def seed_of(*options: str) -> int:
        done = vigil("bench", server.url, "--concurrency", "1", *QUICK, "--requests", "2", "--json", *options)
        return int(json.loads(done.out)["meta"]["settings"]["seed"])

    with fake("--step", "0.002") as server:
        seeds = [seed_of("--out", "a"), seed_of("--out", "a"), seed_of(), seed_of("--seed", "7")]

    assert seeds[0] == seeds[1] != seeds[2]
    assert seeds[3] == 7


def test_bench_of_nobody_is_unreachable(vigil: Vigil) -> None:
    done = vigil("bench", f"http://127.0.0.1:{free_port()}")

    assert (done.rc, "does not answer: is it up?" in done.err) == (10, True)


def test_bench_counts_refusals_and_does_not_hammer(vigil: Vigil) -> None:
    with fake("--step", "0.002", "--fault", "unavailable", "--fault-after", "12") as server:
        done = vigil("bench", server.url, "--concurrency", "16", *QUICK, "--most", "3s", "--json")
        at = server.seen()["at"]

    row = json.loads(done.out)["rows"][0]
    assert row["failures"]["throttled"] > 0
    assert len(at) < 16 * 12  # sixteen that ask again at once would ask thousands of times
    assert "503: no slot available" in row["failure_text"]


def test_bench_tells_of_a_server_that_dies_midway(vigil: Vigil) -> None:
    with fake("--step", "0.002", "--die-after", "30") as server:
        done = vigil(
            "bench",
            server.url,
            "--concurrency",
            "2",
            "--seconds",
            "20",
            "--repeats",
            "1",
            "--input",
            "16",
            "--output",
            "8",
        )

    assert done.rc == 8
    assert "it ended early: every request fails: Connection refused" in done.err


def test_bench_by_a_name_that_vigil_started(vigil: Vigil) -> None:
    up = vigil("up", "--name", "s", "--json", "--", *shlex.split(arm(vigil.port, "--step", "0.002")))
    done = vigil("bench", "s", "--concurrency", "2", *QUICK, "--json")

    assert (up.rc, done.rc) == (0, 0)
    found = json.loads(done.out)
    assert found["meta"]["arms"][0]["name"] == "s"
    assert str(FAKE) in found["meta"]["arms"][0]["command"]


@pytest.mark.slow
def test_compare_says_which_is_faster_and_stops_what_it_started(vigil: Vigil) -> None:
    slow, fast = arm(vigil.port, "--step", "0.02"), arm(vigil.port, "--step", "0.02", "--tokens-a-step", "4")
    out = vigil.folder / "r"
    done = vigil(
        "compare", "--arm", f"off={slow}", "--arm", f"on={fast}", "--concurrency", "1,2", *QUICK, "--out", str(out)
    )

    assert done.rc == 0, done.err
    assert "on against off: faster at 1 to 2 concurrent requests" in done.out
    assert "one round only" in done.out
    assert len(kept(out)) == 4
    assert [one["verdict"] for one in json.loads(vigil("ps", "--json").out or "[]")] in ([], ["stopped", "stopped"])
    serve = json.loads((out / "serve-on-concurrency1-1.json").read_text())
    assert {"output_throughput", "mean_ttft_ms", "p99_tpot_ms", "max_concurrency", "model_id"} <= serve.keys()


@pytest.mark.slow
def test_compare_that_was_killed_goes_on_without_repeating_a_row(vigil: Vigil) -> None:
    one, two = (arm(vigil.port, "--step", step) for step in ("0.004", "0.005"))
    out = vigil.folder / "r"
    command = ("compare", "--arm", f"a={one}", "--arm", f"b={two}", "--concurrency", "1,2,3", *QUICK, "--out", str(out))
    first = vigil.start(*command)
    until(lambda: len(kept(out)) >= 2, "two rows")
    first.signal(signal.SIGKILL)
    first.process.wait()
    before = kept(out)
    until(lambda: not served(vigil.port), "the end of the arm that was up")
    done = vigil(*command)

    assert done.rc == 0, done.err
    assert f"{len(before)} rows of {out} are kept" in done.err
    after = kept(out)
    assert after[: len(before)] == before
    assert len(after) == 6 == len({(one["arm"], one["point"]["value"]) for one in after})


def served(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_compare_keeps_the_cause_of_an_arm_that_dies_midway(vigil: Vigil) -> None:
    good, bad = arm(vigil.port, "--step", "0.004"), arm(vigil.port, "--step", "0.004", "--die-after", "40")
    out = vigil.folder / "r"
    done = vigil(
        "compare", "--arm", f"off={good}", "--arm", f"bad={bad}", "--concurrency", "2,3", *QUICK, "--out", str(out)
    )

    lost = [one for one in kept(out) if one["arm"] == "bad" and one["cause"]]
    assert lost, done.err
    assert done.rc == 4
    assert lost[-1]["cause"]["verdict"] == "crashed"
    assert "CUDA out of memory" in lost[-1]["cause"]["text"]
    assert "bad" in done.out
    assert "CUDA out of memory" in done.out


@pytest.mark.slow
def test_compare_starts_an_arm_again_that_died_at_one_load_and_measures_the_others(vigil: Vigil) -> None:
    good, bad = arm(vigil.port, "--step", "0.004"), arm(vigil.port, "--step", "0.004", "--die-at", "6")
    out = vigil.folder / "r"
    done = vigil(
        "compare", "--arm", f"off={good}", "--arm", f"bad={bad}", "--concurrency", "1,2,6", *QUICK, "--repeats", "2",
        "--out", str(out),
    )  # fmt: skip

    assert done.rc == 4, done.err
    rows = {(one["arm"], one["point"]["value"], one["round"]): one["cause"] for one in kept(out)}
    assert len(rows) == 12
    died = {key for key, cause in rows.items() if cause is not None}
    assert died == {("bad", 6.0, 0), ("bad", 6.0, 1)}
    assert "bad, 6 at once: crashed MEM001: torch.OutOfMemoryError: CUDA out of memory" in done.out


def test_compare_goes_on_without_an_arm_that_does_not_start(vigil: Vigil) -> None:
    good = arm(vigil.port, "--step", "0.004")
    out = vigil.folder / "r"
    done = vigil(
        "compare",
        "--arm",
        f"off={good}",
        "--arm",
        f"bad={good} --no-such-flag",
        "--concurrency",
        "2",
        *QUICK,
        "--out",
        str(out),
    )

    assert done.rc == 4
    assert [(one["arm"], bool(one["cause"])) for one in kept(out)] == [("off", False), ("bad", True)]
    assert "bad has no measurement" in done.out


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        (("a=x",), "give two arms or more"),
        (("a=x", "a=y"), "two of that name"),
        (("a=x", "b='"), "close the quotes"),
        (("a", "b=y"), "give it as NAME='COMMAND'"),
    ],
)
def test_compare_refuses_arms_that_are_none(vigil: Vigil, arms: tuple[str, ...], words: str) -> None:
    done = vigil("compare", *(word for one in arms for word in ("--arm", one)))

    assert (done.rc, words in done.err) == (2, True)


@pytest.mark.slow
def test_report_shows_and_draws_what_was_kept(vigil: Vigil) -> None:
    out = vigil.folder / "r"
    with fake("--step", "0.005") as server:
        measured = vigil("bench", server.url, "--concurrency", "1,2", "--rate", "10", *QUICK, "--out", str(out))
    done = vigil("report", str(out), "--pictures", "drawn", env={"MPLCONFIGDIR": str(vigil.folder)})

    assert done.rc == 0, done.err
    assert done.out == measured.out
    names = sorted(path.name for path in (vigil.folder / "drawn").iterdir())
    assert names == ["latency.png", "latency.svg", "throughput.png", "throughput.svg"]
    assert os.path.getsize(vigil.folder / "drawn" / "throughput.png") > 10_000  # noqa: PTH202


def test_compare_says_in_one_line_that_the_lengths_do_not_fit_and_leaves_nothing_running(vigil: Vigil) -> None:
    one = arm(vigil.port, "--context", "40")
    done = vigil("compare", "--arm", f"a={one}", "--arm", f"b={one}", "--concurrency", "1", *QUICK)

    assert done.rc == 2
    assert done.err.splitlines()[-1].startswith(
        "vigil: 32 tokens in and 16 out do not fit the context of 40 tokens of m"
    )
    assert "Traceback" not in done.err
    assert not served(vigil.port)


def test_compare_that_is_interrupted_stops_its_arm_and_says_how_to_go_on(vigil: Vigil) -> None:
    one = arm(vigil.port, "--step", "0.004")
    out = vigil.folder / "r"
    running = vigil.start(
        "compare", "--arm", f"a={one}", "--arm", f"b={one}", "--concurrency", "1", "--seconds", "60", "--out", str(out)
    )
    running.until_err("1 at once")
    running.signal(signal.SIGINT)
    done = running.end()

    assert done.rc == 130
    assert f"to go on: the same command with --out {out}" in done.err
    assert not served(vigil.port)


def test_bench_on_a_full_disk_says_so_in_one_line(vigil: Vigil) -> None:
    with fake("--step", "0.004") as server:
        words = [*COMMAND, "bench", server.url, "--concurrency", "1,2,3", *QUICK, "--out", "r"]
        limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "x", *words]  # 4 KiB a file: less than three rows
        done = subprocess.run(limited, env=vigil.env, cwd=vigil.folder, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "could not be written to r/rows.jsonl: File too large" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_report_fits_a_terminal_and_its_chart_needs_neither_colours_nor_unicode(vigil: Vigil) -> None:
    out = vigil.folder / "r"
    with fake("--step", "0.005") as server:
        vigil("bench", server.url, "--concurrency", "1,2", *QUICK, "--out", str(out))

    def shown(**env: str) -> str:
        words = shlex.join([*COMMAND, "report", str(out)])
        done = subprocess.run(
            ["script", "-qec", f"stty cols 72; {words}", "/dev/null"],
            env={**vigil.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout.decode()

    coloured, plain = shown(TERM="xterm"), shown(TERM="xterm", NO_COLOR="1")
    ascii_only = shown(TERM="xterm", NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert "\x1b[34m●" in coloured
    assert "\x1b" not in plain
    assert "●" in plain
    assert max(map(len, plain.replace("\r", "").splitlines())) <= 72
    assert ascii_only.isascii()
    assert "output tokens a second" in ascii_only


def test_report_of_nothing_is_refused_in_a_line(vigil: Vigil) -> None:
    done = vigil("report", "nowhere")

    assert (done.rc, done.err.count("\n"), "holds no results" in done.err) == (2, 1, True)
