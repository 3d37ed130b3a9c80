"""What is said of a flag: its right name, its history, how sure it is, and the command as it would be right."""

import shlex

import pytest

from vigil.engines import find
from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Report, Severity
from vigil.preflight.naming import meanings
from vigil.preflight.seen_parser import Broken, FlagSpec, ParserSeen
from vigil.preflight.sight import Sight
from vigil.preflight.tables import table_of

INSTALLED = (
    FlagSpec(names=("--model-path", "--model"), required=True),
    FlagSpec(names=("--tensor-parallel-size", "--tp-size"), type="int"),
    FlagSpec(names=("--trust-remote-code",), nargs="0"),
    FlagSpec(names=("--my-patch",), type="int"),
)


def checked(text: str, *, version: str | None = None, parser: ParserSeen | None = None) -> Report:
    table, before, own = find(shlex.split(text))
    command = Command(words=(*before, *own), own=len(before), engine=table.name, version=version)
    return examine(command, Sight(parser=parser))


def flags_of(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.code in {"FLAG001", "FLAG002", "FLAG006", "PARSE001"}]


def corrected(text: str, version: str) -> str:
    return shlex.join(checked(text, version=version).corrected or ())


@pytest.mark.parametrize(
    ("text", "version", "right"),
    [
        ("sglang serve m --tensor-paralel-size 2", "0.5.23", "sglang serve m --tensor-parallel-size 2"),
        ("sglang serve m --TP-SIZE 2", "0.5.23", "sglang serve m --tp-size 2"),
        ("sglang serve m -tp-size 2", "0.5.23", "sglang serve m --tp-size 2"),
        ("sglang serve m \u2013-tp-size 2", "0.5.23", "sglang serve m --tp-size 2"),
        ("sglang serve m --max-model-len=8192", "0.5.23", "sglang serve m --context-length=8192"),
        ("sglang serve m --enforce-eager --tp 2", "0.5.23", "sglang serve m --disable-cuda-graph --tp 2"),
        ("sglang serve m --enable-prefix-caching --tp 2", "0.5.23", "sglang serve m --tp 2"),
        ("sglang serve m --trust-remote-code=true", "0.5.23", "sglang serve m --trust-remote-code"),
        ("sglang serve m --trust-remote-code false --tp 2", "0.5.23", "sglang serve m --tp 2"),
        ("sglang serve m --attention-backend FA3", "0.5.23", "sglang serve m --attention-backend fa3"),
        ("sglang serve m --port 30000.0", "0.5.23", "sglang serve m --port 30000"),
        ("vllm serve m --disable-radix-cache", "0.32.0", "vllm serve m --no-enable-prefix-caching"),
        (
            "vllm serve m --speculative-num-draft-tokens 3",
            "0.20.2",
            "vllm serve m --speculative-config.num_speculative_tokens 3",
        ),
        ("llama-server -m m --served-model-name x", "11434", "llama-server -m m --alias x"),
    ],
)
def test_the_right_command_is_given(text: str, version: str, right: str) -> None:
    assert corrected(text, version) == right


@pytest.mark.parametrize(
    ("text", "version", "told"),
    [
        ("sglang serve m --mem-fraction 0.8 --gpu-memory-utilization 0.9", "0.5.23", "0.9 there is about 0.85 here"),
        ("sglang serve m --guided-decoding-backend xgrammar", "0.5.23", "--grammar-backend"),
        ("sglang serve m --attn-dp-size 2", "0.5.10", "it came with 0.5.2"),
        ("llama-server -m m -cpent 256", "11434", "it went with build 9310, build 9093 still took it"),
    ],
)
def test_what_cannot_be_pasted_is_told(text: str, version: str, told: str) -> None:
    report = checked(text, version=version)

    assert report.fatal
    assert report.corrected is None
    assert told in " ".join(f"{one.text} {one.advice}" for one in report.findings)


def test_a_flag_that_any_release_took_is_not_refused_where_the_release_is_not_known() -> None:
    (one,) = flags_of(checked("sglang serve m --enable-ep-moe"))

    assert one.severity is Severity.WARNING
    assert "it went with" in one.text


