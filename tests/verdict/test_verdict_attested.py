"""What the processes of a server said that they run: when they are asked, what is warned of, what an expectation comes to."""

from typing import Any

import pytest
from transcripts import SGLANG, Transcript

from vigil import fact_parts, facts
from vigil.verdict import Attest, MeasureSpeculation, Word, read_expectation

HOME = "/venv/lib/python3.11/site-packages"
EAGLE = "sglang/srt/speculative/eagle_worker_v2.py"
OLD = "sglang/srt/speculative/eagle_worker.py"
RANKS = tuple(range(8))
PIDS = tuple(100 + rank for rank in RANKS)


def schedulers(**errors: str) -> tuple[fact_parts.AttestedProcess, ...]:
    main = fact_parts.AttestedProcess(pid=90, title="python -m sglang.launch_server")
    ranks = [
        fact_parts.AttestedProcess(pid=100 + n, title=f"sglang::scheduler_TP{n}", error=errors.get(f"tp{n}", ""))
        for n in RANKS
    ]
    return (main, *ranks)


def edited(*names: str) -> tuple[fact_parts.EditedFile, ...]:
    return tuple(
        fact_parts.EditedFile(package="sglang", name=name, how="abc", site=HOME, path=f"{HOME}/{name}")
        for name in names
    )


def loaded(name: str, pids: tuple[int, ...] = PIDS, **more: Any) -> fact_parts.LoadedFile:
    module = name.removesuffix(".py").replace("/", ".")
    return fact_parts.LoadedFile(path=f"{HOME}/{name}", modules=(module,), pids=pids, **more)


def served(*expect: str, attester: bool = True) -> Transcript:
    """A server of ours that has just served a token."""
    play = Transcript(SGLANG, url="http://127.0.0.1:1", expect=tuple(map(read_expectation, expect)))
    play.take(facts.Launched(at_s=0.1, launcher_pid=1, pid=90, start_ticks=1, log="l", log_offset=0, attester=attester))
    play.take(facts.MainStarted(at_s=0.2, pid=90, start_ticks=1))
    play.take(facts.PortOpened(at_s=1.0, port=1, owner="ours", pid=90))
    play.take(facts.ProbeAnswered(at_s=1.1, probe="models", status=200, models=("m",)))
    return play.take(facts.TokenAnswered(at_s=1.2, status=200, tokens=1))


def told(at_s: float = 1.3, **fields: Any) -> facts.Attested:
    return facts.Attested(at_s=at_s, **{"processes": schedulers(), **fields})


# --- when they are asked


def test_ready_waits_for_what_the_processes_say_and_no_longer() -> None:
    play = served()
    assert (play.word, [one for one in play.effects if isinstance(one, Attest)]) == ("starting", [Attest()])
    play.take(told())
    assert play.word == "ready"


def test_processes_that_never_answer_do_not_hold_a_ready_server_up() -> None:
    play = served()
    play.take(facts.Ticked(at_s=3.0))
    assert play.word == "starting"
    play.take(facts.Ticked(at_s=6.3))
    assert (play.word, play.verdict.warnings) == ("ready", ())


def test_processes_are_asked_once_in_a_life() -> None:
    play = served().take(told())
    for second in range(3, 30):
        play.take(facts.Ticked(at_s=float(second)))
    assert len([one for one in play.effects if isinstance(one, Attest)]) == 1


def test_server_without_an_attester_is_ready_at_once() -> None:
    play = served(attester=False)
    assert play.word == "ready"
    assert not [one for one in play.effects if isinstance(one, Attest)]


def test_expected_things_are_named_when_they_are_asked_for() -> None:
    play = served("module=a.b", "file=/x.py", "class=C", "arg.n=1", "speculation")
    asked = [one for one in play.effects if isinstance(one, Attest | MeasureSpeculation)]
    assert asked == [
        Attest(modules=("a.b",), files=("/x.py",), classes=("C",), arguments=True, patience_s=9.0),
        MeasureSpeculation(),
    ]


# --- warnings


