"""Deaths, stops and ends of jobs (laws 3 and 8), and hosts that go away."""

from transcripts import NO_MODULE, OTHER, SGLANG_BANNER, USAGE, VLLM, Transcript

from vigil.facts import Troubled


def test_exit_0_that_nobody_asked_for_is_a_crash() -> None:
    story = Transcript().launched().main(0.2).log(0.3, SGLANG_BANNER).exited(5.0, code=0).root(5.0, code=0)
    assert (story.word, story.verdict.exit_code) == ("crashed", 4)
    assert "exit code 0 is a crash here" in story.verdict.reason


def test_usage_text_is_the_cause_of_a_death_with_exit_2() -> None:
    story = Transcript().launched().main(0.2).log(0.5, *USAGE).exited(0.6, code=2).root(0.6, code=2)
    assert (story.word, story.verdict.cause.code) == ("crashed", "FLAG001")
    assert story.verdict.tail == ()


def test_death_without_a_cause_shows_the_last_lines() -> None:
    lines = [f"line {number}" for number in range(1, 9)]
    story = (
        Transcript(OTHER).launched().main(0.2, argv="./serve").log(0.5, *lines).exited(0.6, code=1).root(0.6, code=1)
    )
    assert (story.word, story.verdict.cause) == ("crashed", None)
    assert story.verdict.tail == tuple((number, f"line {number}") for number in range(3, 9))


def test_verdict_that_is_well_shows_no_lines() -> None:
    assert Transcript().ready(10.0).verdict.tail == ()


def test_kernel_oom_killer_is_named() -> None:
    story = (
        Transcript().launched().main(0.2).exited(5.0, signal=9, oom_killed=True).root(5.0, signal=9, oom_killed=True)
    )
    assert "OOM killer" in story.verdict.reason


def test_death_long_after_ready_says_how_long() -> None:
    story = Transcript().ready(10.0).exited(55.0, code=1).root(55.0, code=1)
    assert story.words[-1] == "crashed"
    assert "45.0 s after it was ready" in story.verdict.reason


def test_death_that_followed_a_workers_names_the_worker() -> None:
    """vLLM exits 0 after its engine was killed, and its log points at a stack trace that is not there."""
    story = Transcript().ready(10.0).child_died(50.0, worker=True, pid=200).exited(51.4, code=0).root(51.4, code=0)
    assert "its process 200 (sglang::scheduler_TP0) had ended 1.4 s before" in story.verdict.reason
    assert any("process 200" in evidence.text for evidence in story.verdict.evidence)


def test_death_after_children_that_come_and_go_names_none() -> None:
    story = Transcript().ready(10.0).child_died(50.0, worker=False).exited(51.4, code=1).root(51.4, code=1)
    assert "process 200" not in story.verdict.reason


def test_death_of_a_worker_in_an_earlier_life_is_not_named() -> None:
    story = Transcript().launched().main(0.2, 101).child_died(3.0, worker=True).exited(3.5, 101, code=1)
    story.main(5.0, 102).exited(8.0, 102, code=3).root(8.0, code=3)
    assert "had ended" not in story.verdict.reason


def test_exit_of_a_wrapper_is_taken_for_its_last_commands() -> None:
    story = Transcript().launched().main(0.2, wrapped=True).log(0.5, *USAGE).exited(0.6).root(0.7, code=2)
    assert story.verdict.attempts[0].exit == 2
    assert "exit code 2" in story.verdict.reason


def test_orphans_that_had_to_be_ended_are_told() -> None:
    story = Transcript().launched().main(0.2).exited(5.0, code=1).root(5.0, code=1, left=3)
    assert any("3 processes" in evidence.text for evidence in story.verdict.evidence)


def test_stop_that_was_asked_for_is_stopped_whatever_the_code() -> None:
    for code in (0, 143, None):
        story = Transcript().ready(10.0).stop(20.0).exited(21.0, code=code).root(21.0, code=code)
        assert (story.words[-1], story.verdict.exit_code) == ("stopped", 11)
        assert "eve@laptop" in story.verdict.reason


def test_stop_known_only_by_the_launchers_note_is_stopped() -> None:
    story = Transcript().launched().main(0.2).exited(5.0, signal=15).root(5.0, signal=15, asked_by="eve@laptop")
    assert story.word == "stopped"


def test_stop_makes_no_loop_of_the_attempts_before_it() -> None:
    story = Transcript().launched().dies(1, 101).dies(5, 102).main(10.0, 103).stop(11.0).exited(12.0, 103)
    assert "crash_looping" not in story.root(12.1, code=0).words


def test_failures_while_it_goes_down_are_no_verdict() -> None:
    story = Transcript().ready(10.0).stop(20.0).closed(20.1).hang(41.0).child_died(42.0, worker=True).ticks(50.0)
    assert story.words == ["starting", "ready"]
    assert "asked it to stop" in story.verdict.reason


def test_stop_that_nothing_follows_is_no_excuse_for_ever() -> None:
    story = Transcript().ready(10.0).stop(20.0).closed(20.1).ticks(200.0)
    assert story.word == "unhealthy"


def test_job_that_ends_with_0_is_finished() -> None:
    story = (
        Transcript(OTHER, job=True).launched().main(0.2, argv="python train.py").exited(99.0, code=0).root(99.0, code=0)
    )
    assert (story.words, story.verdict.exit_code) == (["starting", "finished"], 0)


def test_job_that_ends_otherwise_is_crashed() -> None:
    story = (
        Transcript(OTHER, job=True).launched().main(0.2, argv="python train.py").exited(99.0, code=5).root(99.0, code=5)
    )
    assert story.word == "crashed"