def test_a_flag_that_no_release_ever_took_is_refused_without_an_install() -> None:
    report = checked("sglang serve m --num-speculative-tokens 3")

    assert [one.code for one in report.fatal] == ["FLAG001"]
    assert report.version == "0.5.23 (table)"
    assert any("no SGLang was found on this host" in line for line in report.unseen)


def test_a_release_between_two_of_the_table_may_have_what_the_later_one_has() -> None:
    table = table_of("vllm")
    assert table is not None
    assert "0.17.1" not in table.releases
    came = next(row.key for row in table.at("0.18.1") if row.first == "0.18.1" and row.required is False)

    (one,) = flags_of(checked(f"vllm serve m {came} 1", version="0.17.1"))[:1]

    assert one.severity is Severity.WARNING


def test_the_installed_parser_counts_and_not_the_table() -> None:
    parser = ParserSeen(interpreter="/v/bin/python", version="0.5.10", how="asked", flags=INSTALLED)

    assert not flags_of(checked("sglang serve m --my-patch 3", parser=parser))
    (one,) = flags_of(checked("sglang serve m --port 1", parser=parser))
    assert one.severity is Severity.FATAL
    assert one.seen == "its own parser, /v/bin/python"


def test_another_release_than_the_installed_one_is_held_against_its_table() -> None:
    parser = ParserSeen(interpreter="/v/bin/python", version="0.5.10", how="asked", flags=INSTALLED)

    report = checked("sglang serve m --my-patch 3", parser=parser, version="0.5.23")

    assert report.fatal
    assert report.version == "0.5.23 (table)"


def test_a_source_that_was_not_understood_refuses_nothing() -> None:
    parser = ParserSeen(interpreter="/v/bin/python", version="0.5.10", how="read", whole=False, flags=INSTALLED)

    assert not checked("sglang serve m --port 1", parser=parser).fatal


def test_a_script_of_the_engines_name_may_take_what_it_likes() -> None:
    parser = ParserSeen(interpreter="/v/bin/python", trouble="/v/bin/python has no sglang", foreign=True)

    report = checked("/opt/sglang serve m --load 2s --port lots --load-format x", parser=parser)

    assert len(report.findings) == 3
    assert not report.fatal


def test_a_script_that_was_only_said_to_be_an_engine_has_its_own_words() -> None:
    command = Command(words=("./serve.sh", "--nothing", "x"), own=0, engine="sglang")

    assert examine(command, Sight()).findings == ()


def test_a_broken_parser_is_fatal_with_its_place() -> None:
    told = Broken(
        kind="SyntaxError", text="SyntaxError: invalid syntax", file="/v/server_args.py", line=701, edited=True
    )
    parser = ParserSeen(interpreter="/v/bin/python", version="0.5.10", broken=told)

    (one,) = checked("sglang serve m --my-patch 3", parser=parser).fatal

    assert one.code == "PARSE001"
    assert "/v/server_args.py, line 701" in one.text
    assert "somebody edited it" in one.advice


def test_a_parser_that_only_fails_here_is_a_warning() -> None:
    told = Broken(kind="ImportError", text="ImportError: libcuda.so.1", file="/v/x.py", line=1)
    parser = ParserSeen(interpreter="/v/bin/python", version="0.5.10", broken=told)

    assert not checked("sglang serve m", parser=parser).fatal


def test_every_meaning_names_flags_that_some_release_takes() -> None:
    unknown = [
        (engine, name)
        for one in meanings()
        for engine in ("sglang", "vllm", "llamacpp")
        for name in one.names(engine)[:1]
        if not table_of(engine).named(name.partition(".")[0])  # type: ignore[union-attr]
    ]

    assert unknown == []
    assert len(meanings()) >= 60


def test_an_engine_that_we_do_not_know_has_no_flags_to_check() -> None:
    assert examine(Command(words=("x", "--y"), own=1, engine="generic"), Sight()).findings == ()