def test_edited_file_that_nothing_loaded_is_a_warning_with_who_loaded_the_other() -> None:
    play = served().take(told(edited=edited(EAGLE, OLD), files=(loaded(EAGLE),)))

    assert play.word == "ready"
    assert play.verdict.warnings == (
        (
            "2 files of sglang differ from the wheel: eagle_worker_v2.py is loaded by scheduler_TP0..7; "
            "eagle_worker.py is loaded by none"
        ),
    )


def test_edited_data_file_is_no_module_and_nobody_is_said_to_skip_it() -> None:
    play = served().take(told(edited=edited("sglang/configs/E=8.json")))

    assert play.verdict.warnings == (
        "1 file of sglang differs from the wheel: E=8.json is no module, so who reads it is not known",
    )


def test_edits_are_told_without_readers_where_no_process_answers() -> None:
    silent = (fact_parts.AttestedProcess(pid=90, title="python", error="it loaded nothing of the engine"),)
    play = served().take(told(processes=silent, edited=edited(EAGLE)))

    assert "not known" in play.verdict.warnings[0]
    assert "loaded by none" not in play.verdict.warnings[0]


def test_package_that_is_loaded_from_elsewhere_is_told_in_place_of_its_edits() -> None:
    stray = fact_parts.Stray(package="sglang", site=HOME, loaded_from="/checkout/python/sglang")
    play = served().take(told(edited=edited(EAGLE), strays=(stray,)))

    (warning,) = play.verdict.warnings
    assert warning.startswith("sglang is loaded from /checkout/python/sglang, and not from")


def test_file_that_changed_after_it_was_loaded_is_told() -> None:
    play = served().take(told(files=(loaded(EAGLE, stale=PIDS),)))

    assert play.verdict.warnings == (
        "changed on disk after scheduler_TP0..7 loaded it, so that something else runs than is there: eagle_worker_v2.py",
    )


def test_rank_that_does_not_answer_is_named() -> None:
    play = served().take(
        told(
            processes=schedulers(
                tp3="it did not answer in time: it holds its interpreter, or hangs; py-spy sees it in match (re.py:1)"
            )
        )
    )

    assert "scheduler_TP3" in play.verdict.warnings[0]
    assert "py-spy" in play.verdict.warnings[0]


# --- expectations

ARGUMENTS = fact_parts.Arguments(
    source="ServerArgs, here",
    pids=PIDS,
    values={
        "max_running_requests": 48,
        "disable_overlap": True,
        "a.dtype": "torch.bfloat16",
        "ratio": 0.5,
        "draft": None,
    },
)


@pytest.mark.parametrize(
    ("expect", "fields", "met", "found"),
    [
        (
            "module=sglang.srt.speculative.eagle_worker_v2",
            {"files": (loaded(EAGLE),)},
            True,
            "loaded by scheduler_TP0..7",
        ),
        ("module=sglang.none", {}, False, "loaded by none of"),
        (
            "module=sglang.srt.speculative.eagle_worker_v2",
            {"files": (loaded(EAGLE, PIDS[:7]),)},
            False,
            "not by scheduler_TP7",
        ),
        ("file=/x/e.py", {"files": (loaded(EAGLE, asked=("/x/e.py",)),)}, True, "loaded by"),
        (
            "file=/x/e.py",
            {"files": (loaded(EAGLE, asked=("/x/e.py",), stale=PIDS[:1]),)},
            False,
            "before it changed on disk",
        ),
        (
            "file=/x/e.so",
            {"files": (loaded(EAGLE, asked=("/x/e.so",), unsure=True),)},
            None,
            "cannot be told of such a file",
        ),
        ("file=/x/other.py", {}, False, "loaded by none of"),
        (
            "class=C",
            {"classes": (fact_parts.LiveClass(name="C", pid=101, defined=True, alive=1),)},
            True,
            "alive in scheduler_TP1",
        ),
        ("class=C", {"classes": (fact_parts.LiveClass(name="C", pid=101, defined=True),)}, False, "no instance"),
        (
            "class=C",
            {"classes": (fact_parts.LiveClass(name="C", pid=101, defined=True, frozen=True),)},
            None,
            "gc.freeze",
        ),
        ("class=C", {"classes": (fact_parts.LiveClass(name="C", pid=101),)}, False, "defined in none"),
        ("arg.max-running-requests=48", {"arguments": (ARGUMENTS,)}, True, "max_running_requests is 48"),
        ("arg.max_running_requests=256", {"arguments": (ARGUMENTS,)}, False, "max_running_requests is 48"),
        ("arg.dtype=bfloat16", {"arguments": (ARGUMENTS,)}, True, "a.dtype is torch.bfloat16"),
        ("arg.disable_overlap=true", {"arguments": (ARGUMENTS,)}, True, "is true"),
        ("arg.draft=none", {"arguments": (ARGUMENTS,)}, True, "is none"),
        ("arg.ratio=.50", {"arguments": (ARGUMENTS,)}, True, "is 0.5"),
        ("arg.unheard_of=1", {"arguments": (ARGUMENTS,)}, None, "no setting is called"),
        ("arg.x=1", {"served": fact_parts.Arguments(error="/server_info: 404")}, None, "/server_info: 404"),
        (
            "arg.x=1",
            {"served": fact_parts.Arguments(source="/server_info", values={"x": 1})},
            True,
            "x is 1 (/server_info)",
        ),
    ],
)
def test_expectation_comes_to(expect: str, fields: dict[str, Any], met: bool | None, found: str) -> None:  # noqa: FBT001
    play = served(expect).take(told(**fields))
    (judged,) = play.verdict.expectations

    assert (judged.expectation, judged.met) == (expect, met)
    assert found in judged.found
    assert play.word == ("ready" if met else "degraded")
    assert play.verdict.exit_code == (0 if met else 9)


