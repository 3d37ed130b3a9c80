"""Whether a draft's tokenizer is its target's: told by the files, with the first token that differs."""

import json
import shlex
from typing import Any

from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.seen_models import ModelSeen, TokensSeen
from vigil.preflight.seen_parser import ParserSeen
from vigil.preflight.sight import Sight

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 512, "num_hidden_layers": 2,
}  # fmt: skip
OTHER = TokensSeen(what="tokenizer.json", compared=500, different=400, first=3, first_target="the", first_draft="der")
SGLANG = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm STANDALONE --speculative-draft-model-path d"
)


def told(tokens: TokensSeen | None, words: str = SGLANG, flag: str = "--speculative-draft-model-path") -> list[Finding]:
    """Return what is said of the tokens of a draft that is a model of its own."""
    about: dict[str, Any] = {
        "kind": "folder",
        "config": CONFIG,
        "tokenizer": ("tokenizer.json",),
        "pickles": ("a.bin",),
    }
    target = ModelSeen(what="model", given="m", path="/m", **about)
    draft = ModelSeen(what=flag, given="d", path="/d", tokens=tokens, **about)
    split = tuple(shlex.split(words))
    engine, version, own = ("vllm", "0.32.0", 2) if split[0] == "vllm" else ("sglang", "0.5.12", 3)
    command = Command(words=split, own=own, engine=engine)
    found = examine(command, Sight(parser=ParserSeen(version=version), models=(target, draft)))
    assert found.fatal == ()
    return [one for one in found.findings if one.code == "DRAFT007"]


def test_a_draft_with_another_tokenizer_is_a_warning_with_the_first_token() -> None:
    (found,) = told(OTHER)
    assert found.severity is Severity.WARNING
    shown = "3 is 'the' for the target and 'der' for the draft"
    assert found.text == f"400 of the 500 token ids that d and m both have stand for other tokens: {shown}."


def test_a_few_other_names_are_noted() -> None:
    (found,) = told(TokensSeen(what="tokenizer.json", compared=1000, different=10, first=3))
    assert found.severity is Severity.NOTE


def test_nothing_is_said_where_nothing_is_known_to_differ() -> None:
    assert told(None) == []
    assert told(TokensSeen(what="tokenizer.json", same_file=True)) == []
    assert told(TokensSeen(what="tokenizer.json", compared=9)) == []
    assert told(TokensSeen(what="tokenizer.json", trouble="it is no JSON")) == []


def test_another_tokenizer_by_a_flag_leaves_the_targets_own_aside() -> None:
    assert told(OTHER, f"{SGLANG} --tokenizer-path t") == []


def test_vllm_may_be_told_that_the_vocabularies_differ() -> None:
    config = {"method": "draft_model", "model": "d", "num_speculative_tokens": 3}
    flag = "--speculative-config"
    assert len(told(OTHER, f"vllm serve m {flag} '{json.dumps(config)}'", flag)) == 1
    assert told(OTHER, f"vllm serve m {flag} '{json.dumps({**config, 'use_heterogeneous_vocab': True})}'", flag) == []


def test_what_a_file_holds_is_shown_without_what_a_terminal_obeys() -> None:
    (found,) = told(TokensSeen(what="tokenizer.json", compared=9, different=9, first=1, first_target="\x1b[2J\n"))
    assert "\x1b" not in found.text
    assert "\n" not in found.text
