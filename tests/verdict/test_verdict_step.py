"""`step` itself: pure, deterministic, never surprised; what it skips changes nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from transcripts import (
    LLAMA,
    NCCL,
    NO_MODULE,
    OTHER,
    SGLANG,
    SGLANG_BANNER,
    SGLANG_FIRED,
    SGLANG_LOADS,
    USAGE,
    VLLM,
    Transcript,
)

from vigil import facts
from vigil.verdict import Asked, State, report, step

TIMES = st.floats(0, 3000, allow_nan=False)
PIDS = st.integers(1, 4)
TEXTS = st.sampled_from(
    [
        SGLANG_BANNER,
        SGLANG_LOADS,
        SGLANG_FIRED,
        *USAGE,
        NO_MODULE,
        NCCL,
        "epoch 1",
        'x "GET /health HTTP/1.1"',
        "",
        "\x00" * 9,
    ]
) | st.text(max_size=40)
LINES = st.lists(st.builds(facts.Line, st.integers(0, 99), TEXTS), max_size=4).map(tuple)
STATUS = st.sampled_from([None, 200, 302, 401, 404, 429, 500, 503])
ERROR = st.sampled_from([None, "timeout", "refused", "reset"])
CODE = st.sampled_from([None, 0, 1, 2, 137])
COUNT = st.none() | st.integers(0, 9)
FACTS = st.one_of(
    st.builds(facts.Reached, at_s=TIMES, boot_id=st.sampled_from(["", "a", "a", "b"]), host=st.just("h"), python=st.just("3"), wall_s=TIMES),
    st.builds(facts.Lost, at_s=TIMES, why=st.just("cut"), final=st.booleans()),
    st.builds(facts.Ticked, at_s=TIMES),
    st.builds(facts.Launched, at_s=TIMES, launcher_pid=PIDS, pid=PIDS, start_ticks=PIDS, log=st.just("/l"), log_offset=st.just(0)),
    st.builds(facts.MainStarted, at_s=TIMES, pid=PIDS, start_ticks=PIDS, argv=st.just(("a",)), sure=st.booleans(), seen_late=st.booleans()),
    st.builds(facts.MainExited, at_s=TIMES, pid=PIDS, code=CODE, signal=st.sampled_from([None, 9]), oom_killed=st.booleans()),
    st.builds(facts.RootExited, at_s=TIMES, code=CODE, asked_by=st.sampled_from([None, "eve"]), left=st.integers(0, 2)),
    st.builds(facts.ChildStarted, at_s=TIMES, pid=PIDS, name=st.just("c"), worker=st.booleans()),
    st.builds(facts.ChildExited, at_s=TIMES, pid=PIDS, name=st.just("c"), worker=st.booleans(), lived_s=TIMES),
    st.builds(facts.LogGrew, at_s=TIMES, size=st.integers(0, 999), lines=LINES, skipped=st.integers(0, 2), history=st.booleans()),
    st.builds(facts.LogReset, at_s=TIMES, why=st.sampled_from(["truncated", "rotated"])),
    st.builds(facts.LogUnreadable, at_s=TIMES, error=st.just("no"), missing=st.booleans()),
    st.builds(facts.PortOpened, at_s=TIMES, port=st.just(1), owner=st.sampled_from(["ours", "adopted", "foreign", "unknown"]), pid=COUNT),
    st.builds(facts.PortClosed, at_s=TIMES, port=st.just(1)),
    st.builds(facts.ProbeAnswered, at_s=TIMES, probe=st.sampled_from(["models", "health", "x"]), status=STATUS, models=st.sampled_from([(), ("m",)])),
    st.builds(facts.TokenAnswered, at_s=TIMES, status=STATUS, error=ERROR, tokens=COUNT, latency_s=TIMES),
    st.builds(facts.MetricsSeen, at_s=TIMES, running=st.none() | TIMES, waiting=st.none() | TIMES, tokens_total=st.none() | TIMES),
    st.builds(facts.Sampled, at_s=TIMES, cpu_s=TIMES, io_bytes=st.integers(0, 10**9), rss_bytes=st.integers(0, 10**9), processes=st.just(1),
              gpu_bytes=st.none() | st.integers(0, 10**9)),
    st.builds(facts.StopAsked, at_s=TIMES, by=st.just("eve")),
    st.builds(facts.Troubled, at_s=TIMES, what=st.text(max_size=5)),
)  # fmt: skip
STORIES = st.lists(FACTS, max_size=40)
ASKED = st.builds(
    Asked,
    job=st.booleans(),
    ready=st.sampled_from(["token", "token", "http", "log"]),
    serves=st.sampled_from([True, True, False]),
    model=st.sampled_from([None, "m", "n"]),
    speculation=st.booleans(),
)
TABLES = st.sampled_from([SGLANG, VLLM, LLAMA, OTHER])


@given(STORIES, ASKED, TABLES)
@settings(max_examples=300, deadline=None)
def test_any_facts_in_any_order_give_a_verdict(story: list[facts.AnyFact], asked: Asked, table: object) -> None:
    state = State(asked=asked)
    for number, fact in enumerate(story, 1):
        before = state
        state, judged, effects = step(before, fact, table)
        assert (state, judged, effects) == step(before, fact, table)
        assert state.n == number
        assert state.now_s == max(before.now_s, fact.at_s)
        assert judged == state.judged
        report(state, table)


@given(STORIES.map(lambda story: sorted(story, key=lambda fact: fact.at_s)), ASKED, TABLES)
@settings(max_examples=300, deadline=None)
def test_what_is_skipped_would_have_changed_nothing(story: list[facts.AnyFact], asked: Asked, table: object) -> None:
    quick = careful = State(asked=asked)
    for fact in story:
        quick, judged, effects = step(quick, fact, table)
        careful, wanted, wanted_effects = step(replace(careful, next_s=0.0), fact, table)
        assert (judged.word, judged.cause, effects) == (wanted.word, wanted.cause, wanted_effects)


def test_time_never_goes_back() -> None:
    story = Transcript().tick(50.0).tick(20.0)
    assert story.state.now_s == 50.0
    assert story.state.n == 3


def test_late_engine_is_judged_by_its_own_table_at_once() -> None:
    story = Transcript(OTHER).main(0.2, argv="x", sure=False).answers(1.0)
    story.table = SGLANG
    story.tick(1.1)
    assert story.state.engine == "sglang"
