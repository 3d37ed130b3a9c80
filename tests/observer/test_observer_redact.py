"""Secrets stay on the host; what only looks like one stays readable."""

import os

import pytest

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


def test_redactor_is_quick_on_a_hostile_line() -> None:
    for piece in ("api_key", "--", "KEY_", "eyJ-", "://:", "A", "bearer ", "password ", "sk-", "token"):
        Redactor().clean(piece * (8192 // len(piece)))  # a pattern that runs away would not come back


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
    keys.follow(os.getpid(), 1, ("vllm", "serve", "--api-key=first-key,second-key"))
    keys.follow(os.getpid(), 1, ("VLLM::APIServer",))
    assert keys.key() == "first-key"
    assert redactor.clean("first-key second-key") == "*** ***"
    keys.follow(os.getpid(), 2, ("vllm", "serve"))
    assert keys.key() is None
