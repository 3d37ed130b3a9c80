"""The small parts of a measurement: prompts, limits set alike, metrics, waits after refusals, the folder of results."""

import random
from pathlib import Path

import msgspec
import pytest

from vigil.bench.alike import alike, differences
from vigil.bench.brake import Backoff, wait_s
from vigil.bench.folder import ROWS, Arm, Meta, Results, read_rows
from vigil.bench.gauges import Gauges, read, told
from vigil.bench.prompts import Prompt, longest, made, turned, word_list
from vigil.bench.prompts import read as read_prompts
from vigil.bench.provenance import kept
from vigil.bench.reply import Reply
from vigil.bench.row import Cause, Row
from vigil.bench.settings import Point, Settings
from vigil.bench.steady import steady_from
from vigil.bench.summary import blocks_of, tokens_between
from vigil.bench.work import Work
from vigil.engines import TABLES
from vigil.errors import MeasureError, UsageError

SGLANG = ("python", "-m", "sglang.launch_server", "--model-path", "m")
EAGLE = (*SGLANG, "--speculative-algorithm", "EAGLE3")


def test_prompts_of_one_seed_are_the_same_and_none_repeats() -> None:
    some = [made(1, number, 40) for number in range(200)]

    assert some == [made(1, number, 40) for number in range(200)]
    assert len({one[:30] for one in some}) == 200
    assert made(2, 0, 40) != some[0]


def test_word_list_has_no_word_twice() -> None:
    assert len(set(word_list())) == len(word_list()) > 600


def test_prompts_of_a_file_may_be_lines_or_json(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first\n\nsecond\n")
    (tmp_path / "b.jsonl").write_text(
        '{"prompt": "p", "output_len": 7}\n{"messages": [{"role": "user", "content": "hi"}]}\n'
    )

    assert [one.text for one in read_prompts(tmp_path / "a.txt")] == ["first", "second"]
    first, second = read_prompts(tmp_path / "b.jsonl")
    assert (first.text, first.output_tokens, second.text) == ("p", 7, None)
    assert second.messages == ({"role": "user", "content": "hi"},)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no prompt"),
        ('{"prompt": 1}\n', "line 1"),
        ('{"prompt": "a"}\n{}\n', "line 2: neither"),
        ("[", "line 1"),
    ],
)
def test_prompts_that_are_none_are_refused_with_their_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)

    with pytest.raises(UsageError, match=words):
        read_prompts(path)


def test_a_turned_prompt_is_as_long_and_begins_otherwise() -> None:
    text = Prompt(text="one two three four")
    chat = Prompt(messages=({"role": "user", "content": "abcdef"}, {"role": "user", "content": [{"type": "text"}]}))

    assert turned(text).text == "hree fourone two t"
    assert turned(chat).messages == (
        {"role": "user", "content": "defabc"},
        {"role": "user", "content": [{"type": "text"}]},
    )
    assert longest((text, chat)) == chat


def test_a_limit_that_sglang_changes_in_silence_is_set_in_all_arms_and_told() -> None:
    found = alike({"off": SGLANG, "eagle3": EAGLE}, most=128)

    assert {words[-2:] for words in found.commands.values()} == {("--max-running-requests", "128")}
    assert [note.split(":")[0] for note in found.notes] == ["off, eagle3"]


def test_a_limit_that_one_arm_gives_is_given_to_the_others() -> None:
    found = alike({"off": SGLANG, "eagle3": (*EAGLE, "--max-running-requests=64")}, most=128)

    assert found.commands["off"][-2:] == ("--max-running-requests", "64")
    assert len(found.notes) == 1


def test_limits_that_the_user_gave_differently_stay_and_are_told() -> None:
    given = {"off": (*SGLANG, "--max-running-requests", "9"), "eagle3": (*EAGLE, "--max-running-requests", "8")}
    found = alike(given, most=128)

    assert found.commands == given
    assert "differs between the arms" in found.notes[0]


def test_arms_without_speculation_or_of_other_engines_are_left_alone() -> None:
    given = {"a": SGLANG, "b": (*SGLANG, "--tp", "2"), "c": ("vllm", "serve", "m", "--speculative-config", "{}")}

    assert alike(given, most=8).commands == given


def test_a_flag_is_not_put_behind_a_shell_text() -> None:
    found = alike({"off": SGLANG, "eagle3": ("bash", "-c", " ".join(EAGLE))}, most=8)

    assert found.commands["eagle3"] == ("bash", "-c", " ".join(EAGLE))
    assert any("could not be added" in note for note in found.notes)


def test_settings_that_servers_say_differ_are_told_but_for_speculation_itself() -> None:
    told_of = {"off": {"mem_fraction_static": 0.87, "speculative_algorithm": "x"}, "on": {"mem_fraction_static": 0.81}}

    assert differences(told_of) == ["mem_fraction_static: off 0.87, on 0.81"]


def test_a_servers_page_is_kept_without_its_key() -> None:
    page = {
        "api_key": "sk-secret",
        "max_running_requests": 48,
        "speculative_algorithm": "EAGLE3",
        "model_config": {"a": 1},
    }

    assert kept(page) == {"max_running_requests": 48, "speculative_algorithm": "EAGLE3"}


