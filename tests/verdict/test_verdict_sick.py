"""Stuck, lying and maimed servers (laws 4, 7 and 9): each verdict with what shows it."""

from transcripts import LLAMA, OTHER, SGLANG_BANNER, SGLANG_LOADS, VLLM, Transcript, patient

from vigil import facts

CAPTURES = "[2026-11-30 10:00:30 TP0] Capture cuda graph begin. This can take up to several minutes."
ACCESS = 'INFO:     127.0.0.1:52144 - "GET /v1/models HTTP/1.1" 200 OK'


def loading() -> Transcript:
    return Transcript(policy=patient(timeout_s=0.0)).launched().main(0.2).log(0.3, SGLANG_BANNER, SGLANG_LOADS)


def test_stalled_names_what_it_could_see() -> None:
    story = loading()
    for at_s in range(1, 320):
        story.sample(at_s, io=7, gpu=5 << 30)
    verdict = story.verdict
    assert (verdict.word, verdict.exit_code) == ("stalled", 6)
    assert "stuck in loading_weights (quiet for 300" not in verdict.reason
    texts = " | ".join(evidence.text for evidence in verdict.evidence)
    for words in ("log: no new line", "nothing moved", "1024 MiB", "GPU memory: unchanged (5120 MiB)", "CPU: idle"):
        assert words in texts
    assert verdict.tail[-1][1] == SGLANG_LOADS


def test_stalled_spinning_says_so() -> None:
    story = loading()
    for at_s in range(1, 320):
        story.sample(at_s, cpu=8.0 * at_s)
    assert "spinning without progress" in story.verdict.reason


def test_crawling_download_is_slow_and_not_stuck() -> None:
    story = loading()
    for at_s in range(1, 3000):
        story.sample(at_s, io=5000 * at_s)
    assert story.words == ["starting"]


def test_memory_that_grows_is_progress() -> None:
    story = loading()
    for at_s in range(1, 3000, 10):
        story.sample(at_s, gpu=at_s << 21)
    assert story.words == ["starting"]


def test_phase_that_is_known_to_be_silent_may_be() -> None:
    story = loading().log(30, CAPTURES)
    for at_s in range(31, 600, 5):
        story.sample(at_s)
    assert story.words == ["starting"]


def test_phase_that_was_quick_before_is_stuck_sooner() -> None:
    story = Transcript(slowest_quiet_s={"loading_weights": 20.0}).main(0.2).log(0.3, SGLANG_BANNER, SGLANG_LOADS)
    assert story.ticks(58).word == "starting"
    assert story.ticks(70).word == "stalled"


def test_phase_that_was_quiet_for_long_in_this_very_start_is_given_more() -> None:
    story = loading().ticks(250).log(250, "loaded the first half").ticks(900)
    assert story.word == "starting"
    assert story.ticks(1010).word == "stalled"


def test_movement_takes_a_stall_back() -> None:
    story = loading().ticks(320)
    assert story.word == "stalled"
    assert story.log(330, "at last").word == "starting"


def test_stall_is_not_claimed_by_the_blind() -> None:
    story = Transcript(policy=patient(timeout_s=2000.0)).main(0.2).unreadable(0.3).ticks(1900)
    assert story.word == "starting"
    assert story.ticks(2100).word == "timed_out"


def test_log_alone_is_enough_to_see_a_stall() -> None:
    story = Transcript().log(0.1, SGLANG_BANNER, SGLANG_LOADS, history=True).ticks(400)
    assert story.word == "stalled"
    assert any("processes: not to be seen" in evidence.text for evidence in story.verdict.evidence)


def test_answers_to_our_probes_are_no_progress() -> None:
    """llama-server listens from the first moment: twenty answers of 503 a second move bytes, and write access lines."""
    story = (
        Transcript(LLAMA).launched().main(0.2, argv="llama-server").port(0.5).models(0.5, status=503).health(0.5, 503)
    )
    for at_s in range(1, 400):
        story.sample(at_s, io=60_000 * at_s).log(at_s, "srv  log_server_r: done request: GET /v1/models 127.0.0.1 503")
    assert story.words == ["starting", "stalled"]


def test_weights_that_load_behind_an_open_port_are_progress() -> None:
    story = Transcript(LLAMA).launched().main(0.2, argv="llama-server").port(0.5).models(0.5, status=503)
    for at_s in range(1, 800):
        story.sample(at_s, io=5_000_000 * at_s)
    assert story.words == ["starting"]


def test_timed_out_is_for_what_still_moves() -> None:
    story = loading_with_a_limit()
    for at_s in range(1, 1000):
        story.log(at_s, f"shard {at_s}")
    assert (story.words, story.verdict.exit_code) == (["starting", "timed_out"], 7)


