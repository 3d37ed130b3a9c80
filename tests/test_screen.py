"""Text from elsewhere is shown without what moves a terminal, and without secrets."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.screen import duration, hide_in_command, hide_secrets, plain, plain_json

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
KEY = "planted-Key.0815/xyz"


@given(
    st.text(
        st.characters(codec=None, categories=None) | st.sampled_from("\x1b[]m\x07\x9b\r\b\u202e\u061c2J;"), max_size=300
    )
)
def test_plain_leaves_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = plain(text, 200)

    assert OBEYED.search(shown) is None
    assert len(shown) <= 200
    shown.encode("utf-8")


@given(st.text(string.printable.replace("\r", "").replace("\x0b", "").replace("\x0c", ""), max_size=100))
def test_plain_leaves_plain_text_alone(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b\x1b[2J[2J", "\\x1b[2J"),  # what is left after the first cut is no sequence again
        ("a\x00b", "a\\x00b"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202etxet", "\\u202etxet"),
        ("50%\r100%", "50%\\x0d100%"),
    ],
)
def test_plain_spells_what_it_cannot_show(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_plain_of_a_huge_hostile_line_is_quick() -> None:
    for line in ("\x1b]" * 5_000_000, "\x1b[" * 5_000_000, "a" * 10_000_000):
        assert len(plain(line, 4000)) <= 4000  # what looks back at every step does not end within a test's time


@given(st.text(max_size=50))
def test_plain_json_means_the_same(text: str) -> None:
    import json  # noqa: PLC0415 - only here

    data = json.dumps({"text": text}, ensure_ascii=False)
    safe = plain_json(data)

    assert OBEYED.search(safe) is None
    assert json.loads(safe) == {"text": text}


@pytest.mark.parametrize(
    "line",
    [
        f"api_key='{KEY}'",
        f'{{"api_key": "{KEY}"}}',
        f"ServerArgs(model='m', api_key='{KEY}', port=1)",
        f"bash -c 'sglang serve --api-key {KEY} --port 1'",
        f"--api-key={KEY}",
        f"HF_TOKEN={KEY}",
        f"AWS_SECRET_ACCESS_KEY={KEY}",
        f"Authorization: Bearer {KEY}",
        f"https://user:{KEY}@host/".replace("/xyz", "xyz"),
        "hf_" + "a1" * 12,
        "sk-" + "a1" * 12,
    ],
)
def test_secrets_are_hidden(line: str) -> None:
    shown = hide_secrets(line)

    assert "***" in shown
    assert KEY not in shown
    assert "a1a1" not in shown
    assert "0815" not in shown


@pytest.mark.parametrize(
    "line",
    [
        "max_new_tokens=128, speculative_num_draft_tokens=16",
        "tokenizer_path='meta-llama/Llama-3', skip_tokenizer_init=False",
        "api_key=None",
        "input token throughput (token/s): 1234.5",
        "#new-token: 4096, #cached-token: 1024, token usage: 0.53",
        "Loading safetensors checkpoint shards: 100% Completed | 64/64 [00:14<00:00,  4.57it/s]",
    ],
)
def test_what_only_sounds_secret_is_shown(line: str) -> None:
    assert hide_secrets(line) == line


def test_command_is_kept_but_for_its_secrets() -> None:
    given_words = f"env HF_TOKEN={KEY} sglang serve --api-key {KEY} --max-total-tokens 4096 --admin-api-key={KEY}"
    kept = "env HF_TOKEN=*** sglang serve --api-key *** --max-total-tokens 4096 --admin-api-key=***"

    assert hide_in_command(tuple(given_words.split())) == tuple(kept.split())


@given(st.lists(st.text(max_size=20), max_size=8))
def test_command_keeps_its_length(words: list[str]) -> None:
    assert len(hide_in_command(tuple(words))) == len(words)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (99.94, "99.9 s"),
        (125, "2 min 5 s"),
        (120, "2 min"),
        (90 * 60, "90 min"),
        (3 * 3600 + 240, "3 h 4 min"),
    ],
)
def test_duration_is_short(seconds: float, words: str) -> None:
    assert duration(seconds) == words
