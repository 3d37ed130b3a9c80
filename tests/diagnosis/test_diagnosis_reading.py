import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis.lives import as_lines
from vigil.diagnosis import Cause, End, diagnose
from vigil.facts import Line

BAD = End(code=1)


def find(text: str, end: End = BAD, engine: str | None = None) -> Cause:
    cause = diagnose(as_lines(text), end, engine)
    assert cause is not None
    return cause


def test_chained_exceptions_point_at_the_inner_one() -> None:
    cause = find("""
Traceback (most recent call last):
  File "/x/validators.py", line 1, in validate
    raise HFValidationError(
huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name': '/tmp/nosuch'. Use it.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/hub.py", line 2, in get
    raise OSError(e)
OSError: Repo id must be in the form 'repo_name': '/tmp/nosuch'. Use it.
""")
    assert (cause.code, cause.line) == ("FILE001", 4)


def test_chain_of_unknown_exceptions_points_at_the_first_one_with_words() -> None:
    cause = find("""
Traceback (most recent call last):
  File "/x/a.py", line 1, in look_up
    next(found)
StopIteration

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/b.py", line 2, in get
    raise Odd(name)
x.Odd: nothing called draft

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/c.py", line 3, in main
    raise RuntimeError
RuntimeError: start failed
""")
    assert (cause.code, cause.line, cause.text) == ("EXC000", 11, "x.Odd: nothing called draft")
    assert "No rule knows" in cause.advice


def test_outer_exception_that_a_rule_knows_goes_before_an_inner_one_that_none_knows() -> None:
    cause = find("""
Traceback (most recent call last):
  File "/x/a.py", line 1, in f
    g()
LookupError: odd

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/b.py", line 2, in h
    bind()
OSError: [Errno 98] Address already in use
""")
    assert (cause.code, cause.line) == ("PORT001", 11)


def test_interleaved_workers_are_read_apart_by_their_prefix() -> None:
    head = "ERROR 11-30 07:37:21 [multiproc_executor.py:953]"
    one, two = f"(Worker_TP0 pid=11) {head}", f"(Worker_TP1 pid=12) {head}"
    cause = find(f"""
{one} WorkerProc failed to start.
{one} Traceback (most recent call last):
{two} WorkerProc failed to start.
{one}   File "/x/load.py", line 1, in load
{two} Traceback (most recent call last):
{two}   File "/x/net.py", line 9, in barrier
{one}     with safe_open(st_file, framework="pt") as f:
{two}     work.wait()
{two} RuntimeError: barrier is broken
{one} ValueError: bad shard
""")
    assert (cause.line, cause.rank) == (9, "TP1")
    alone = find(
        f"{one} Traceback (most recent call last):\n{two} x\n"
        f'{one}   File "/x/load.py", line 1, in load\n{one} ValueError: bad shard'
    )
    assert (alone.line, alone.rank, alone.fingerprint) == (4, "TP0", "ValueError: bad shard at load.py load")


def test_words_of_others_inside_an_unprefixed_traceback_are_passed_over() -> None:
    cause = find("""
[2026-01-20 02:40:07 DP0 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/eagle.py", line 302, in draft
[2026-01-20 02:40:07 DP0 TP0] Load weight end.
Loading safetensors checkpoint shards: 100% Completed | 1/1
    super().bind(addr)
    ^^^^^^
IndexError: list index out of range
[2026-01-20 02:40:09] Received sigquit from a child process. It usually means the child failed.
""")
    assert (cause.code, cause.line, cause.rank) == ("EXC000", 7, "DP0 TP1")


def test_quoted_source_in_a_traceback_is_not_the_cause() -> None:
    cause = find("""
Traceback (most recent call last):
  File "/x/runner.py", line 5, in check
    raise RuntimeError("Not enough memory. Please try to increase --mem-fraction-static.")
TypeError: can only concatenate str (not "int") to str
""")
    assert (cause.code, cause.line) == ("EXC000", 4)


def test_usage_text_is_not_the_cause() -> None:
    cause = find("""
usage: sglang serve [-h] --model-path MODEL_PATH
                    [--hint "Not enough memory. Please try to increase --mem-fraction-static"]
                    [--other Address already in use]
sglang serve: error: unrecognized arguments: --num-speculative-tokens 16
""")
    assert (cause.code, cause.line) == ("FLAG001", 4)
    assert "--num-speculative-tokens" in cause.advice


def test_relays_alone_are_no_cause() -> None:
    log = """
(APIServer pid=1) ERROR 11-30 07:41:50 [async_llm.py:906] AsyncLLM output_handler failed.
(APIServer pid=1) ERROR 11-30 07:41:50 [async_llm.py:906] Traceback (most recent call last):
(APIServer pid=1) ERROR 11-30 07:41:50 [async_llm.py:906]   File "/x/async_llm.py", line 849, in output_handler
(APIServer pid=1) ERROR 11-30 07:41:50 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore
"""
    assert diagnose(as_lines(log), End(code=1), "vllm") is None