def loading_with_a_limit() -> Transcript:
    return Transcript().launched().main(0.2).log(0.3, SGLANG_BANNER, SGLANG_LOADS)


def test_timed_out_counts_from_when_we_could_look() -> None:
    story = Transcript(reached=False).reached(7200.0).launched(7200.0).main(7200.1, seen_late=True).tick(7201.0)
    assert story.word == "starting"
    assert story.answers(7201.0).token(7201.1).word == "ready"


def test_timed_out_counts_anew_after_a_life_that_was_ready() -> None:
    story = (
        Transcript().ready(10.0).ticks(3600).exited(3600, code=1).main(3605, 101).log(3606, SGLANG_BANNER).tick(3700)
    )
    assert story.words == ["starting", "ready", "starting"]


def test_job_without_a_limit_never_times_out_and_is_stuck_after_ten_minutes() -> None:
    story = Transcript(OTHER, job=True, policy=patient(timeout_s=0.0)).launched().main(0.2, argv="python train.py")
    for at_s in range(0, 36000, 500):
        story.log(at_s + 1, f"step {at_s}")
    assert story.words == ["starting"]


def test_job_that_is_quiet_is_stuck_in_the_end() -> None:
    story = Transcript(OTHER, job=True, policy=patient(timeout_s=0.0)).launched().main(0.2, argv="python train.py")
    story.log(1, "step 1").ticks(590)
    assert story.word == "starting"
    assert story.ticks(620).word == "stalled"


def test_compiling_at_run_time_does_not_move_the_phase_back() -> None:
    story = Transcript(VLLM).launched().main(0.2, argv="vllm serve m").answers(5).token(5.1)
    story.log(6, "(EngineCore pid=7) INFO 11-30 10:00:00 [backends.py:1] Compiling a graph for dynamic shape takes 9 s")
    assert story.verdict.phase == "serving"


def test_phases_may_come_in_any_order_before_ready() -> None:
    story = Transcript().main(0.2).log(1, CAPTURES).log(2, SGLANG_LOADS)
    assert [span.name.value for span in story.verdict.phases] == ["importing", "capturing_graphs", "loading_weights"]


def test_other_ranks_do_not_move_the_phase() -> None:
    story = Transcript().main(0.2).log(1, CAPTURES).log(2, SGLANG_LOADS.replace("TP0", "TP3"))
    assert story.verdict.phase == "capturing_graphs"


def test_green_health_and_a_hanging_first_token_is_unhealthy() -> None:
    story = Transcript(VLLM).launched().main(0.2, argv="vllm serve m").health(5).answers(5).ticks(60)
    assert story.word == "starting"
    story.health(61, repeats=10).hang(65).ticks(70)
    assert (story.word, story.verdict.exit_code) == ("unhealthy", 8)
    assert "no token came" in story.verdict.reason
    assert "still answers 200" in story.verdict.reason


def test_health_that_was_green_only_before_the_hang_is_not_called_green() -> None:
    story = (
        Transcript(VLLM).launched().main(0.2, argv="vllm serve m").health(5).answers(5.1).ticks(60).hang(65.2).ticks(70)
    )
    assert story.word == "unhealthy"
    assert "200" not in story.verdict.reason


def test_port_that_accepts_and_never_answers_is_unhealthy() -> None:
    story = Transcript().main(0.2, seen_late=True).take(facts.PortOpened(at_s=1, port=8000, owner="ours", pid=100))
    story.take(facts.ProbeAnswered(at_s=11, probe="models", error="timeout", latency_s=10)).ticks(60)
    assert story.word == "starting"
    story.ticks(63)
    assert story.word == "unhealthy"
    assert "nothing answers" in story.verdict.reason


def test_hanging_server_that_only_answers_probes_does_not_move() -> None:
    story = Transcript(OTHER).launched().main(0.2, argv="./serve", sure=False).answers(5)
    for at_s in range(6, 80):
        story.sample(at_s, io=60_000 * at_s).log(at_s, ACCESS)
    assert story.words == ["starting", "unhealthy"]


def test_our_own_prefill_is_no_movement() -> None:
    prefill = "[2026-11-30 10:01:00 TP0] Prefill batch. #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00"
    story = Transcript().launched().main(0.2).answers(5).log(5.1, prefill).hang(65).log(65.2, prefill).ticks(70)
    assert story.word == "unhealthy"