def test_what_a_silent_process_may_have_is_not_known_to_be_nowhere() -> None:
    silent = schedulers(tp3="it did not answer in time: it holds its interpreter, or hangs")
    play = served("module=a.b").take(told(processes=silent))
    (judged,) = play.verdict.expectations

    assert judged.met is None
    assert judged.found.endswith("; scheduler_TP3 did not answer in time")


@pytest.mark.parametrize(
    ("answers", "source", "error", "met", "found"),
    [
        ([(64, 20)], "/generate", "", True, "on: 3.20 tokens a step"),
        ([(64, 63)], "/generate", "", False, "on, and of no use: 1.02"),
        ([(64, None)], "/generate", "", False, "off: 64 tokens"),
        ([(64, None)], "", "", None, "nothing of its answers tells"),
        ([], "", "/generate: 500", None, "could not be measured: /generate: 500"),
    ],
)
def test_speculation_is_on_useless_off_or_not_to_be_told(
    answers: list[tuple[int, int | None]],
    source: str,
    error: str,
    met: bool | None,  # noqa: FBT001
    found: str,
) -> None:
    play = served("speculation", attester=False)
    drafted = tuple(fact_parts.Drafted(tokens=tokens, steps=steps) for tokens, steps in answers)
    play.take(facts.SpeculationMeasured(at_s=9.0, answers=drafted, source=source, error=error))
    (judged,) = play.verdict.expectations

    assert judged.met is met
    assert found in judged.found
    assert play.word == ("ready" if met else "degraded")


def test_measurement_that_never_comes_is_not_known_and_so_not_met() -> None:
    play = served("speculation", attester=False)
    play.take(facts.Ticked(at_s=60.0))
    assert play.word == "starting"
    play.take(facts.TokenAnswered(at_s=90.0, status=200, tokens=1)).take(facts.Ticked(at_s=91.5))

    assert play.word == "degraded"
    assert play.verdict.expectations[0].met is None


def test_module_that_nothing_loaded_is_told_with_what_is_loaded_instead() -> None:
    play = served("module=a.worker").take(told(instead={"a.worker": ("a.worker_v2",)}))

    assert play.verdict.expectations[0].found.endswith(", but a.worker_v2 is")


HELPER = fact_parts.AttestedProcess(pid=300, title="python -m helper", error="it loaded nothing of the engine")


