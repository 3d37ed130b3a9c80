"""The tokens of a draft beside its target's: read from files of any kind, and never trusted."""

import json
from pathlib import Path
from typing import Any

import pytest

from preflight.lists import gguf_of
from scout.folders_of import asked

WORDS = {f"w{one}": one for one in range(100)}


def tokenizer(vocabulary: Any, added: dict[str, int] | None = None) -> str:
    told = [{"id": number, "content": text} for text, number in (added or {}).items()]
    model = {"type": "BPE", "vocab": vocabulary, "merges": [["a", "b"]]}
    return json.dumps({"version": "1.0", "added_tokens": told, "model": model})


def pair(tmp_path: Path, target: str, draft: str, name: str = "tokenizer.json") -> Any:
    """Return what was seen of the draft's tokens."""
    for folder, text in (("m", target), ("d", draft)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "config.json").write_text("{}")
        (tmp_path / folder / name).write_text(text, "utf-8", "surrogatepass")
    models = {"what": "model", "given": "m"}, {"what": "--speculative-draft-model-path", "given": "d"}
    seen = asked(*models, cwd=tmp_path, engine="sglang")
    assert seen[0].get("tokens") is None
    return seen[1]["tokens"]


def test_one_file_in_two_places_is_not_read(tmp_path: Path) -> None:
    assert pair(tmp_path, "no JSON", "no JSON") == {"what": "tokenizer.json", "same_file": True}


def test_files_that_differ_elsewhere_have_the_same_tokens(tmp_path: Path) -> None:
    seen = pair(tmp_path, tokenizer(WORDS), tokenizer(WORDS) + " ")
    assert seen == {"what": "tokenizer.json", "target": 100, "draft": 100, "compared": 100, "different": 0}


def test_ids_that_stand_for_other_tokens_are_counted(tmp_path: Path) -> None:
    other = {**WORDS, "w7": 8, "w8": 7}
    seen = pair(tmp_path, tokenizer(WORDS, {"<s>": 100}), tokenizer(other, {"<s>": 100, "<t>": 101}))
    assert (seen["target"], seen["draft"], seen["compared"], seen["different"]) == (101, 102, 101, 2)
    assert (seen["first"], seen["first_target"], seen["first_draft"]) == (7, "w7", "w8")


def test_added_tokens_stand_above_the_vocabulary(tmp_path: Path) -> None:
    seen = pair(tmp_path, tokenizer(WORDS, {"<a>": 100}), tokenizer(WORDS, {"<b>": 100}))
    assert (seen["different"], seen["first_target"], seen["first_draft"]) == (1, "<a>", "<b>")


def test_a_vocabulary_with_scores_is_counted_by_place(tmp_path: Path) -> None:
    scored = [[text, -1.0] for text in WORDS]
    assert pair(tmp_path, tokenizer(scored), tokenizer(WORDS))["different"] == 0


def test_vocab_json_is_taken_where_there_is_no_tokenizer_json(tmp_path: Path) -> None:
    seen = pair(tmp_path, json.dumps(WORDS), json.dumps({**WORDS, "x": 100}), "vocab.json")
    assert (seen["what"], seen["compared"], seen["different"]) == ("vocab.json", 100, 0)


@pytest.mark.parametrize(
    "nasty",
    [
        "",
        "{}",
        '{"model": {"vocab": ' + "[" * 200_000,
        '{"model": {"vocab": {"a": ' + "9" * 100_000 + "}}}",
        '{"model": {"vocab": 7}}',
        '{"model": {"vocab": {"a": "b", "c": null, "d": 1e999}}, "added_tokens": [7, {"id": "x"}]}',
    ],
)
def test_what_is_no_tokenizer_is_said_in_one_line(tmp_path: Path, nasty: str) -> None:
    seen = pair(tmp_path, tokenizer(WORDS), nasty)
    assert seen.get("trouble") or seen["compared"] == 0
    assert "\n" not in (seen.get("trouble") or "")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    pair(tmp_path, tokenizer(WORDS), tokenizer(WORDS))
    with (tmp_path / "d" / "tokenizer.json").open("r+b") as file:
        file.truncate(1 << 40)
    models = {"what": "model", "given": "m"}, {"what": "--speculative-draft-model-path", "given": "d"}
    seen = asked(*models, cwd=tmp_path, engine="sglang")[1]["tokens"]
    assert seen["trouble"] == f"tokenizer.json has {1 << 40} bytes, and was not read"


def test_tokens_of_gguf_files_are_compared_behind_the_first_five(tmp_path: Path) -> None:
    def file(name: str, tokens: list[str]) -> None:
        metadata = {"general.architecture": "llama", "a.list": ["x"], "tokenizer.ggml.tokens": tokens, "after": 1}
        (tmp_path / name).write_bytes(gguf_of(metadata))

    file("m.gguf", list(WORDS))
    file("d.gguf", ["<s>", *list(WORDS)[1:50], "other"])
    models = {"what": "model", "given": "m.gguf"}, {"what": "-md", "given": "d.gguf"}
    seen = asked(*models, cwd=tmp_path, engine="llamacpp")[1]["tokens"]
    assert (seen["target"], seen["draft"], seen["compared"], seen["different"]) == (100, 51, 46, 1)
    assert (seen["first"], seen["first_target"], seen["first_draft"]) == (50, "w50", "other")


def test_a_draft_that_is_read_is_remembered_until_a_file_changes(tmp_path: Path) -> None:
    assert pair(tmp_path, tokenizer(WORDS), tokenizer({**WORDS, "w1": 1000}))["different"] == 0
    assert pair(tmp_path, tokenizer(WORDS), tokenizer({**WORDS, "longer": 1}))["different"] == 1
    assert (
        asked({"what": "model", "given": "m"}, {"what": "--tokenizer-path", "given": "d"}, cwd=tmp_path)[1].get(
            "tokens"
        )
        is None
    )
