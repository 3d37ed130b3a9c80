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

from vigil import fact_parts, facts
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
NUMBER = st.none() | TIMES
BYTES = st.integers(0, 10**9)
OWNER = st.sampled_from(["ours", "adopted", "foreign", "unknown"])
PROBE = st.sampled_from(["models", "health", "x"])
YES = st.booleans()
HOLDERS = st.lists(st.builds(fact_parts.Holder, pid=COUNT, ours=YES, used_bytes=COUNT), max_size=2).map(tuple)
GPUS = st.tuples(st.builds(fact_parts.GpuMemory, index=st.just(0), used_bytes=COUNT, holders=HOLDERS))
ROOMS = st.lists(
    st.builds(
        fact_parts.Room, path=st.sampled_from(["/", "/dev/shm"]), total_bytes=BYTES, free_bytes=BYTES, free_files=COUNT
    ),
    max_size=2,
).map(tuple)
KERNEL = st.lists(
    st.builds(
        fact_parts.KernelLine,
        what=st.sampled_from(["oom_kill", "xid"]),
        text=TEXTS | st.just("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."),
        ago_s=TIMES,
        pid=st.none() | PIDS,
        ours=st.none() | YES,
    ),
    max_size=2,
).map(tuple)


def one(kind: type[facts.Fact], **fields: object) -> st.SearchStrategy[facts.Fact]:
    """One fact of a kind; what is no strategy stands as it is."""
    made = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in fields.items()}
    return st.builds(kind, at_s=TIMES, **made)


FACTS = st.one_of(
    one(facts.Reached, boot_id=st.sampled_from(["", "a", "a", "b"]), host="h", python="3", wall_s=TIMES),
    one(facts.Lost, why="cut", final=YES),
    one(facts.Ticked),
    one(facts.Launched, launcher_pid=PIDS, pid=PIDS, start_ticks=PIDS, log="/l", log_offset=0),
    one(facts.MainStarted, pid=PIDS, start_ticks=PIDS, argv=("a",), sure=YES, seen_late=YES),
    one(facts.MainExited, pid=PIDS, code=CODE, signal=st.sampled_from([None, 9]), oom_killed=YES),
    one(facts.RootExited, code=CODE, asked_by=st.sampled_from([None, "eve"]), left=st.integers(0, 2), rebooted=YES),
    one(facts.ChildStarted, pid=PIDS, name="c", worker=YES),
    one(facts.ChildExited, pid=PIDS, name="c", worker=YES, lived_s=TIMES),
    one(facts.LogGrew, size=BYTES, lines=LINES, skipped=st.integers(0, 2), history=YES),
    one(facts.LogReset, why=st.sampled_from(["truncated", "rotated"])),
    one(facts.LogUnreadable, error="no", missing=YES),
    one(facts.PortOpened, port=1, owner=OWNER, pid=COUNT),
    one(facts.PortClosed, port=1),
    one(facts.ProbeAnswered, probe=PROBE, status=STATUS, models=st.sampled_from([(), ("m",)])),
    one(facts.TokenAnswered, status=STATUS, error=ERROR, tokens=COUNT, latency_s=TIMES),
    one(facts.MetricsSeen, running=NUMBER, waiting=NUMBER, tokens_total=NUMBER),
    one(facts.Sampled, cpu_s=TIMES, io_bytes=BYTES, rss_bytes=BYTES, processes=1, gpu_bytes=st.none() | BYTES),
    one(facts.KernelSaid, lines=KERNEL),
    one(facts.RoomSeen, rooms=ROOMS),
    one(facts.PortHeld, port=1, holders=HOLDERS),
    one(
        facts.GpusSeen,
        gpus=st.builds(fact_parts.GpuMemory, index=st.just(0), used_bytes=COUNT, holders=HOLDERS).map(
            lambda gpu: (gpu,)
        ),
    ),
    one(facts.StopAsked, by="eve"),
    one(facts.Troubled, what=st.text(max_size=5)),
)
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


def test_long_attempt_keeps_head_tail_and_errors_for_its_diagnosis() -> None:
    story = Transcript().launched().main(0.2)
    story.log(1.0, "the very first line").log(2.0, *(f"filler {number}" for number in range(2000))).log(3.0, NO_MODULE)
    for at_s in range(4, 400):
        story.log(at_s, *(f"noise {at_s} {number}" for number in range(50)))
    kept = [line.text for chunk in story.state.log.chunks for line in chunk]
    assert len(kept) <= 3000
    assert kept[0] == "the very first line"
    assert kept[-1] == "noise 399 49"
    assert NO_MODULE in kept
    story.exited(500, code=1).root(500, code=1)
    assert story.verdict.cause.code == "IMP001"