@pytest.mark.parametrize(
    "error", ["it was not given the attester (...)", "its PYTHONPATH was set anew", "it closed without an answer"]
)
def test_what_a_process_may_have_that_cannot_be_asked_is_not_known_to_be_nowhere(error: str) -> None:
    """As of workers that Ray starts with an environment of its own."""
    worker = fact_parts.AttestedProcess(pid=301, title="ray::RayWorker", error=error)
    play = served("module=a.b", "class=C").take(told(processes=(*schedulers(), HELPER, worker), edited=edited(OLD)))

    assert [one.met for one in play.verdict.expectations] == [None, None]
    assert all("cannot be asked" in one.found for one in play.verdict.expectations)
    assert play.verdict.warnings[0].endswith("eagle_worker.py is loaded by none of those that can be asked")


def test_helper_that_never_loaded_the_engine_leaves_no_doubt() -> None:
    play = served("module=a.b").take(told(processes=(*schedulers(), HELPER)))

    assert play.verdict.expectations[0].met is False


def test_file_that_was_read_and_became_no_module_is_not_said_to_run() -> None:
    read = fact_parts.LoadedFile(path="/x/a.py", pids=PIDS, asked=("/x/a.py",))
    play = served("file=/x/a.py").take(told(files=(read,)))

    assert play.verdict.expectations[0].met is None
    assert "its import failed" in play.verdict.expectations[0].found


SETTINGS = fact_parts.Arguments(
    source="VllmConfig",
    values={
        "model": "/models/Llama",
        "algorithm": "EAGLE3",
        "seed": 12345678901,
        "cuda_graph_bs": "[1, 2, 4]",
        "ratio": 0.9,
        "speculative_config.method": "ngram",
        "speculative_config.num_speculative_tokens": 3,
        "speculative_config.quick": False,
    },
)


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        ("model=/models/Llama", True),
        ("model=/models/llama", False),  # another folder
        ("algorithm=eagle3", True),
        ("seed=12345678901", True),
        ("seed=12345678902", False),
        ("ratio=0.90", True),
        ("ratio=1e999", False),
        ("cuda_graph_bs=[1,2,4]", True),
        ("cuda_graph_bs=[1,2,8]", False),
        ("cuda_graph_bs=[1,2", False),
        ('speculative_config={"method": "ngram", "num_speculative_tokens": 3, "quick": false}', True),
        ('speculative_config={"method": "eagle", "num_speculative_tokens": 3}', False),
        ('speculative_config={"method": "ngram", "unheard_of": 3}', None),
        ("--speculative-config.num-speculative-tokens=3", True),
    ],
)
def test_value_is_compared_as_what_it_is(asked: str, met: bool | None) -> None:  # noqa: FBT001
    play = served(f"arg.{asked}").take(told(arguments=(SETTINGS,)))

    assert play.verdict.expectations[0].met is met, play.verdict.expectations[0].found


def test_answers_without_a_token_do_not_say_that_speculation_is_off() -> None:
    play = served("speculation", attester=False)
    play.take(facts.SpeculationMeasured(at_s=9.0, answers=(fact_parts.Drafted(tokens=0),), source="/generate"))

    assert play.verdict.expectations[0].met is None


def test_expectations_of_a_server_that_died_are_not_told() -> None:
    play = served("class=C").take(facts.MainExited(at_s=2.0, pid=90, code=1)).take(facts.RootExited(at_s=2.0, code=1))

    assert play.verdict.word is Word.CRASHED
    assert play.verdict.expectations == ()


@pytest.mark.parametrize("text", ["file=/\udcff.py", "module=a\nb", "class=\x1b[31m", "arg.x=\u202e"])
def test_what_cannot_be_printed_cannot_be_expected(text: str) -> None:
    """Bytes that are no text could not even be kept; the rest would break the one line that tells of it."""
    with pytest.raises(ValueError, match="cannot be printed") as refused:
        read_expectation(text)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "arg.api_key=verysecret",
        "api_key=verysecret",
        "arg.model=sk-verysecret0",
        "hf=hf_verysecret0123456789",
        'arg.extra={"a": {"hf_token": "verysecret"}}',
    ],
)
def test_secret_cannot_be_expected_and_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"a secret is never told|nothing that can be expected") as refused:
        read_expectation(text)
    assert "verysecret" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "module", "module=", "arg.=1", "arg.x", "arg.x=", "classes=C", "speculation=on"])
def test_nonsense_cannot_be_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"nothing that can be expected: give module=NAME"):
        read_expectation(text)
