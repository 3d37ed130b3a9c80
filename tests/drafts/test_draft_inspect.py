"""What inspect tells of a draft: its format, its conventions in words, and a line for each release."""

from pathlib import Path

import pytest

from drafts import make
from vigil_draft.inspect.inspection import RELEASES, inspect
from vigil_draft.inspect.text import text_of

FORMATS = {
    "original": "the original EAGLE-3 (SafeAILab)",
    "specforge": "SpecForge (TorchSpec writes the same)",
    "sglang": "SGLang's flat form",
    "vllm": "vLLM's flat form",
    "speculators": "speculators",
}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")  # what is told is wrapped for the terminal


def told(draft: make.Draft, folder: Path, target: Path | None = None) -> str:
    return text_of(inspect(str(draft.write(folder)), str(target) if target else None, RELEASES))


def line_of(text: str, start: str) -> str:
    return next(one.strip() for one in text.splitlines() if one.strip().startswith(start))


@pytest.mark.parametrize("form", list(make.FORMS))
def test_each_format_is_told_by_its_config_and_names(form: str, tmp_path: Path) -> None:
    found = inspect(str(make.FORMS[form]().write(tmp_path / "d")), None, ())
    assert (found.format, found.conventions["format"]) == (form, FORMATS[form])


def test_layers_are_told_as_boundaries_whoever_counted_them(tmp_path: Path) -> None:
    target = make.write_target(tmp_path / "target")
    for form in ("specforge", "vllm", "speculators"):
        assert "boundaries 1, 3, 6 (state after so many layers), from its list" in told(
            make.FORMS[form](), tmp_path / form
        )
    assert "boundaries 2, 4, 5" in told(make.sglang(), tmp_path / "d", target)
    assert "boundaries 2, L // 2 and L - 3" in told(make.sglang(), tmp_path / "d")


def test_the_conventions_are_told_in_words(tmp_path: Path) -> None:
    text = told(make.speculators(), tmp_path / "d")
    assert "128 of 512 tokens; maps: d2t and t2d (d2t: target id less draft id)" in text
    assert "its own; SGLang takes the target's in its place, vLLM keeps it" in text
    assert "2 heads (2 of keys), over all tokens before" in text
    assert "up to 256, rope_theta 10000.0" in text
    assert "no vigil.json: not written by vigil" in text
    slides = told(make.CASES["window"](), tmp_path / "w")
    assert "over a window of 32 tokens" in slides


def test_each_release_has_a_line_and_a_table_that_answers_for_it(tmp_path: Path) -> None:
    text = told(make.sglang(), tmp_path / "d")
    assert line_of(text, "SGLang 0.4.9").endswith("loads it, and drops tensors (DRAFT002)")
    assert line_of(text, "SGLang 0.5.17 (by 0.5.18)").endswith("loads it as it was trained")
    assert line_of(text, "vLLM 0.33 (by 0.32.0)").endswith("loads it as it was trained")
    assert "DRAFT002  warning: SGLang 0.4.9, SGLang 0.5.10" in text
    assert "Rename `layers.0.` to `midlayer.`" in text
    refused = told(make.speculators(), tmp_path / "s")
    assert line_of(refused, "SGLang 0.5.23").endswith("ends in an error (DRAFT001)")
    assert "`vigil draft convert --to sglang` writes a flat config.json" in refused.replace("\n      ", " ")


def test_a_shape_that_the_config_does_not_say_stands_beside_the_tensor(tmp_path: Path) -> None:
    draft = make.sglang()
    draft.config["intermediate_size"] = 256
    text = told(draft, tmp_path / "d")
    assert "layers.0.mlp.up_proj.weight               BF16  128 x 64  but its config says 256 x 64" in text
    assert "SHAPE001  fatal" in text


def test_a_list_in_the_wrong_place_is_in_doubt(tmp_path: Path) -> None:
    text = told(make.CASES["ids-beside"](), tmp_path / "d")
    assert "in doubt" in text
    assert "it cannot be told how they count" in " ".join(text.split())
