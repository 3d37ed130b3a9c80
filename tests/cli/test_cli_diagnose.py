"""`vigil diagnose`: of files, of standard input, of a server by its name; and what is no log."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest
from vigil_cli import COMMAND, Vigil

LOGS = Path(__file__).parents[1] / "data" / "logs"
TRUNCATED = LOGS / "vllm-cpu" / "truncated-safetensors.log"
HEALTHY = LOGS / "llamacpp" / "ok-basic.log"


def test_cause_is_shown_with_its_line_and_what_to_do(vigil: Vigil) -> None:
    done = vigil("diagnose", str(TRUNCATED))

    assert done.rc == 0
    assert "FILE002" in done.out
    assert ">    104  " in done.out
    assert "what to do: " in done.out
    assert "vigil diagnose --explain FILE002" in done.out


def test_json_is_one_line_for_each_file(vigil: Vigil) -> None:
    done = vigil("diagnose", "--json", str(TRUNCATED), str(HEALTHY))
    bad, good = (json.loads(line) for line in done.out.splitlines())

    assert (bad["file"], bad["cause"]["code"], bad["cause"]["line"], bad["attempts"]) == (
        str(TRUNCATED),
        "FILE002",
        104,
        1,
    )
    assert (good["file"], good["cause"], good["candidates"], good["stuck_in"]) == (str(HEALTHY), None, [], None)


def test_standard_input_is_read(vigil: Vigil) -> None:
    with TRUNCATED.open("rb") as log:
        done = subprocess.run(
            [*COMMAND, "diagnose", "-", "--json"], env=vigil.env, stdin=log, capture_output=True, check=True
        )
    assert json.loads(done.stdout)["cause"]["line"] == 104


def test_server_is_diagnosed_by_its_name(vigil: Vigil) -> None:
    vigil("up", "--name", "s", "--", "sh", "-c", "echo error: invalid argument: --no-such-flag; exit 1")
    done = vigil("diagnose", "s", "--json")

    assert json.loads(done.out)["cause"]["code"] == "FLAG001"


def test_word_that_is_a_file_and_a_servers_name_says_which_was_read_and_names_the_other(vigil: Vigil) -> None:
    vigil("up", "--name", "s", "--", "sh", "-c", "echo error: invalid argument: --no-such-flag; exit 1")
    (vigil.folder / "s").write_bytes(TRUNCATED.read_bytes())
    both = vigil("diagnose", "s", "--json")

    assert json.loads(both.out)["cause"]["code"] == "FILE002"
    assert both.err == (
        "vigil: s is a file here and a server's name: this is the file; for the server: vigil diagnose name:s\n"
    )
    file, server = vigil("diagnose", "./s", "--json"), vigil("diagnose", "name:s", "--json")
    assert (json.loads(file.out)["cause"]["code"], file.err) == ("FILE002", "")
    assert (json.loads(server.out)["cause"]["code"], server.err) == ("FLAG001", "")


def test_end_that_only_the_launcher_saw_is_a_cause(vigil: Vigil) -> None:
    vigil("up", "--name", "s", "--", "sh", "-c", "echo loading; kill -SEGV $$")
    done = vigil("diagnose", "s", "--json")

    assert json.loads(done.out)["cause"]["text"] == "killed by SIGSEGV"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no-such-file.log/x", "No such file"),
        ("no-such-server", "no server named"),
        (".", "is a folder"),
        ("/dev/zero", "is no file and no pipe"),
        ("/bin/sh", "is no text"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(vigil: Vigil, what: str, words: str) -> None:
    done = vigil("diagnose", what)

    assert done.rc == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"RuntimeError: x\n" * 50, mtime=0), "zcat"),
        ("RuntimeError: x\n".encode("utf-16"), "iconv"),
        (bytes(range(256)) * 40, "is no text"),
    ],
)
def test_what_is_written_otherwise_is_refused_with_the_way_to_read_it(vigil: Vigil, data: bytes, words: str) -> None:
    (vigil.folder / "x.log").write_bytes(data)
    done = vigil("diagnose", "x.log")

    assert (done.rc, done.out) == (2, "")
    assert words in done.err


def test_mark_of_utf8_hides_no_first_line(vigil: Vigil) -> None:
    (vigil.folder / "x.log").write_bytes(b"\xef\xbb\xbferror: unrecognized arguments: --x\n")
    assert json.loads(vigil("diagnose", "x.log", "--json").out)["cause"]["line"] == 1


def test_name_that_no_file_can_have_is_refused_in_one_line(vigil: Vigil) -> None:
    done = vigil("diagnose", "a" * 5000)
    assert (done.rc, len(done.err.splitlines())) == (2, 1)


@pytest.mark.parametrize("words", [("diagnose", str(TRUNCATED)), ("ps",)])
def test_output_that_cannot_be_written_is_a_failure(vigil: Vigil, words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [*COMMAND, *words], env=vigil.env, stdout=full, stderr=subprocess.PIPE, check=False, cwd=vigil.folder
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_rules_of_ones_own_can_neither_hold_us_up_nor_move_the_terminal(vigil: Vigil) -> None:
    rules = vigil.folder / "rules"
    rules.mkdir()
    os.mkfifo(rules / "pipe.toml")
    (rules / "t_\x1b[31mx.toml").write_text("code = [")
    rule = 'code = "OWN001"\ntitle = "a\\u001b[31mb"\nkind = "other"\nbecause = "b"\nadvice = "c"\nretry = true\n'
    sample = '[[match]]\ntext = "own trouble"\nsource = "x"\n[[near_miss]]\ntext = "none"\nsource = "x"\n'
    (rules / "OWN001.toml").write_text(f'{rule}[[when]]\ntext = "own trouble"\n{sample}')
    done = vigil("diagnose", "--rules", str(rules), "--explain", "OWN001")

    assert done.out.startswith("OWN001  ")
    assert "pipe.toml: it is no file" in done.err
    assert "\x1b" not in done.out + done.err


def test_rule_that_takes_for_ever_is_named_once_and_left_out(vigil: Vigil) -> None:
    rules = vigil.folder / "rules"
    rules.mkdir()
    head = 'title = "a"\nkind = "other"\nbecause = "b"\nadvice = "c"\nretry = true\n'
    slow, good = "[[when]]\ntext = 'aaaa'\npattern = '(a+)+$'\n", "[[when]]\ntext = 'own trouble'\n"
    (rules / "slow.toml").write_text(f'code = "SLOW001"\n{head}{slow}')
    (rules / "good.toml").write_text(f'code = "GOOD001"\n{head}{good}')
    for name in ("one.log", "two.log"):
        (vigil.folder / name).write_text(f"RuntimeError: {'a' * 900}!{'b' * 60_000}\nRuntimeError: own trouble\n" * 50)
    done = vigil("diagnose", "--rules", str(rules), "one.log", "two.log", "--json")

    assert done.rc == 0
    assert done.err == (
        "vigil: rule SLOW001: when[0].pattern takes too long on the lines of one.log: the rule is left out from here on\n"
    )
    assert [json.loads(line)["cause"]["code"] for line in done.out.splitlines()] == ["GOOD001", "GOOD001"]


def test_one_bad_file_does_not_stop_the_others(vigil: Vigil) -> None:
    done = vigil("diagnose", "/no/such.log", str(TRUNCATED), "--json")

    assert done.rc == 2
    assert "/no/such.log" in done.err
    assert json.loads(done.out)["cause"]["code"] == "FILE002"


def test_log_of_nothing_is_empty(vigil: Vigil) -> None:
    (vigil.folder / "empty.log").touch()
    assert "the log is empty" in vigil("diagnose", "empty.log").out


def test_log_cannot_move_the_terminal(vigil: Vigil) -> None:
    (vigil.folder / "x.log").write_bytes(b"ValueError: \x1b[2J\x1b]0;title\x07 \xe2\x80\xae nasty\x9b\n")
    done = vigil("diagnose", "x.log")
    as_json = vigil("diagnose", "x.log", "--json")

    assert "nasty" in done.out
    for text in (done.out, as_json.out):
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(text)


def test_rule_is_explained(vigil: Vigil) -> None:
    done = vigil("diagnose", "--explain", "flag001")

    assert done.rc == 0
    assert done.out.startswith("FLAG001  ")
    assert "what to do:" in done.out
    assert vigil("diagnose", "--explain", "NOPE9").rc == 2


def test_log_that_grows_is_read_as_far_as_it_goes(vigil: Vigil) -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(
        [*COMMAND, "diagnose", f"/dev/fd/{reader}", "--json"], env=vigil.env, pass_fds=[reader], stdout=-1
    ) as asked:
        os.close(reader)
        os.write(writer, TRUNCATED.read_bytes()[:60_000])
        os.close(writer)
        out, _ = asked.communicate(timeout=60)
    assert json.loads(out)["cause"]["line"] == 104
