"""Where processes that seem stuck stand: when they are looked at, and what is said of it."""

from transcripts import LLAMA, SGLANG_BANNER, SGLANG_LOADS, Transcript, patient

from vigil.fact_parts import ProcessStack
from vigil.verdict import DumpStacks

ALL_REDUCE = (
    "wait (threading.py:327)",
    "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    "forward (model.py:12)",
)
LOADS = ("read (loader.py:88)", "load_weights (loader.py:40)")


def loading() -> Transcript:
    return Transcript(policy=patient(timeout_s=0.0)).launched().main(0.2).log(0.3, SGLANG_BANNER, SGLANG_LOADS)


def looks(story: Transcript) -> int:
    return sum(isinstance(effect, DumpStacks) for effect in story.effects)


def rank(number: int, frames: tuple[str, ...], **more: str) -> ProcessStack:
    return ProcessStack(pid=100 + number, name=f"sglang::scheduler_TP{number}", frames=frames, **more)


def evidence(story: Transcript) -> str:
    return " | ".join(one.text for one in story.verdict.evidence)


def test_processes_are_looked_at_once_before_they_are_called_stuck() -> None:
    story = loading().ticks(220)
    assert (story.word, looks(story)) == ("starting", 0)
    assert (story.ticks(290).word, looks(story)) == ("starting", 1)


def test_progress_makes_the_next_quiet_another_one() -> None:
    story = loading().ticks(290).log(291, "loaded the first half").ticks(1100)
    assert looks(story) == 2


def test_server_that_is_on_its_way_is_left_alone() -> None:
    story = loading()
    for at_s in range(1, 900, 10):
        story.log(at_s, f"shard {at_s}")
    assert looks(story) == 0


def test_one_process_is_shown_with_its_callers() -> None:
    story = loading().ticks(290).stacks(291, rank(0, LOADS)).ticks(400)
    assert story.word == "stalled"
    assert "stack of pid 100 (sglang::scheduler_TP0): read (loader.py:88) < load_weights (loader.py:40)" in evidence(
        story
    )


def test_ranks_that_wait_are_told_from_the_one_that_is_not_there() -> None:
    stacks = (*(rank(number, ALL_REDUCE) for number in range(3)), rank(3, LOADS))
    story = loading().ticks(290).stacks(291, *stacks).ticks(400)
    told = evidence(story)
    assert (
        "3 of 4 processes are in all_reduce (torch/distributed/distributed_c10d.py): pid 100 (sglang::scheduler_TP0), "
        in told
    )
    assert "stacks: pid 103 (sglang::scheduler_TP3) is in read (loader.py)" in told


def test_pythons_own_helper_is_left_out() -> None:
    tracker = ProcessStack(pid=99, name="python3", frames=("main (multiprocessing/resource_tracker.py:227)",))
    story = loading().ticks(290).stacks(291, tracker, rank(0, LOADS)).ticks(400)
    assert "resource_tracker" not in evidence(story)
    assert "stack of pid 100" in evidence(story)


def test_process_that_waits_for_a_disk_is_named() -> None:
    story = loading().ticks(290).stacks(291, rank(0, (), state="D", waits_in="nfs_wait_bit_killable")).ticks(400)
    assert "pid 100 (sglang::scheduler_TP0) waits for a disk or a driver (nfs_wait_bit_killable)" in evidence(story)


def test_stacks_that_cannot_be_had_are_said_to_be_missing() -> None:
    story = loading().ticks(290).stacks(291, error="py-spy is not installed there").ticks(400)
    assert "stacks: none (py-spy is not installed there)" in evidence(story)


def test_stacks_of_before_some_progress_say_nothing() -> None:
    story = loading().ticks(290).stacks(291, rank(0, LOADS)).log(292, "one more shard").ticks(1500, every_s=300)
    assert story.word == "stalled"
    assert "stack of" not in evidence(story)


def test_hang_after_ready_is_looked_at_before_the_verdict() -> None:
    story = Transcript().ready(10).ticks(20.5).ticks(36)
    assert (story.word, looks(story)) == ("ready", 1)
    story.stacks(37, rank(0, ALL_REDUCE)).hang(40.5)
    assert story.word == "unhealthy"
    assert "stack of pid 100" in evidence(story)


def test_slow_answer_while_tokens_flow_is_no_reason_to_look() -> None:
    story = Transcript(LLAMA).launched(0.1).main(0.2, argv="llama-server -m m").answers(10).token(10).ticks(20.5)
    for at_s in range(21, 36):
        story.metrics(at_s, tokens=100.0 * at_s)
    assert looks(story) == 0
