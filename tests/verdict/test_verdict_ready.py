"""Ready, and what only looks like it (laws 4, 5 and 9)."""

from transcripts import LLAMA, OTHER, SGLANG_BANNER, SGLANG_FIRED, VLLM, Transcript

from vigil.verdict import Keep, Probe, ReadMetrics


def test_ready_follows_a_token_from_our_own_port() -> None:
    story = Transcript().launched(0.1).main(0.2).log(0.3, SGLANG_BANNER)
    assert story.word == "starting"
    story.port(9.0).models(9.01, "m")
    assert [(asked.model, asked.tokens, asked.delay_s) for asked in story.asked] == [("m", 1, 0.0)]
    story.token(9.2)
    verdict = story.verdict
    assert (verdict.word, verdict.ready_level, verdict.owner, verdict.exit_code) == ("ready", "token", "verified", 0)
    assert verdict.phases[-1].name == "serving"
    assert verdict.attempts[0].ready_s == 9.2


def test_ready_is_not_taken_back_by_further_tokens_or_silence() -> None:
    story = Transcript().ready(10.0)
    before = story.state.judged
    for at_s in range(20, 3600, 10):
        story.tick(at_s).token(at_s + 0.1)
    assert story.words == ["starting", "ready"]
    assert story.state.judged is before


def test_ready_asks_for_one_token_each_ten_seconds() -> None:
    story = Transcript().ready(10.0)
    story.asked  # noqa: B018 - forgets what was asked for the first token
    asked_at = []
    for at_s in range(11, 60):
        story.tick(at_s)
        if story.asked:
            asked_at.append(at_s)
            story.token(at_s + 0.1)
    assert asked_at == [20, 31, 42, 53]


def test_ready_asks_for_none_while_real_traffic_shows_life() -> None:
    story = Transcript().ready(10.0).metrics(11.0, 100)
    story.asked  # noqa: B018
    for at_s in range(16, 120, 5):
        story.metrics(at_s, 100 * at_s)
    assert story.asked == []
    story.ticks(130)
    assert len(story.asked) == 1


def test_ready_counts_tokens_and_not_words() -> None:
    story = Transcript().launched().main(0.2).answers(5.0).token(5.1, tokens=0, body='{"text": "hello"}')
    assert story.word == "starting"
    assert story.token(5.5, tokens=1, body="").word == "ready"


def test_ready_without_a_visible_owner_says_so() -> None:
    story = Transcript().port(1.0, "unknown", None).models(1.1, "m").token(1.2)
    assert (story.word, story.verdict.owner) == ("ready", "unknown")


def test_token_is_not_asked_for_before_the_owner_of_the_port_is_told() -> None:
    story = Transcript().models(1.0, "m")
    assert story.asked == []
    story.port(1.02)
    assert len(story.asked) == 1


def test_token_is_asked_for_where_the_owner_is_never_told() -> None:
    story = Transcript().models(1.0, "m").ticks(3.0)
    assert len(story.asked) == 1


def test_foreign_owner_is_never_ready_and_is_named() -> None:
    story = Transcript().launched().main(0.2).port(5.0, "foreign", 77, "nginx").models(5.1, "m")
    assert story.asked == []
    story.ticks(14.0)
    assert story.word == "starting"
    story.ticks(16.0)
    assert (story.word, story.verdict.cause.code) == ("unhealthy", "PORT001")
    assert "pid 77 (nginx)" in story.verdict.reason


def test_foreign_owner_that_goes_leaves_room_for_ours() -> None:
    story = Transcript().launched().main(0.2).port(5.0, "foreign", 77).models(5.1, "m").closed(8.0)
    assert story.answers(20.0).token(20.1).words == ["starting", "ready"]


def test_model_that_is_not_listed_is_degraded() -> None:
    story = Transcript(model="wanted").launched().main(0.2).answers(5.0, "other").token(5.1)
    assert story.word == "degraded"
    assert "it serves other, not wanted" in story.verdict.reason


def test_wanted_model_is_the_one_that_is_asked_for() -> None:
    story = Transcript(model="b").answers(5.0, "a", "b")
    assert story.asked[0].model == "b"


