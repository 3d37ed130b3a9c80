"""What changed since the last good start: on the screen of a failed one, in its JSON, and by `vigil diff`."""

import json
import re

import pytest
from vigil_cli import FAKES, Result, Vigil

from launcher.wheels import make_environment, site_of

QUICK = ("--load", "0.1s", "--warmup", "0s")
DIES = (*QUICK, "--die", "exit:3", "--after", "0.1s")
OLD, NEW = "hf_plantedTokenABCDEFGHIJ", "hf_anotherTokenABCDEFGHIJ"


def up(vigil: Vigil, *options: str, fake: tuple[str, ...] = QUICK) -> Result:
    """`vigil up` of a fake server called s, for people."""
    return vigil("up", "--name", "s", *options, "--", *vigil.fake(*fake))


def good(vigil: Vigil, *options: str, fake: tuple[str, ...] = QUICK) -> None:
    """Bring a server up, and stop it."""
    assert vigil.up(*options, fake=fake).word == "ready"
    vigil("stop", "s", "--grace", "5s", *(options[:2] if options[:1] == ("--reach",) else ()))


def changes(done: Result) -> list[tuple[str, str | None, str | None, bool]]:
    return [(one["what"], one["before"], one["after"], one["explains"]) for one in done.verdict["changes"]]


def block(done: Result) -> list[str]:
    """Return the lines of the block on the screen."""
    lines = done.out.split("\n")
    begin = next((at for at, line in enumerate(lines) if "last good start" in line), None)
    return [] if begin is None else lines[begin : lines.index("", begin)]


def test_first_start_says_nothing_of_changes(vigil: Vigil) -> None:
    done = up(vigil, fake=DIES)
    assert block(done) == []
    assert (vigil.up(fake=DIES).verdict["changes"], vigil.up(fake=DIES).verdict["changes_since_s"]) == ([], None)


def test_flag_that_does_not_exist_is_the_first_change_on_the_screen(vigil: Vigil) -> None:
    good(vigil, "--env", "NCCL_ALGO=Ring")
    done = up(vigil, "--env", "NCCL_ALGO=Tree", fake=(*QUICK, "--num-speculative-tokens", "16"))
    head, *lines = block(done)

    assert done.rc == 4
    assert re.fullmatch(r"  changed since the last good start \(\d+ s before this one\):", head)
    assert lines == ["  > flag --num-speculative-tokens: added: 16", "    variable NCCL_ALGO: Ring -> Tree"]


def test_json_of_a_failed_start_lists_the_changes(vigil: Vigil) -> None:
    good(vigil)
    done = vigil.up("--env", "CUDA_VISIBLE_DEVICES=3", fake=(*QUICK, "--num-speculative-tokens", "16"))

    assert (done.rc, done.word) == (4, "crashed")
    assert changes(done) == [
        ("flag --num-speculative-tokens", None, "16", True),
        ("variable CUDA_VISIBLE_DEVICES", None, "3", False),
    ]
    assert done.verdict["changes_since_s"] > 0
    assert done.verdict["warnings"] == []


def test_start_that_fails_with_nothing_changed_says_so(vigil: Vigil) -> None:
    marks = vigil.folder / "attempts"
    fake = (*QUICK, "--die", "none,exit:3", "--attempts", str(marks))
    good(vigil, fake=fake)
    assert block(up(vigil, fake=fake))[0].startswith("  nothing that vigil keeps has changed since the last good start")


def test_secret_that_changed_is_told_without_its_value(vigil: Vigil) -> None:
    good(vigil, "--env", f"HF_TOKEN={OLD}")
    done = vigil.up("--env", f"HF_TOKEN={NEW}", fake=DIES)
    shown, listed = vigil("diff", "s"), vigil("diff", "s", "--json")

    assert ("variable HF_TOKEN", "***", "changed", False) in changes(done)
    assert "variable HF_TOKEN: changed (a secret: not shown)" in shown.out
    for text in (done.out, shown.out, listed.out, *(path.read_text("utf-8", "replace") for path in vigil.files())):
        assert OLD not in text
        assert NEW not in text


