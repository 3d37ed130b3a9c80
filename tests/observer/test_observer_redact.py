"""Secrets stay on the host; what only looks like one stays readable."""

import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vigil.observer.keys import KeyRing
from vigil.observer.redact import Redactor, secrets_of

SECRET = [
    ("ServerArgs(api_key='abc', tp_size=8)", "ServerArgs(api_key='***', tp_size=8)"),
    ("non-default args: {'api_key': ['k-one', 'k-two'], 'port': 1}", "non-default args: {'api_key': [***], 'port': 1}"),
    ('{"admin_api_key": "abc", "x": 1}', '{"admin_api_key": "***", "x": 1}'),
    ("vllm serve m --api-key abc --port 1", "vllm serve m --api-key *** --port 1"),
    ("vllm serve m --api-key=abc --port 1", "vllm serve m --api-key=*** --port 1"),
    ("export WANDB_API_KEY=0123456789abcdef", "export WANDB_API_KEY=***"),
    ("GITHUB_TOKEN=abcdefgh12 python x", "GITHUB_TOKEN=*** python x"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = ***"),
    ("authorization: Bearer abc.def-123", "authorization: Bearer ***"),
    ("using hf_AbCdEfGhIjKlMnOpQrStUv", "using ***"),
    ("key sk-proj-1234567890", "key ***"),
    ("AKIAIOSFODNN7EXAMPLE is the id", "*** is the id"),
    ("fetch https://me:pw@host/x", "fetch https://me:***@host/x"),
    ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "jwt ***"),
    ("password: swordfish", "password: ***"),
]


@pytest.mark.parametrize(("text", "clean"), SECRET)
def test_redactor_hides_what_looks_like_a_secret(text: str, clean: str) -> None:
    assert Redactor().clean(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "Decode batch, #running-req: 1, #token: 512, token usage: 0.02, gen throughput (token/s): 96.1",
        "ServerArgs(api_key=None, max_total_tokens=4096, tokenizer_path='/models/k2', skip_tokenizer_init=False)",
        "--max-num-batched-tokens 8192 --tokenizer /models/k2 --speculative-num-draft-tokens 16",
        "MAX_TOKENS=8192 TOKENIZERS_PARALLELISM=false HF_HUB_ENABLE_HF_TRANSFER=1",
        "KeyError: 'model.layers.0.self_attn.k_proj'",
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1024, K size: 1 GB",
        "https://huggingface.co/moonshotai/Kimi-K2.5",
        "risk-adjusted task-1234567890",
    ],
)
def test_redactor_leaves_what_is_no_secret(text: str) -> None:
    assert Redactor().clean(text) == text


def test_redactor_hides_known_values_longest_first() -> None:
    redactor = Redactor()
    redactor.learn(["hunter2hunter2", "hunter2hunter2-extended"])
    assert redactor.clean("a hunter2hunter2-extended b hunter2hunter2") == "a *** b ***"


PIECES = (
    *(
        "api_key",
        "--",
        "KEY_",
        "eyJ-",
        "://:",
        "A",
        "bearer ",
        "password ",
        "sk-",
        "token",
        "api_key=[",
        "api_key='",
        "secret:",
    ),
    *("KEY=aaaaaaaa ", "TOKEN", "A_KEY ", "-", " ", "'", "[", "=", "key ", '\\"secret\\": '),
)


@pytest.mark.timeout(20)  # a rule that goes over a line again and again would need minutes
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from((1, 10, 500, 4096))), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_redactor_is_quick_on_a_hostile_line(parts: list[tuple[str, int]]) -> None:
    line = "".join(piece * times for piece, times in parts)
    for _ in range(5):
        Redactor().clean((line * (1 + 8192 // len(line)))[:8192])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("line", ["key " + "-" * 8180, "api_key=[" * 900, "://:TOKEN" * 1000, "A" * 60 + "KEY "])
def test_redactor_goes_over_a_line_once(line: str) -> None:
    for _ in range(200):
        Redactor().clean(line)


def test_redactor_hides_what_a_cut_line_began() -> None:
    assert Redactor().clean("api_keys=['one', 'two") == "api_keys=[***"
    assert Redactor().clean("--hf-token 'one two") == "--hf-token '***"
    assert Redactor().clean("api_key='one") == "api_key='***"


def test_redactor_shows_nothing_behind_too_many_names() -> None:
    assert "last" not in Redactor().clean("secret=x " * 300 + "last")


def test_redactor_hides_values_of_flags_in_a_command_line() -> None:
    redactor = Redactor()
    redactor.key_flags = ("--api-key",)
    argv = (
        "vllm",
        "serve",
        "--api-key",
        "x",
        "--api-key=y",
        "--hf-token",
        "z",
        "--tokenizer",
        "/t",
        "--ssl-keyfile=/a/b",
        "--tp",
        "8",
    )
    clean = redactor.clean_argv(argv)
    assert clean[2:7] == ("--api-key", "***", "--api-key=***", "--hf-token", "***")
    assert clean[7:] == ("--tokenizer", "/t", "--ssl-keyfile=/a/b", "--tp", "8")


def test_secrets_of_a_process_come_from_its_flags_and_variables() -> None:
    argv = ("vllm", "serve", "--api-key", "flag-key", "--tokenizer", "some/model-name")
    environ = [
        ("HF_TOKEN", "from-environ"),
        ("WANDB_API_KEY", "short"),
        ("TOKENIZERS_PARALLELISM", "false-false"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
        ("MAX_TOKEN", "100000000"),
        ("PATH", "/usr/bin:/bin"),
    ]
    assert secrets_of(argv, environ, ("--api-key",)) == {"flag-key", "from-environ"}


def test_key_of_a_process_that_took_a_title_is_kept() -> None:
    redactor = Redactor()
    keys = KeyRing(redactor, None, ("--api-key",), ())
    keys.face("ours")
    keys.follow(os.getpid(), 1, ("vllm", "serve", "--api-key=first-key,second-key"))
    keys.follow(os.getpid(), 1, ("VLLM::APIServer",))
    assert keys.key() == "first-key"
    assert redactor.clean("first-key second-key") == "*** ***"
    keys.follow(os.getpid(), 2, ("vllm", "serve"))
    assert keys.key() is None


@pytest.mark.parametrize(
    ("owner", "read", "given"),
    [
        ("ours", "k-read", "k-user"),
        ("adopted", "k-read", "k-user"),
        ("unknown", None, "k-user"),
        ("foreign", None, None),
        (None, None, "k-user"),
    ],
)
def test_key_that_was_read_goes_to_its_own_process_only(owner: str | None, read: str | None, given: str | None) -> None:
    keys = KeyRing(Redactor(), None, ("--api-key",), ())
    keys.follow(os.getpid(), 1, ("vllm", "serve", "--api-key", "k-read"))
    keys.face(owner)
    users = KeyRing(Redactor(), "k-user", ("--api-key",), ())
    users.face(owner)
    assert (keys.key(), users.key()) == (read, given)


def test_key_that_was_read_waits_for_the_owner_of_the_port() -> None:
    keys = KeyRing(Redactor(), None, ("--api-key",), ())
    assert not keys.await_owner(60.0)  # there is none
    keys.follow(os.getpid(), 1, ("vllm", "serve", "--api-key", "k-read"))
    told = threading.Timer(0.05, keys.face, ("ours",))
    told.start()
    assert keys.await_owner(60.0)
    told.join()
    assert keys.key() == "k-read"