def test_speculating_server_is_asked_for_enough_tokens_to_verify_a_draft() -> None:
    assert Transcript(speculation=True).answers(5.0).asked[0].tokens == 8


def test_yesterdays_ready_in_the_log_is_history() -> None:
    story = Transcript(ready="log").log(0.1, SGLANG_BANNER, SGLANG_FIRED, history=True).ticks(5.0)
    assert story.word == "starting"
    story.log(6.0, SGLANG_BANNER)
    assert story.word == "starting"
    story.log(60.0, SGLANG_FIRED)
    assert (story.word, story.verdict.ready_level) == ("ready", "log")


def test_ready_log_asks_nothing_of_the_server() -> None:
    story = Transcript(ready="log").launched().main(0.2).answers(5.0)
    assert story.asked == []
    assert story.log(6.0, SGLANG_FIRED).verdict.attempts[0].ready_s == 6.0


def test_ready_http_needs_a_green_health_path_and_no_token() -> None:
    story = Transcript(ready="http").launched().main(0.2).answers(5.0)
    assert (story.word, story.asked) == ("starting", [])
    story.health(6.0)
    assert (story.word, story.verdict.ready_level) == ("ready", "http")
    assert story.ticks(100).asked == []


def test_ready_of_a_program_without_completions_is_called_by_its_level() -> None:
    story = Transcript(OTHER).port(1.0).models(1.1, status=404).fail(1.2, 404).health(1.3)
    assert (story.word, story.verdict.ready_level) == ("ready", "http")
    assert "no token was proven" in story.verdict.reason


def test_program_without_completions_and_health_is_told_what_to_do() -> None:
    story = Transcript(OTHER).port(1.0).models(1.1, status=404)
    for at_s in range(2, 16):
        story.fail(at_s, 404)
    assert story.word == "unhealthy"
    assert "--ready http" in story.verdict.reason


def test_engine_with_completions_is_not_ready_by_health_alone() -> None:
    story = Transcript(LLAMA).port(1.0).health(1.1).models(1.1, status=503).ticks(30.0)
    assert (story.words, story.asked) == (["starting"], [])


def test_server_that_ran_before_we_looked_keeps_what_it_answered() -> None:
    story = Transcript().port(0.1, "adopted").models(0.2, "m").token(0.3).main(0.4, seen_late=True)
    assert (story.words, story.verdict.owner) == (["starting", "ready"], "adopted")
    assert len(story.verdict.attempts) == 1


def test_unknown_address_says_what_is_missing() -> None:
    story = Transcript(OTHER, serves=False).launched().main(0.2, argv="./serve", sure=False)
    assert "give --url, or --ready log" in story.verdict.reason


def test_list_that_fails_is_no_proof_against_completions() -> None:
    story = Transcript(model="m").launched().main(0.2).port(1.0).models(1.0, status=500)
    assert [asked.model for asked in story.asked] == ["m"]


def test_locked_server_is_degraded_and_says_how_to_go_on() -> None:
    story = Transcript().launched().main(0.2).port(1.0).models(1.0, status=401).ticks(10.0)
    assert story.word == "degraded"
    assert "--api-key-env" in story.verdict.reason


def test_request_whose_end_is_never_told_is_made_again() -> None:
    story = Transcript().ready(10.0)
    story.asked  # noqa: B018
    story.tick(21.0)
    assert len(story.asked) == 1
    assert story.ticks(40.0).asked == []
    assert len(story.ticks(47.0).asked) == 1


def test_busy_server_is_named_by_its_counters() -> None:
    story = Transcript().ready(10.0).metrics(11.0, 100).metrics(16.0, 900)
    story.child_died(17.0, worker=False).metrics(21.0, 1800).metrics(31.0, 2700).hang(37.0)
    assert (story.word, story.verdict.exit_code) == ("busy", 0)
    assert "8 requests run, 3 wait" in story.verdict.reason


def test_busy_server_is_named_by_its_log() -> None:
    line = "[2026-11-30 10:03:00 TP0] Decode batch. #running-req: 8, #token: 900, gen throughput (token/s): 354.20"
    story = Transcript().ready(10.0).log(30.0, line).hang(41.0)
    assert story.word == "busy"
    assert story.ticks(51.0).word == "unhealthy"