def test_first_token_that_waits_for_kernels_is_given_time() -> None:
    story = Transcript().launched().main(0.2).answers(5)
    for at_s in range(6, 300, 10):
        story.log(at_s, f"[2026-11-30 10:01:00 TP0] DeepGEMM JIT kernel {at_s}")
        if at_s % 60 == 6:
            story.hang(at_s)
    assert story.words == ["starting"]
    assert story.token(301).word == "ready"


def test_hang_after_ready_is_unhealthy_at_the_first_time_out() -> None:
    story = Transcript().ready(10).ticks(20.5).hang(40.5)
    assert story.word == "unhealthy"
    assert story.token(45).word == "ready"


def test_completions_that_fail_behind_a_green_health_are_unhealthy() -> None:
    story = Transcript().launched().main(0.2).health(5).answers(5)
    for at_s in range(5, 18):
        story.fail(at_s, 500, "EngineDeadError")
    assert story.word == "unhealthy"
    assert "HTTP 500 (EngineDeadError), and its health path still answers 200" in story.verdict.reason


def test_loading_answers_are_no_failures() -> None:
    story = Transcript().launched().main(0.2).answers(5)
    for at_s in range(5, 60):
        story.fail(at_s, 503, "loading")
    assert story.words == ["starting"]
    assert story.token(60).word == "ready"


def test_unavailable_after_ready_is_a_failure() -> None:
    story = Transcript().ready(10)
    for at_s in range(21, 30):
        story.fail(at_s, 503)
    assert story.word == "unhealthy"


def test_reply_without_a_token_is_unhealthy_with_what_it_lacked() -> None:
    for tokens, words in ((0, "a count of 0"), (None, "no count of tokens")):
        story = Transcript().launched().main(0.2).answers(5)
        for at_s in range(5, 18):
            story.token(at_s, tokens=tokens)
        assert (story.word, words in story.verdict.reason) == ("unhealthy", True)


def test_redirect_is_no_server() -> None:
    story = Transcript().launched().main(0.2).port(5).models(5, status=302, location="https://login.example/").ticks(20)
    assert story.word == "unhealthy"
    assert "https://login.example/" in story.verdict.reason


def test_dead_worker_behind_a_green_health_is_unhealthy() -> None:
    story = Transcript().ready(10).health(11)
    story.asked  # noqa: B018
    story.child_died(30, worker=True)
    assert [asked.timeout_s for asked in story.asked] == [5.0]
    story.ticks(36)
    assert story.word == "unhealthy"
    assert "its process 200 (sglang::scheduler_TP0) died" in story.verdict.reason


def test_dead_worker_whose_main_process_follows_is_a_crash() -> None:
    story = Transcript().ready(10).child_died(30, worker=True, oom_killed=True).fail(30.1, 500)
    story.exited(31, signal=9).root(31, signal=9)
    assert "unhealthy" not in story.words
    assert story.word == "crashed"
    assert "OOM killer" in story.verdict.reason


def test_unknown_child_that_ends_is_mended_by_a_token() -> None:
    story = Transcript().ready(10).child_died(30, worker=False).token(30.2).ticks(100)
    assert story.words == ["starting", "ready"]
    assert story.verdict.warnings == ()


def test_unknown_child_without_a_token_after_it_is_unhealthy() -> None:
    story = Transcript().ready(10).child_died(30, worker=False).hang(35)
    assert story.word == "unhealthy"


def test_dead_rank_beside_which_tokens_come_is_a_warning() -> None:
    story = Transcript().ready(10).child_died(30, worker=True).token(30.2)
    assert story.word == "ready"
    assert "tokens still come" in story.verdict.warnings[0]


def test_dead_worker_while_loading_is_stuck_soon() -> None:
    story = loading().child_died(10, worker=True).ticks(39)
    assert story.word == "starting"
    story.ticks(45)
    assert (story.word, "its process 200" in story.verdict.reason) == ("stalled", True)


def test_children_of_a_start_that_come_and_go_are_nothing() -> None:
    story = loading().child_died(10, worker=False, lived_s=1.0).tick(11)
    assert story.state.process.worker is None


def test_starting_verdict_has_the_exit_code_of_a_watch_that_ends_first() -> None:
    assert loading().verdict.exit_code == 12


def test_failing_is_not_busy_for_a_token_of_ours_that_the_counters_show_late() -> None:
    story = Transcript(VLLM).ready(10.0).metrics(11.0, 1)
    story.token(20.0).metrics(20.001, 1).metrics(25.0, 2)  # read a moment before our token was counted, told after it
    for at_s in (30.0, 30.2, 30.5, 36.0):
        story.fail(at_s)
    assert story.words == ["starting", "ready", "unhealthy"]