def test_metrics_are_summed_over_labels_and_accepted_tokens_become_a_length() -> None:
    page = (
        '# HELP x y\nvllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_running{engine="1"} 4.0\n'
        "vllm:num_requests_waiting 2\nvllm:spec_decode_num_drafts_total 100\nvllm:spec_decode_num_accepted_tokens_total 150\n"
        "vllm:generation_tokens_total 1000\nvllm:broken nonsense\n"
    )
    first = read(page, TABLES["vllm"].metrics, 1.0)
    last = msgspec.structs.replace(first, at_s=2.0, drafts=200.0, accepted=400.0, tokens=2000.0)
    found = told([first, last, Gauges(at_s=9.0, running=0.0)], 1.0, 2.0)

    assert (first.running, first.waiting) == (7.0, 2.0)
    assert (found.running, found.accept_length, found.drafts, found.from_drafts) == (7.0, 3.5, 100.0, 0.25)


def test_an_acceptance_that_is_a_gauge_is_averaged() -> None:
    looks = [
        read(f'sglang:spec_accept_length{{tp_rank="0"}} {one}\n', TABLES["sglang"].metrics, one) for one in (2.0, 3.0)
    ]

    assert told(looks, 0.0, 9.0).accept_length == 2.5


def test_waits_after_refusals_grow_spread_and_end_at_a_limit() -> None:
    rng = random.Random(1)
    backoff = Backoff(first_s=0.5, most_s=10.0)
    waits = [[wait_s(failures, backoff, rng) for _ in range(200)] for failures in (1, 2, 3, 40)]

    for some, ceiling_s in zip(waits, (0.5, 1.0, 2.0, 10.0), strict=True):
        assert ceiling_s / 2 <= min(some) < 0.6 * ceiling_s
        assert 0.9 * ceiling_s < max(some) <= ceiling_s
        assert len({round(one / ceiling_s * 50) for one in some}) > 20
    assert 3.0 <= wait_s(1, backoff, rng, retry_after_s=3.0) <= 3.5
    assert wait_s(1, backoff, rng, retry_after_s=1e9) <= 10.5


def reply(arrivals: list[float], tokens: int) -> Reply:
    found = Reply(0.0)
    found.arrivals.extend(arrivals)
    found.last_s, found.output_tokens = arrivals[-1], tokens
    return found


def test_tokens_are_spread_over_the_events_that_brought_them() -> None:
    one = reply([1.0, 2.0, 3.0, 4.0], 12)

    assert tokens_between(one, 1.5, 3.5) == 6.0
    assert sum(blocks_of([one], 0.0, 5.0)) * 0.5 == pytest.approx(12.0)


def row(number: int = 0, cause: Cause | None = None) -> Row:
    return Row(arm="a", point=Point(value=1), round=number, began=0.0, lasted_s=1.0, output_per_s=5.0, cause=cause)


META = Meta(title="t", arms=(Arm(name="a"),), points=(Point(value=1),), settings=Settings())


def test_results_lose_no_row_and_keep_no_half_of_one(tmp_path: Path) -> None:
    first = Results.begin(tmp_path, META)
    first.add(row(0))
    first.close()
    with (tmp_path / ROWS).open("ab") as file:
        file.write(msgspec.json.encode(row(1))[:40])
    again = Results.begin(tmp_path, META)
    again.add(row(2))
    again.close()

    assert [one.round for one in read_rows(tmp_path)] == [0, 2]


def test_results_of_something_else_are_not_gone_on_with(tmp_path: Path) -> None:
    Results.begin(tmp_path, META).close()

    with pytest.raises(UsageError, match="holds another measurement"):
        Results.begin(tmp_path, msgspec.structs.replace(META, settings=Settings(seed=2)))


def test_results_are_written_by_one_alone(tmp_path: Path) -> None:
    holder = Results.begin(tmp_path, META)
    with pytest.raises(UsageError, match="another vigil"):
        Results.begin(tmp_path, META)
    holder.close()


def test_a_later_row_of_the_same_measurement_counts(tmp_path: Path) -> None:
    results = Results.begin(tmp_path, META)
    results.add(row(0, Cause(verdict="crashed")))
    results.add(row(0))
    results.close()

    assert [one.cause for one in read_rows(tmp_path)] == [None]


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    results = Results.begin(tmp_path, META)
    results.close()
    with Path("/dev/full").open("ab") as full:
        results._handle = full.fileno()
        with pytest.raises(MeasureError, match=r"could not be written .*No space left on device"):
            results.add(row())


def test_steady_state_is_found_in_waves() -> None:
    assert steady_from([100.0 if at % 7 < 4 else 20.0 for at in range(200)]) is not None


def test_lengths_are_drawn_around_what_was_asked_for_and_the_same_in_every_arm() -> None:
    settings = Settings(output_tokens=100, range_ratio=0.5, seed=3)
    work, other = Work(settings, "m", 40), Work(settings, "m", 40)
    asked = [msgspec.json.decode(work.body(index)) for index in range(400)]

    assert [msgspec.json.decode(other.body(index)) for index in range(400)] == asked
    answers, prompts = [one["max_tokens"] for one in asked], [len(one["prompt"].split()) for one in asked]
    assert (min(answers) >= 50, max(answers) <= 150, min(prompts) >= 20, max(prompts) <= 60) == (True,) * 4
    assert len(set(answers)) > 60
    assert 95 < sum(answers) / len(answers) < 105
    assert (
        len({one["max_tokens"] for one in map(msgspec.json.decode, map(Work(Settings(), "m", 40).body, range(9)))}) == 1
    )
