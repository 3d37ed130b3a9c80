"""Words are read as the engines' parsers read them: held against argparse itself, and against llama.cpp's rules."""

import argparse
import contextlib
import io
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.preflight.grammar import Grammar, Wrong, grammar_of, problems
from vigil.preflight.seen_parser import FlagSpec

SPECS = (
    FlagSpec(names=("--model-path", "--model"), required=True),
    FlagSpec(names=("--tp-size", "--tp"), type="int"),
    FlagSpec(names=("--tp-share",), type="float"),
    FlagSpec(names=("--trust",), nargs="0"),
    FlagSpec(names=("--sizes",), nargs="+", type="int"),
    FlagSpec(names=("--paths",), nargs="*"),
    FlagSpec(names=("--level",), choices=("low", "high")),
    FlagSpec(names=("--maybe",), nargs="?"),
    FlagSpec(names=("--pair",), nargs="2"),
    FlagSpec(names=("--extra",), type="json"),
)
WORDS = st.sampled_from([
    "--model-path", "--model", "--mod", "m", "--tp-size", "--tp", "--tp-", "8", "-1", "--tp=4", "--tp-size=x", "--trust",
    "--trust=true", "--sizes", "1", "2", "--paths", "--level", "low", "lo", "--level=high", "--maybe", "--pair", "--extra", "{}",
    "a b", "--nothing", "--s", "-x", "",
])  # fmt: skip


def argparse_takes(words: list[str]) -> bool:
    """Tell whether argparse itself parses the words."""
    import json  # noqa: PLC0415 - as SGLang's parsers have it for a type

    kinds = {"int": int, "float": float, "json": json.loads, None: str}
    parser = argparse.ArgumentParser()
    for spec in SPECS:
        if spec.nargs == "0":
            parser.add_argument(*spec.names, action="store_true")
        else:
            nargs = None if spec.nargs == "1" else int(spec.nargs) if spec.nargs.isdigit() else spec.nargs
            more = {"nargs": nargs, "type": kinds[spec.type], "choices": spec.choices, "required": spec.required}
            parser.add_argument(*spec.names, **more)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            parser.parse_args(words)
    except SystemExit:
        return False
    return True


@given(st.lists(WORDS, max_size=9))
def test_what_argparse_parses_is_never_refused_and_what_it_refuses_is(words: list[str]) -> None:
    grammar = grammar_of("sglang", SPECS, ("python", *words), 1)

    found = list(problems(grammar, ("python", *words), 1))

    if argparse_takes(words):
        assert not found
    elif not _fits_one_flag_twice(words):
        assert found


def _fits_one_flag_twice(words: list[str]) -> bool:
    """A short form that fits two names of one flag: argparse before 3.12 refuses it, later ones need not."""
    return any(word in {"--mod", "--mode"} for word in words)


def wrong(engine: str, text: str, *specs: FlagSpec) -> list[tuple[Wrong, str]]:
    words = ("engine", *shlex.split(text))
    return [(one.wrong, one.name) for one in problems(grammar_of(engine, specs, words, 1), words, 1)]


def test_vllm_takes_underscores_dots_and_a_glued_level() -> None:
    specs = (
        FlagSpec(names=("--max-model-len",), type="size"),
        FlagSpec(names=("--speculative-config", "-sc"), type="json"),
    )

    assert wrong("vllm", "m --max_model_len 8k --speculative_config.method eagle3 -sc.num+ 1,2 -O3", *specs) == []
    assert wrong("vllm", "m --speculative-conf.method eagle3", *specs) == []
    assert wrong("vllm", "m --max-model-len lots", *specs) == [(Wrong.NO_TYPE, "--max-model-len")]
    assert wrong("vllm", "m n", *specs) == [(Wrong.STRAY, "n")]


def test_llama_server_takes_the_next_word_whatever_it_is_and_no_equals_sign() -> None:
    specs = (
        FlagSpec(names=("-c", "--ctx-size"), type="stoi"),
        FlagSpec(names=("--alias",)),
        FlagSpec(names=("--pair",), nargs="2"),
    )

    assert wrong("llamacpp", "--ctx_size 8 --alias --ctx-size -c -1 --pair a b", *specs) == []
    assert wrong("llamacpp", "--ctx-size=8", *specs) == [(Wrong.UNKNOWN, "--ctx-size")]
    assert wrong("llamacpp", "--ctx 8", *specs) == [(Wrong.UNKNOWN, "--ctx")]
    assert wrong("llamacpp", "--pair a", *specs) == [(Wrong.NO_VALUE, "--pair")]
    assert wrong("llamacpp", "-c lots", *specs) == [(Wrong.NO_TYPE, "-c")]
    assert wrong("llamacpp", "m.gguf", *specs) == [(Wrong.STRAY, "m.gguf")]


def test_words_of_the_shell_are_none_of_the_engines() -> None:
    spec = FlagSpec(names=("--port",), type="int")

    assert wrong("sglang", "--port 1 > out.log 2>&1", spec) == []
    assert wrong("sglang", "--port 1 &> out.log", spec) == []
    assert wrong("sglang", "--port $PORT $MORE --nothing", spec) == []
    words = ("engine", "--port", "1", "|", "tee", "--append", "log")
    assert list(problems(grammar_of("sglang", (spec,), words, 1), words, 1, 3)) == []


def test_a_model_may_lead_after_serve_and_nowhere_else() -> None:
    spec = FlagSpec(names=("--trust",), nargs="0")
    words = ("sglang", "serve", "m", "--trust")

    assert list(problems(grammar_of("sglang", (spec,), words, 2), words, 2)) == []
    late = ("sglang", "serve", "--trust", "true")
    assert [one.wrong for one in problems(grammar_of("sglang", (spec,), late, 2), late, 2)] == [Wrong.STRAY]


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000, "\0", "nan", "\uff11\uff12"])
def test_a_hostile_value_is_judged_without_falling_over(value: str) -> None:
    for kind in ("int", "float", "json", "size", "stoi"):
        grammar = Grammar(flags={"--x": FlagSpec(names=("--x",), type=kind)})
        assert len(list(problems(grammar, ("--x", value), 0))) <= 1
