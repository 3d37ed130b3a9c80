"""Loops: attempts that end alike, not short uptimes (law 6)."""

from transcripts import LLAMA, NCCL, NO_MODULE, OTHER, SGLANG_BANNER, USAGE, Transcript

from vigil import facts


def test_hopeless_cause_twice_is_a_loop() -> None:
    story = Transcript().launched().dies(0.2, 101, *USAGE).dies(3, 102, *USAGE)
    assert (story.words, story.verdict.exit_code) == (["starting", "crash_looping"], 5)
    assert story.verdict.cause.code == "FLAG001"
    assert "a retry cannot mend that" in story.verdict.reason


def test_cause_that_a_retry_may_mend_is_a_loop_at_the_third() -> None:
    story = Transcript().launched().dies(1, 101, NCCL).dies(5, 102, NCCL).main(8, 103)
    assert story.word == "starting"
    story.log(9, NCCL).exited(10, 103)
    assert story.word == "crash_looping"
    assert len(story.verdict.evidence) == 3


def test_three_plain_exits_are_a_loop() -> None:
    story = Transcript().launched().dies(1, 101).dies(35, 102).dies(69, 103, lived_s=29)
    assert story.words == ["starting", "crash_looping"]


def test_differing_causes_that_recover_at_the_third_end_ready() -> None:
    story = Transcript().launched().dies(1, 101, NO_MODULE).dies(5, 102, NCCL).main(9, 103).answers(12).token(12.1)
    assert story.words == ["starting", "ready"]
    assert story.verdict.attempts[0].cause == "IMP001"


def test_ready_each_time_and_dead_a_minute_later_is_a_loop() -> None:
    story = Transcript().launched()
    for number in range(3):
        begun_s = 100 * number + 1.0
        story.main(begun_s, 101 + number).answers(begun_s + 10).token(begun_s + 10.1)
        story.log(begun_s + 70, NCCL).exited(begun_s + 70.5, 101 + number).closed(begun_s + 70.6)
    assert story.words == ["starting", "ready", "starting", "ready", "starting", "ready", "crash_looping"]


def test_deaths_hours_apart_are_no_loop() -> None:
    story = Transcript().launched()
    for number in range(4):
        begun_s = 5000.0 * number + 1.0
        story.main(begun_s, 101 + number).answers(begun_s + 10).token(begun_s + 10.1).exited(
            begun_s + 4000, 101 + number
        )
    assert "crash_looping" not in story.words


def test_many_attempts_that_never_served_are_a_loop_whatever_their_causes() -> None:
    story = Transcript().launched()
    for number in range(10):
        story.dies(
            5.0 * number + 1,
            101 + number,
            NCCL if number % 2 else f"RuntimeError: fault {chr(97 + number)} in the deep",
        )
    assert story.words == ["starting", "crash_looping"]


def test_loop_stays_told_until_an_attempt_is_ready() -> None:
    story = (
        Transcript().launched().dies(0.2, 101, *USAGE).dies(3, 102, *USAGE).main(6, 103).log(7, SGLANG_BANNER).tick(20)
    )
    assert (story.word, story.verdict.cause.code) == ("crash_looping", "FLAG001")
    assert story.answers(30).token(30.1).word == "ready"


def test_steps_of_a_script_are_no_loop() -> None:
    story = Transcript().launched()
    for number, argv in enumerate(("python prepare.py", "python convert.py", "python check.py")):
        story.dies(5.0 * number + 1, 101 + number, argv=argv, sure=False)
    story.main(20, 110).answers(40).token(40.1)
    assert story.words == ["starting", "ready"]


def test_steps_of_a_job_that_show_no_failure_are_no_loop() -> None:
    story = Transcript(OTHER, job=True).launched()
    for number in range(6):
        story.dies(5.0 * number + 1, 101 + number, argv=f"python extract.py --shard {number}", sure=False)
    assert story.root(60, code=0).words == ["starting", "finished"]


def test_job_that_fails_alike_is_a_loop() -> None:
    story = Transcript(OTHER, job=True).launched()
    for number in range(3):
        story.dies(5.0 * number + 1, 101 + number, NCCL, argv="python train.py", sure=False)
    assert story.word == "crash_looping"


def test_loop_that_only_the_log_shows_is_found_by_banners() -> None:
    story = Transcript()
    for number in range(3):
        story.log(10.0 * number + 1, SGLANG_BANNER, "something loads").log(10.0 * number + 4, NO_MODULE)
    assert story.words == ["starting", "crash_looping"]
    assert story.verdict.cause.code == "IMP001"
    assert [attempt.pid for attempt in story.verdict.attempts] == [None, None, None]


def test_loop_behind_a_wrapper_whose_pid_stays_is_found_by_banners() -> None:
    story = Transcript().main(0.1, 50, argv="docker run engine", sure=False, seen_late=True)
    for number in range(3):
        story.log(10.0 * number + 1, SGLANG_BANNER).log(10.0 * number + 4, NO_MODULE)
    assert story.word == "crash_looping"


def test_banner_of_a_process_that_is_surely_the_same_is_no_restart() -> None:
    story = Transcript().launched().main(0.2)
    for at_s in range(1, 8):
        story.log(at_s, SGLANG_BANNER)
    assert len(story.verdict.attempts) == 1


