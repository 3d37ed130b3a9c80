"""Prompts out of packages: each template can be filled, and what is read of a package's files is what stands there."""

import random
import re
import tomllib
from pathlib import Path

import arithmetic
import gather
import sources
import wordnet

FIELDS = {
    "sentence": {"t"}, "paragraph": {"t"}, "function": {"t"}, "task": {"t"}, "novel": {"t"}, "term": {"x", "y", "gloss"},
    "api": {"x", "t"},
}  # fmt: skip
NOUN = "{at:08d} {kind:02d} n {count:02x} {words} {pointers} | {gloss}\n"


def test_every_template_can_be_filled_by_every_kind_of_its_group() -> None:
    kinds = {*wordnet.KINDS.values(), *wordnet.NAMES.values()}
    for group in tomllib.loads((gather.HERE / "templates.toml").read_text("utf-8"))["group"]:
        for kind in group["kinds"] + gather.EXTRA.get(group["name"], []):
            assert kind in kinds or kind in FIELDS, kind
            fields = FIELDS.get(kind, {"x", "y", "gloss"})
            assert {one for text in group["templates"] for one in re.findall(r"\{(\w+)\}", text)} <= fields, group[
                "name"
            ]


def test_arithmetic_is_the_same_for_a_seed_and_no_problem_comes_twice() -> None:
    some = arithmetic.problems(random.Random(1), 500)
    assert some == arithmetic.problems(random.Random(1), 500)
    assert len(set(some)) == 500


def test_things_are_ranked_by_use_and_names_are_kinds_of_their_own(tmp_path: Path) -> None:
    rows = [
        NOUN.format(
            at=1, kind=5, count=1, words="otter 0", pointers="001 @ 00000009 n 0000", gloss="a swimming animal"
        ),
        NOUN.format(
            at=2, kind=5, count=1, words="dog 0", pointers="001 @ 00000009 n 0000", gloss='an animal; "it barks"'
        ),
        NOUN.format(
            at=3, kind=18, count=2, words="Curie 0 Marie_Curie 0", pointers="001 @i 00000009 n 0000", gloss="a chemist"
        ),
        NOUN.format(at=4, kind=6, count=1, words="thing 0", pointers="001 @ 00000009 n 0000", gloss="(vulgar) a thing"),
    ]
    (tmp_path / "data.noun").write_text("  1 a licence\n" + "".join(rows))
    (tmp_path / "cntlist.rev").write_text("dog%1:05:00:: 1 42\notter%1:05:00:: 1 3\n")
    found = wordnet.things(tmp_path)
    assert [one.name for one in found["animal"]] == ["dog", "otter"]
    assert [one.name for one in found["somebody"]] == ["Marie Curie"]
    assert found["animal"][0].gloss == "an animal"
    assert "artifact" not in found


def test_chats_are_read_from_the_corpus() -> None:
    text = "categories:\n- a\nconversations:\n- - What is it?\n  - 'It''s a\n    long answer.'\n- - Hello\n  - Hi\n"
    assert sources._of_yaml(text) == [["What is it?", "It's a long answer."], ["Hello", "Hi"]]


def test_an_article_fits_what_follows_it() -> None:
    groups = [{"name": "g", "share": 1, "kinds": ["k"], "templates": ["You are a {x}, and a {y}."]}]
    known = {"k": (lambda _: ({"x": "orator", "y": "unicorn", "gloss": ""}, ""), "made")}
    assert gather.filled(random.Random(0), groups, known) == ("You are an orator, and a unicorn.", "g", "made")