def test_edited_config_of_a_model_names_the_setting(vigil: Vigil) -> None:
    model = vigil.folder / "model"
    model.mkdir()
    (model / "config.json").write_text('{"num_experts": 8}')
    good(vigil, fake=(*QUICK, "--model", str(model)))
    (model / "config.json").write_text('{"num_experts": 16}')
    done = vigil.up(fake=(*QUICK, "--model", str(model), "--die", "exit:3", "--after", "0.1s"))

    assert ("num_experts in config.json of the model of --model", "8", "16", False) in changes(done)


def test_script_that_was_edited_is_named(vigil: Vigil) -> None:
    script = vigil.folder / "start.sh"
    line = " ".join(vigil.fake(*QUICK))
    script.write_text(f"exec {line}\n")
    url = ("--url", vigil.url)
    assert vigil("up", "--json", "--name", "s", *url, "--", "sh", str(script)).word == "ready"
    vigil("stop", "s", "--grace", "5s")
    script.write_text(f"exec {line} --no-such-flag\n")
    done = vigil("up", "--json", "--name", "s", *url, "--", "sh", str(script))

    assert done.word == "crashed"
    assert f"file {script}" in [
        one[0] for one in changes(done)
    ]  # and the flag in it, where it lived long enough to be seen
    assert changes(done)[0][3]


def test_patched_file_of_an_installed_engine_is_the_first_change(vigil: Vigil) -> None:
    serve = f"import runpy\n\n\ndef main():\n    runpy.run_path({str(FAKES / 'server.py')!r}, run_name='__main__')\n"
    home = make_environment(vigil.folder, serve)
    command = ("--", str(home / "bin" / "tinyengine"), *vigil.fake(*QUICK)[2:])
    assert vigil("up", "--json", "--name", "s", *command).word == "ready"
    vigil("stop", "s", "--grace", "5s")
    (site_of(home) / "tinyengine" / "server.py").write_text(f"{serve}\n\nraise RuntimeError('patched')\n")
    done = vigil("up", "--json", "--name", "s", "--env", "NCCL_ALGO=Ring", *command)

    first, second = changes(done)
    assert done.word == "crashed"
    assert first[:2] == ("edited file tinyengine/server.py of tinyengine", "as installed")
    assert first[3]
    assert second == ("variable NCCL_ALGO", None, "Ring", True)


def test_changes_through_a_reach_are_told_as_here(vigil: Vigil) -> None:
    there = ("--reach", "env VIGIL_TEST_REACH=1")
    good(vigil, *there)
    done = vigil.up(*there, fake=(*QUICK, "--num-speculative-tokens", "16"))
    shown = vigil("diff", "s", *there)

    assert changes(done) == [("flag --num-speculative-tokens", None, "16", True)]
    assert "> flag --num-speculative-tokens: added: 16" in shown.out


def test_more_changes_than_fit_are_counted_with_the_command_that_shows_them(vigil: Vigil) -> None:
    there = ("--reach", "env VIGIL_TEST_REACH=1")
    good(vigil, *there)
    many = [word for number in range(9) for word in ("--env", f"NCCL_N{number}=1")]
    done = up(vigil, *there, *many, fake=DIES)
    *_, last = block(done)
    command = last.strip().removeprefix("and 5 more: vigil ")

    assert len(block(done)) == 1 + 6 + 1
    assert command == "diff s --reach 'env VIGIL_TEST_REACH=1'"
    assert vigil("diff", "s", *there).out.count("variable NCCL_N") == 9


def test_start_that_fails_later_has_its_changes_at_hand(vigil: Vigil) -> None:
    good(vigil)
    done = vigil.up("--env", "NCCL_ALGO=Tree", fake=("--load", "60s", "--die", "exit:3", "--after", "5s"))
    assert ("variable NCCL_ALGO", None, "Tree", False) in changes(done)


def test_later_look_at_a_failed_start_tells_the_same(vigil: Vigil) -> None:
    good(vigil)
    first = vigil.up(fake=(*QUICK, "--num-speculative-tokens", "16"))
    again = vigil("wait", "s", "--json")

    assert changes(first) == changes(again) != []
    assert "flag --num-speculative-tokens: added: 16" in vigil("show", "s").out