def test_what_a_server_outlived_before_it_served_is_not_its_end() -> None:
    log = "OSError: [Errno 98] Address already in use\nThe server is fired up and ready to roll!\nDecode batch"
    assert diagnose(as_lines(log), End(code=0, ready=True), "sglang") is None
    assert find(log, End(signal=11, ready=True)).code == "SIG001"


def test_mess_after_a_request_to_stop_is_not_the_cause() -> None:
    log = """
(EngineCore pid=3) INFO 11-30 07:17:10 [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM
Traceback (most recent call last):
  File "/x/shm_broadcast.py", line 867, in acquire_read
    raise RuntimeError("cancelled")
RuntimeError: cancelled
"""
    assert diagnose(as_lines(log), End(code=0), "vllm") is None
    late = find(
        log
        + 'Traceback (most recent call last):\n  File "/x/l.py", line 1, in bind\n'
        + "OSError: [Errno 98] Address already in use"
    )
    assert (late.code, late.sure) == ("PORT001", 0.6)


def test_kernels_word_on_memory_goes_before_errors_of_other_ranks() -> None:
    cause = find("RuntimeError: Connection closed by peer", End(signal=9, oom_killed=True))
    assert (cause.code, cause.line, cause.retry) == ("MEM003", None, True)
    line = find(
        "RuntimeError: lost\nSubprocess scheduler_0 (pid=9) crashed with exit code -9. x",
        End(code=0, oom_killed=True),
        "sglang",
    )
    assert (line.code, line.line) == ("MEM003", 2)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (End(signal=11), "killed by SIGSEGV"),
        (End(code=139), "killed by SIGSEGV"),
        (End(code=-6), "killed by SIGABRT"),
        (End(signal=7), "killed by SIGBUS"),
        (End(signal=4), "killed by SIGILL"),
        (End(signal=9), "killed by SIGKILL"),
    ],
)
def test_signal_without_words_is_named(end: End, text: str) -> None:
    cause = find("loading", end)
    assert (cause.code, cause.text, cause.line, cause.retry) == ("SIG001", text, None, True)
    assert text.removeprefix("killed by ") in cause.advice


@pytest.mark.parametrize("end", [End(), End(code=0), End(code=1), End(code=1, ready=True)])
def test_no_evidence_gives_no_cause(end: End) -> None:
    assert diagnose([], end) is None
    assert diagnose(as_lines("loading\nall is well"), end) is None


def test_levels_below_error_are_no_cause() -> None:
    for level in ("WARNING", "INFO", "DEBUG"):
        log = f"{level} 02-25 09:00:19 [x.py:69] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB"
        assert diagnose(as_lines(log), BAD, "vllm") is None


def test_around_shows_three_lines_on_each_side_with_their_numbers() -> None:
    lines = [Line(number, f"line {number}") for number in range(101, 120)]
    lines[9] = Line(110, "\x1b[31merror: invalid argument: --x\x1b[0m")
    cause = diagnose(lines, BAD, "llamacpp", "s1.log")
    assert cause is not None
    assert (cause.line, cause.file, cause.text) == (110, "s1.log", "error: invalid argument: --x")
    assert [number for number, _ in cause.around] == [107, 108, 109, 110, 111, 112, 113]


def test_prompts_in_the_log_are_not_the_cause() -> None:
    log = "[2026-11-30 07:52:06] Receive: obj=GenerateReqInput(text='OSError: [Errno 98] Address already in use')"
    assert diagnose(as_lines(log), BAD, "sglang") is None


def test_advice_never_carries_control_characters_of_the_log() -> None:
    cause = find("vllm: error: unrecognized arguments: --x\x07\x9b31m{flag}{0.__class__}", End(code=2))
    assert cause.advice.startswith("Remove or correct --x??31m{flag}{0.__class__}:")


def test_cause_travels_as_json() -> None:
    cause = find("OSError: [Errno 98] Address already in use")
    assert msgspec.json.decode(msgspec.json.encode(cause), type=Cause) == cause


SCARY = st.sampled_from([
    "Traceback (most recent call last):", '  File "x.py", line 1, in f', "ValueError: x", "usage: x", "GGML_ASSERT(",
    "During handling of the above exception, another exception occurred:", "[2026-", "\x1b[", "",
    "(Worker pid=1) ERROR 11-30 07:37:21 [x.py:9] ",
])  # fmt: skip
ANY_LINE = st.lists(st.one_of(SCARY, st.text(max_size=30)), max_size=4).map("".join)


@given(
    st.lists(ANY_LINE, max_size=40),
    st.builds(End, code=st.none() | st.integers(-300, 300), signal=st.none() | st.integers(-1, 99)),
)
def test_any_text_is_read_without_a_fault_and_always_alike(texts: list[str], end: End) -> None:
    lines = [Line(number, text) for number, text in enumerate(texts, 1)]
    cause = diagnose(lines, end)
    assert cause == diagnose(lines, end)
    assert cause is None or cause.line is None or lines[cause.line - 1].number == cause.line