def test_usage_text_again_and_again_in_a_log_is_a_loop() -> None:
    story = Transcript()
    for number in range(3):
        story.log(0.05 * number + 1, *USAGE)
    assert (story.words, story.verdict.cause.code) == (["starting", "crash_looping"], "FLAG001")


def test_lives_too_short_to_be_seen_under_our_launcher_are_counted_by_the_log() -> None:
    story = Transcript().launched()
    for number in range(3):
        story.log(0.05 * number + 0.2, *USAGE)
    assert story.word == "crash_looping"


def test_loop_in_a_log_that_is_truncated_at_each_start_is_found() -> None:
    story = Transcript(OTHER)
    for number in range(4):
        story.reset(10.0 * number + 0.9).log(10.0 * number + 1, "my server 1.0", "opening the cellar", NO_MODULE)
    assert story.word == "crash_looping"


def test_program_that_repeats_itself_does_not_loop() -> None:
    story = Transcript(OTHER)
    for at_s in range(1, 100):
        story.log(at_s, f"epoch {at_s}", f"loss {1 / at_s:.3f}", "checkpoint saved")
    assert story.words == ["starting"]
    assert len(story.verdict.attempts) == 1


def test_access_lines_of_others_open_no_life() -> None:
    story = Transcript(OTHER).answers(0.5).token(0.6)
    for at_s in range(1, 50):
        story.log(
            at_s,
            'INFO: 127.0.0.1:9 - "GET /health HTTP/1.1" 200 OK',
            'INFO: 127.0.0.1:9 - "GET /v1/models HTTP/1.1" 200 OK',
        )
    assert story.words == ["starting", "ready"]


def test_first_banner_belongs_to_the_process_that_is_seen_after_it() -> None:
    story = Transcript().launched().log(0.1, SGLANG_BANNER).main(0.2, wrapped=True).tick(5)
    assert [(attempt.n, attempt.pid) for attempt in story.verdict.attempts] == [(1, 100)]


def test_last_attempt_counts_as_the_end_when_no_other_comes() -> None:
    story = Transcript().main(0.2, seen_late=True, wrapped=True).log(5, NO_MODULE).exited(6).ticks(60)
    assert (story.word, "waiting for what starts it again" in story.verdict.reason) == ("starting", True)
    story.ticks(70)
    assert (story.word, story.verdict.cause.code) == ("crashed", "IMP001")


def test_server_that_nothing_seems_to_restart_is_given_up_sooner() -> None:
    story = Transcript().main(0.2, seen_late=True).log(5, NO_MODULE).exited(6).ticks(20)
    assert story.word == "starting"
    story.ticks(22)
    assert (story.word, story.verdict.cause.code) == ("crashed", "IMP001")


def test_refused_start_is_in_the_trace() -> None:
    story = Transcript().take(
        facts.Refused(at_s=0.0, what="port", text="port 8000 is already taken by pid 7 (python3)")
    )
    assert (story.word, story.verdict.exit_code, story.verdict.cause.code) == ("refused", 3, "PORT001")


def test_wrapper_that_downloads_between_two_steps_is_not_abandoned() -> None:
    story = Transcript().launched().dies(1, 101, argv="python prepare.py", sure=False)
    for at_s in range(4, 200):
        story.sample(at_s, io=at_s * 1_000_000)
    assert story.words == ["starting"]


def test_banner_of_a_process_that_is_still_there_is_a_workers() -> None:
    story = Transcript(LLAMA).main(0.1, 50, argv="./my-server.sh", sure=False, seen_late=True)
    for at_s in range(1, 6):
        story.log(at_s, LLAMA.banners[0])
    assert len(story.verdict.attempts) == 1


def test_banner_after_a_wrappers_child_ended_is_another_life() -> None:
    story = Transcript().main(0.1, 50, argv="my-supervisor", sure=False, wrapped=True)
    for number in range(3):
        story.log(10.0 * number + 1, SGLANG_BANNER)
        story.child_died(10.0 * number + 9, worker=False, lived_s=8.5)
    story.log(31, SGLANG_BANNER)
    assert (story.word, len(story.verdict.attempts)) == ("crash_looping", 4)


def test_compilers_that_end_between_two_banners_are_no_restart() -> None:
    story = Transcript().main(0.1, 50, argv="my-supervisor", sure=False)
    for number in range(4):
        story.log(10.0 * number + 1, SGLANG_BANNER)
        story.child_died(10.0 * number + 9, worker=False, lived_s=0.5)
    assert len(story.verdict.attempts) == 1


def test_reconnecting_to_a_wrapper_does_not_make_its_banner_news() -> None:
    story = Transcript().main(0.1, 50, argv="docker run engine", sure=False).log(1, SGLANG_BANNER, inode=7)
    for number in range(4):
        at_s = 10.0 * number + 10
        story.lost(at_s).reached(at_s + 1).main(at_s + 1.1, 50, argv="docker run engine", sure=False, seen_late=True)
        story.log(at_s + 1.2, SGLANG_BANNER, inode=7)
    assert (story.word, len(story.verdict.attempts)) == ("starting", 1)
    assert story.state.log.inode == 7