def test_diff_shows_any_two_starts(vigil: Vigil) -> None:
    for value in ("a", "b", "c"):
        good(vigil, "--env", f"NCCL_ALGO={value}")

    assert "variable NCCL_ALGO: b -> c" in vigil("diff", "s").out
    assert "variable NCCL_ALGO: a -> b" in vigil("diff", "s", "1", "2").out
    assert "variable NCCL_ALGO: c -> a" in vigil("diff", "s", "3", "1").out
    told = json.loads(vigil("diff", "s", "1", "--json").out)
    assert (told["schema"], told["name"], told["before"]["number"], told["after"]["number"]) == (1, "s", 1, 3)
    assert told["changes"] == [{"what": "variable NCCL_ALGO", "before": "a", "after": "c", "explains": False}]


def test_diff_of_alike_starts_is_one_line(vigil: Vigil) -> None:
    good(vigil)
    good(vigil)
    done = vigil("diff", "s")
    assert done.out.count("\n") == 1
    assert done.out.startswith("s: nothing that vigil keeps differs between start 1 (ready, ")


def test_diff_of_a_start_that_is_not_there_lists_those_that_are(vigil: Vigil) -> None:
    good(vigil)
    for words in (("7",), ("1", "x")):
        done = vigil("diff", "s", *words)
        assert (done.rc, done.out) == (2, "")
        assert re.fullmatch(rf"vigil: no start of s is called {words[-1]}; there are 1 \(\w+, ready\)\n", done.err)


@pytest.mark.parametrize("words", [("1", "1"), ("2", "2"), ("2",), ("000001", "1")])
def test_diff_of_a_start_with_itself_is_refused_in_one_line(vigil: Vigil, words: tuple[str, ...]) -> None:
    good(vigil)
    good(vigil)
    done = vigil("diff", "s", *words)
    assert (done.rc, done.out) == (2, "")
    told = rf"vigil: start {int(words[0])} of s would be compared with itself: name two; there are 1 \(\w+, ready\), 2 \(.*\n"
    assert re.fullmatch(told, done.err)


@pytest.mark.parametrize("words", [("",), ("1", ""), (" \n",)])
def test_diff_of_a_start_without_a_name_is_refused_in_one_line(vigil: Vigil, words: tuple[str, ...]) -> None:
    good(vigil)
    done = vigil("diff", "s", *words)
    assert (done.rc, done.out) == (2, "")
    told = r"vigil: a start's name is empty: give its number or its time; there are 1 \(\w+, ready\)\n"
    assert re.fullmatch(told, done.err)


def test_diff_without_a_good_start_says_which_there_are(vigil: Vigil) -> None:
    vigil.up(fake=DIES)
    done = vigil("diff", "s")
    assert done.rc == 2
    assert "no start of s before 1 became ready: name two of them (there are 1 (" in done.err
    assert vigil("diff", "nobody").rc == 2


def test_start_whose_snapshot_was_lost_is_one_warning(vigil: Vigil) -> None:
    good(vigil)
    for path in vigil.state.rglob("snapshot.json"):
        path.unlink()
    done = vigil.up(fake=DIES)

    assert (done.rc, done.word, done.verdict["changes"]) == (4, "crashed", [])
    assert done.verdict["warnings"] == [
        "what changed since the last good start is not known: what start 1 of s found was not kept"
    ]


def test_start_whose_snapshot_is_broken_is_told_with_its_file_and_why(vigil: Vigil) -> None:
    good(vigil)
    (path,) = vigil.state.rglob("snapshot.json")
    path.write_text('{"schema": 1, "whole"')
    good(vigil)
    told = f"what start 1 of s found cannot be read: {path}: it is no JSON: "

    assert vigil("diff", "s", "1").err.startswith(f"vigil: {told}")
    assert vigil("diff", "s", "1").rc == 1
    path.write_text('{"schema": 1, "env": []}')
    told = f"vigil: what start 1 of s found cannot be read: {path}: it has another form\n"
    assert vigil("diff", "s", "1").err == told
    path.write_text('{"schema": 2}')
    assert vigil("diff", "s", "1").err == "vigil: what start 1 of s found was kept by another version\n"
    path.unlink()
    path.mkdir()
    assert vigil("diff", "s", "1").err == f"vigil: what start 1 of s found cannot be read: {path}: it is no file\n"


def test_nothing_of_a_snapshot_can_move_the_terminal(vigil: Vigil) -> None:
    good(vigil)
    done = up(vigil, "--env", "NCCL_ALGO=\x1b[2J\x1b]0;x\x07\nforged line", fake=DIES)
    shown = vigil("diff", "s")
    for text in (done.out, shown.out):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
        assert not re.search(r"^forged", text, re.MULTILINE)