def test_reboot_is_a_crash_with_a_cause_of_its_own() -> None:
    story = Transcript().ready(10.0).lost(20.0).reached(40.0, boot="b2")
    assert (story.words[-1], story.verdict.cause.code) == ("crashed", "HOST001")


def test_lost_connection_is_no_crash_and_no_new_attempt() -> None:
    story = Transcript().ready(10.0).lost(20.0).ticks(40.0)
    assert "connection lost" in story.verdict.reason
    story.reached(40.0).main(40.1, seen_late=True).port(40.2).tick(41.0)
    assert story.words == ["starting", "ready"]
    assert len(story.verdict.attempts) == 1


def test_lost_while_loading_goes_on_where_it_was() -> None:
    story = Transcript().launched().main(0.2).log(0.3, SGLANG_BANNER).lost(5.0).ticks(25.0).reached(25.0)
    story.main(25.1, seen_late=True).ticks(60.0).answers(60.0).token(60.1)
    assert story.words == ["starting", "ready"]
    assert len(story.verdict.attempts) == 1


def test_death_during_the_cut_is_seen_after_it() -> None:
    story = Transcript().ready(10.0).lost(20.0).reached(30.0).root(30.1, code=7)
    assert (story.words[-1], story.verdict.attempts[0].exit) == ("crashed", 7)


def test_other_pid_after_the_cut_is_a_new_attempt() -> None:
    story = Transcript().ready(10.0).lost(20.0).reached(30.0).main(30.1, 200, seen_late=True)
    assert story.words[-1] == "starting"
    assert [attempt.pid for attempt in story.verdict.attempts] == [100, 200]


def test_connection_lost_for_long_is_unreachable_and_says_what_was_known() -> None:
    story = Transcript().ready(10.0).lost(20.0).ticks(90.0)
    assert (story.word, story.verdict.exit_code) == ("unreachable", 10)
    assert "last known: ready" in story.verdict.reason


def test_connection_lost_for_good_is_unreachable_at_once() -> None:
    assert Transcript(reached=False).lost(0.5, final=True).word == "unreachable"


def test_unreachable_ends_when_the_host_is_back() -> None:
    story = Transcript().ready(10.0).lost(20.0).ticks(90.0).reached(100.0).main(100.1, seen_late=True)
    assert story.word == "ready"


def test_log_that_gave_up_is_a_crash_where_no_process_is_to_be_seen() -> None:
    story = Transcript().log(5.0, *USAGE).ticks(14.0)
    assert story.word == "starting"
    story.ticks(20.0)
    assert (story.word, story.verdict.cause.code) == ("crashed", "FLAG001")
    assert "no process was to be seen" in story.verdict.reason


def test_log_that_goes_on_after_fatal_words_did_not_give_up() -> None:
    story = Transcript().log(5.0, *USAGE)
    for at_s in range(6, 60):
        story.log(at_s, f"still here {at_s * at_s}")
    assert story.word == "starting"


def test_log_that_had_given_up_before_we_looked_waits_longer_for_a_new_start() -> None:
    story = Transcript().log(0.1, *USAGE, history=True).ticks(14.0)
    assert story.word == "starting"
    story.ticks(16.0)
    assert story.word == "crashed"
    assert "before we looked" in story.verdict.reason


def test_new_life_takes_yesterdays_last_words_back() -> None:
    story = Transcript().log(0.1, *USAGE, history=True).log(5.0, SGLANG_BANNER).ticks(100.0)
    assert story.words == ["starting"]
    story.answers(100.0).token(100.1)
    assert story.words == ["starting", "ready"]


def test_yesterdays_failure_is_not_todays_cause() -> None:
    story = Transcript().log(0.1, NO_MODULE, *USAGE, history=True).launched().main(0.2)
    story.log(0.3, SGLANG_BANNER).exited(9.0, code=1).root(9.0, code=1)
    assert story.verdict.cause is None or story.verdict.cause.code not in {"FLAG001", "IMP001"}


def test_late_watcher_knows_the_failure_that_the_log_told_before() -> None:
    story = (
        Transcript(VLLM).log(0.1, NO_MODULE, history=True).main(0.2, seen_late=True, argv="vllm serve m").exited(3.0)
    )
    assert story.state.process.ended[0].why.code == "IMP001"


def test_server_known_by_its_address_alone_that_stops_listening_is_unhealthy() -> None:
    story = Transcript().port(0.1, "unknown", None).models(0.2, "m").token(0.3).closed(30.0).ticks(40.0)
    assert story.words == ["starting", "ready", "unhealthy"]
    assert "nothing listens" in story.verdict.reason


def test_trouble_of_ours_is_a_warning_once() -> None:
    story = Transcript().ready(10.0)
    for at_s in (11.0, 12.0):
        story.take(Troubled(at_s=at_s, what="the trace cannot be written: No space left on device"))
    assert story.verdict.warnings == ("the trace cannot be written: No space left on device",)
    assert story.word == "ready"


def test_log_that_cannot_be_read_is_a_warning_and_no_more() -> None:
    story = Transcript().ready(10.0).unreadable(20.0)
    assert story.verdict.warnings == ("the log cannot be read: Permission denied",)
    assert story.word == "ready"


def test_start_of_another_boot_is_a_crash_of_its_host_for_a_new_watcher() -> None:
    story = Transcript().launched(0.1).log(0.2, SGLANG_BANNER).root(0.3, rebooted=True)
    assert (story.word, story.verdict.cause.code) == ("crashed", "HOST001")