def test_busy_from_the_start_is_busy_and_not_hanging() -> None:
    story = Transcript().launched().main(0.2).answers(5.0)
    assert [effect.every_s for effect in story.effects if isinstance(effect, ReadMetrics)][-1] > 0
    for at_s in range(10, 70, 5):
        story.metrics(at_s, 500.0 * at_s).sample(at_s)
    story.hang(65.1).ticks(80.0)
    assert story.words == ["starting", "busy"]


def test_our_own_tokens_are_no_traffic() -> None:
    story = Transcript().ready(10.0).metrics(11.0, 1).tick(21.0).token(21.1).metrics(22.0, 2).hang(42.0)
    assert story.words == ["starting", "ready", "unhealthy"]


def test_tokens_of_a_request_that_was_given_up_are_no_traffic() -> None:
    story = Transcript(speculation=True).answers(5.0).metrics(6.0, 0).hang(64.0).metrics(64.5, 8).ticks(80.0)
    assert story.words == ["starting", "unhealthy"]


def test_orders_after_ready_cost_the_server_little_and_keep_fatal_lines() -> None:
    story = Transcript(VLLM).launched().main(0.2, argv="vllm serve m").answers(5.0)
    story.effects = []
    story.token(5.1)
    probes = {effect.probe: effect.every_s for effect in story.effects if isinstance(effect, Probe)}
    assert probes == {"models": 0.0, "health": 2.0}
    (keep,) = [effect for effect in story.effects if isinstance(effect, Keep)]
    assert keep.texts is not None
    assert "EngineCore failed to start" in keep.texts


def test_ready_comes_at_once_where_the_address_answers_before_its_process_is_seen() -> None:
    # The same answer is told again after ten seconds only.
    story = Transcript().models(0.01, "m").health(0.02).main(0.05, up_s=0.5).port(0.06)
    assert [asked.model for asked in story.asked] == ["m"]
    assert story.token(0.1).word == "ready"


def test_ready_by_health_comes_at_once_where_the_address_answers_before_its_process_is_seen() -> None:
    assert Transcript(ready="http").health(0.02).main(0.05, up_s=0.5).word == "ready"


def test_ready_does_not_follow_from_answers_of_an_attempt_that_ended() -> None:
    story = Transcript(ready="http").main(0.1, 100).health(0.2)
    assert story.word == "ready"
    assert story.exited(1.0, 100).main(2.0, 101).word == "starting"


def test_another_start_time_behind_an_address_is_another_life() -> None:
    story = Transcript(OTHER).models(10, "m", server_started="2.0").token(10.1)
    assert story.word == "ready"
    story.health(20, server_started="2.4").health(21, status=503, server_started="2.4")
    assert len(story.verdict.attempts) == 0
    story.health(40, server_started="30.5")
    assert story.word == "starting"
    assert [attempt.ready_s for attempt in story.verdict.attempts] == [10.1, None]
    story.models(41, "m", server_started="30.5").token(41.1)
    assert (story.words, len(story.verdict.attempts)) == (["starting", "ready", "starting", "ready"], 2)


def test_start_times_of_several_api_processes_are_one_life() -> None:
    story = Transcript(OTHER).models(10, "m", server_started="2.0").token(10.1)
    for at_s in range(11, 20):
        story.health(at_s, status=(200, 503)[at_s % 2], server_started=("2.0", "7.5", "4.0")[at_s % 3])
    assert (story.words, story.verdict.attempts) == (["starting", "ready"], ())


def test_start_time_says_nothing_where_the_process_is_seen() -> None:
    story = Transcript().ready(10).health(11, server_started="2.0").health(30, status=503, server_started="25.0")
    assert (story.words, len(story.verdict.attempts)) == (["starting", "ready"], 1)


def test_start_time_that_is_no_time_says_nothing() -> None:
    story = Transcript(OTHER).models(10, "m", server_started="2.0").token(10.1)
    for at_s, text in enumerate(("nan", "inf", "soon", "", "1e999"), 11):
        story.health(at_s, status=(200, 503)[at_s % 2], server_started=text)
    assert story.words == ["starting", "ready"]
