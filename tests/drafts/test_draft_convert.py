"""A draft in another format: the same bytes there and back, what it means unchanged, and a line for what cannot be said."""

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from drafts import make
from vigil_draft.convert.convert import FORMATS, convert
from vigil_draft.convert.wish import Wish
from vigil_draft.errors import DraftError, RefusedError
from vigil_draft.formats.folders import read_folder
from vigil_draft.formats.names import ours
from vigil_draft.inspect.inspection import inspect

NEWEST = {"sglang": ("sglang", "0.5.23"), "vllm": ("vllm", "0.32.0"), "speculators": ("vllm", "0.32.0")}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return make.write_target(tmp_path / "target")


def written(source: Path, to: str, target: Path | None = None, *, midlayer: bool = False) -> Path:
    """Convert a folder into one beside it, and return that."""
    folder = source.with_name(f"{source.name}-{to}")
    convert(str(source), folder, Wish(to=to, midlayer=midlayer), str(target) if target else None, ("vigil", "draft"))
    return folder


def tensors_of(folder: Path, *, by_ours: bool = True) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return each tensor with its bytes, by our names or by those that it has."""
    found = read_folder(folder).tensors
    names = ours(found) if by_ours else {name: name for name in found}
    data = {one.path: Path(one.path).read_bytes() for one in found.values()}
    return {names[name]: (one.dtype, one.shape, data[one.path][one.begin : one.end]) for name, one in found.items()}


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("form", list(make.FORMS))
def test_each_pair_there_and_back_has_the_same_bytes(form: str, to: str, tmp_path: Path, target: Path) -> None:
    source = make.FORMS[form]().write(tmp_path / form)
    there = written(source, to, target)
    back = written(there, form if form in FORMATS else "sglang", target, midlayer=form in {"original", "specforge"})

    before, after = tensors_of(source, by_ours=False), tensors_of(back, by_ours=False)
    shared = {
        "embed_tokens.weight"
    }  # taken over from the target where speculators wants it, and dropped where it is the target's
    assert {name: one for name, one in after.items() if name not in shared} == {
        name: one for name, one in before.items() if name not in shared
    }
    assert after.get("embed_tokens.weight", before.get("embed_tokens.weight")) in (
        before.get("embed_tokens.weight"),
        tensors_of(target)["embed_tokens.weight"],
    )


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("form", list(make.FORMS))
def test_what_is_written_is_loaded_as_it_was_trained(form: str, to: str, tmp_path: Path, target: Path) -> None:
    source = make.FORMS[form]().write(tmp_path / form)
    there = written(source, to, target)
    found = inspect(str(there), str(target), (NEWEST[to],))
    assert found.readings[0].findings == ()
    before = inspect(str(source), str(target), ())
    assert found.conventions["inputs"].partition(" (")[0] == before.conventions["inputs"].partition(" (")[0]
    assert (found.format, found.doubts) == (to, ())


def test_layers_are_counted_as_each_counts_them_and_the_default_is_left_out(tmp_path: Path, target: Path) -> None:
    source = make.speculators().write(tmp_path / "d")
    assert config_of(written(source, "sglang"))["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [0, 2, 5]
    assert config_of(written(source, "vllm"))["eagle_aux_hidden_state_layer_ids"] == [1, 3, 6]
    usual = make.speculators()
    usual.config["eagle_aux_hidden_state_layer_ids"] = [2, 4, 5]
    again = usual.write(tmp_path / "usual")
    assert "eagle_config" not in config_of(written(again, "sglang", target))
    assert "eagle_aux_hidden_state_layer_ids" not in config_of(written(again, "vllm", target))


def test_a_flat_config_comes_back_as_it_was(tmp_path: Path, target: Path) -> None:
    source = make.sglang().write(tmp_path / "d")
    once = written(source, "sglang", target)
    there = written(once, "speculators", target)
    assert config_of(written(there, "sglang", target)) == config_of(once)
    told = config_of(once)
    assert told["rope_theta"] == told["rope_parameters"]["rope_theta"] == 10000.0
    inner = config_of(there)["transformer_layer_config"]
    assert inner["rope_theta"] == inner["rope_parameters"]["rope_theta"] == 10000.0


def test_scaled_rope_is_written_in_both_ways(tmp_path: Path) -> None:
    source = make.sglang()
    scaled = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 128}
    source.config.update(rope_theta=500000.0, rope_scaling=scaled)
    told = config_of(written(source.write(tmp_path / "d"), "vllm"))
    assert (told["rope_scaling"], told["rope_theta"]) == (scaled, 500000.0)
    assert told["rope_parameters"] == {**scaled, "rope_theta": 500000.0}


def test_old_servers_get_their_midlayer_and_a_second_layer_its_norms_name(tmp_path: Path) -> None:
    old = written(make.sglang().write(tmp_path / "d"), "sglang", midlayer=True)
    assert "midlayer.hidden_norm.weight" in read_folder(old).tensors
    assert inspect(str(old), None, (("sglang", "0.4.9"), ("sglang", "0.5.10"))).readings[1].findings == ()
    two = written(make.CASES["two-layers"]().write(tmp_path / "two"), "sglang")
    assert {"layers.0.input_layernorm.weight", "layers.1.hidden_norm.weight"} <= set(read_folder(two).tensors)
    assert "layers.1.input_layernorm.weight" not in read_folder(two).tensors
    back = written(two, "vllm")
    assert tensors_of(back, by_ours=False) == tensors_of(tmp_path / "two", by_ours=False)


def test_four_inputs_are_written_so_that_engines_count_them(tmp_path: Path) -> None:
    source = make.CASES["four-inputs"]().write(tmp_path / "d")
    for to in ("sglang", "vllm"):
        there = written(source, to)
        assert config_of(there)["num_aux_hidden_states"] == 4
        assert inspect(str(there), None, (NEWEST[to],)).readings[0].findings == ()
    with pytest.raises(RefusedError, match="makes fc for 3"):
        written(source.rename(tmp_path / "old"), "sglang", midlayer=True)


def test_an_embedding_is_dropped_only_where_it_is_the_targets(tmp_path: Path, target: Path) -> None:
    source = make.speculators().write(tmp_path / "d")
    assert "embed_tokens.weight" in read_folder(written(source, "sglang")).tensors
    same = source.rename(tmp_path / "same")
    assert "embed_tokens.weight" not in read_folder(written(same, "sglang", target)).tensors
    other = make.speculators()
    other.given = {"embed_tokens.weight": make.data_of("another", *make.EMBEDDING["embed_tokens.weight"])}
    with pytest.raises(RefusedError, match="it is not the target's, and SGLang puts the target's in its place"):
        written(other.write(tmp_path / "other"), "sglang", target)


def test_a_missing_map_is_made_for_speculators_and_is_the_one_that_was_there(tmp_path: Path, target: Path) -> None:
    source = make.sglang()
    del source.tensors["t2d"]
    there = written(source.write(tmp_path / "d"), "speculators", target)
    assert tensors_of(there)["t2d"][2] == make.data_of("t2d", "BOOL", (make.VOCABULARY,))


REFUSED = [
    ("norm-before-residual", "sglang", "does not read norm_before_residual"),
    ("biases", "sglang", "does not read attention_bias"),
    ("biases", "sglang", "drops these 3 tensors"),
    ("window", "sglang", "trained with a window of 32 tokens"),
    ("unknown-tensor", "sglang", "extra.weight"),
    ("unknown-tensor", "vllm", "extra.weight"),
    ("missing-norm", "vllm", "layers.0.hidden_norm.weight"),
    ("no-d2t", "vllm", "128 of 512 tokens and no d2t"),
    ("norm-output", "vllm", "to SpecForge it is the norm before the head"),
    ("ids-beside", "sglang", "it cannot be told how they count"),
    ("wide-as-inputs", "sglang", "passes fc.weight over"),
    ("wide-as-inputs", "speculators", "speculators wants both equal"),
    ("sglang", "speculators", "embed_tokens.weight: it is not in the draft, and speculators ships it"),
]


@pytest.mark.parametrize(("case", "to", "line"), REFUSED)
def test_what_the_other_format_cannot_say_is_refused_by_name(case: str, to: str, line: str, tmp_path: Path) -> None:
    source = make.CASES[case]().write(tmp_path / "d")
    with pytest.raises(RefusedError) as refused:
        written(source, to)
    assert any(line in one for one in refused.value.why), refused.value.why
    assert all("\n" not in one for one in refused.value.why)
    assert not list(tmp_path.glob("*d-*"))


@pytest.mark.parametrize(
    ("settings", "to", "line"),
    [
        ({"norm_before_fc": True, "fc_norm": True}, "speculators", "speculators takes one of them"),
        ({"tie_word_embeddings": True}, "vllm", "its head is its embedding"),
        (
            {"architectures": ["Eagle3Qwen3ForCausalLM"], "model_type": "qwen3"},
            "sglang",
            "only Llama drafts are converted",
        ),
    ],
)
def test_settings_without_a_word_in_the_other_format_are_refused(
    settings: dict[str, Any], to: str, line: str, tmp_path: Path, target: Path
) -> None:
    draft = make.sglang()
    draft.config.update(settings)
    if "tie_word_embeddings" in settings:
        del draft.tensors["lm_head.weight"]
    with pytest.raises(RefusedError) as refused:
        written(draft.write(tmp_path / "d"), to, target)
    assert line in str(refused.value)


def test_a_list_for_a_target_that_counts_in_its_own_way_is_refused(tmp_path: Path, target: Path) -> None:
    config = config_of(target)
    (target / "config.json").write_text(json.dumps({**config, "architectures": ["GptOssForCausalLM"]}))
    with pytest.raises(RefusedError, match="SGLang counts those of GptOssForCausalLM in a way of its own"):
        written(make.vllm().write(tmp_path / "d"), "sglang", target)


@pytest.mark.parametrize(("form", "place"), [("sglang", "eagle_config"), ("vllm", "")])
def test_a_list_that_is_the_default_but_for_one_is_refused(form: str, place: str, tmp_path: Path, target: Path) -> None:
    draft = make.FORMS[form]()
    name = "eagle_aux_hidden_state_layer_ids"
    draft.config.update({place: {name: [2, 4, 5]}} if place else {name: [1, 3, 4]})
    with pytest.raises(RefusedError, match="by one they are the default ones of 8 layers"):
        written(draft.write(tmp_path / "d"), "speculators", target)


def test_an_embedding_that_was_trained_is_not_for_sglang(tmp_path: Path) -> None:
    draft = make.speculators()
    draft.config["embed_requires_grad"] = True
    with pytest.raises(RefusedError, match="it was trained"):
        written(draft.write(tmp_path / "d"), "sglang")
    assert config_of(written(draft.write(tmp_path / "e"), "speculators"))["embed_requires_grad"] is True


def test_where_it_comes_from_stands_in_a_file_of_its_own(tmp_path: Path, target: Path) -> None:
    source = make.speculators().write(tmp_path / "d")
    there = written(source, "sglang", target)
    told = json.loads((there / "vigil.json").read_text())
    assert (told["made_by"], told["source"]["format"], told["source"]["path"]) == (
        "vigil draft convert",
        "speculators",
        str(source),
    )
    assert told["source"]["conventions"]["inputs"].startswith("boundaries 1, 3, 6")
    assert told["tensors"]["fc.weight"]["from"] == "fc.weight"
    assert "vigil" not in (there / "config.json").read_text()
    again = json.loads((written(there, "vllm", target) / "vigil.json").read_text())
    assert again["before"] == told
    assert {name: one["sha256"] for name, one in again["tensors"].items()} == {
        name: one["sha256"] for name, one in told["tensors"].items()
    }
    assert inspect(str(there), None, ()).conventions["provenance"].startswith("vigil draft convert 0.1.0, from")


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    source = make.sglang().write(tmp_path / "d")
    (tmp_path / "d-vllm").mkdir()
    with pytest.raises(DraftError, match="is there already"):
        written(source, "vllm")
    assert not list((tmp_path / "d-vllm").iterdir())


def test_a_large_draft_takes_little_memory(tmp_path: Path) -> None:
    """A head of 128 MiB, all zeros that take no room in the source; what is held at once is a piece of it."""
    source = make.sglang()
    rows = 1 << 20
    source.config.update(vocab_size=rows, draft_vocab_size=rows)
    source.tensors = {
        name: told for name, told in source.tensors.items() if name not in {"d2t", "t2d", "lm_head.weight"}
    }
    folder = source.write(tmp_path / "d")
    header = {"lm_head.weight": {"dtype": "BF16", "shape": [rows, 64], "data_offsets": [0, rows * 128]}}
    text = json.dumps(header).encode()
    with (folder / "more.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + rows * 128)
    tracemalloc.start()
    there = written(folder, "vllm")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read_folder(there).tensors["lm_head.weight"].bytes == rows * 128
    assert peak_bytes < 32 << 20


def test_what_is_lost_on_purpose_is_written_and_noted(tmp_path: Path, target: Path) -> None:
    source = make.CASES["window"]().write(tmp_path / "d")
    with pytest.raises(RefusedError, match=r"DRAFT005: .* window of 32 tokens"):
        convert(str(source), tmp_path / "out", Wish(to="sglang"), None, ("vigil",))
    done = convert(str(source), tmp_path / "out", Wish(to="sglang", anyway=True), None, ("vigil",))
    assert [one for one in done.notes if one.startswith("written anyway: DRAFT005: ") and "window of 32 tokens" in one]
    assert (
        config_of(tmp_path / "out")["sliding_window"] == 32
    )  # for whoever judges it, and for --speculative-draft-window-size
    told = json.loads((tmp_path / "out" / "vigil.json").read_text())
    assert told["notes"] == list(done.notes)


def test_norms_over_heads_are_lost_in_sglang_and_end_vllm(tmp_path: Path) -> None:
    source = make.CASES["head-norms"]().write(tmp_path / "d")
    with pytest.raises(RefusedError, match=r"DRAFT002: .*norms each head of its queries and keys"):
        convert(str(source), tmp_path / "out", Wish(to="sglang"), None, ("vigil",))
    with pytest.raises(RefusedError, match=r"DRAFT001: .*ends at the first of them"):
        convert(str(source), tmp_path / "out", Wish(to="vllm", anyway=True), None, ("vigil",))
    assert convert(str(source), tmp_path / "out", Wish(to="sglang", anyway=True), None, ("vigil",)).notes
    qwen3 = make.CASES["qwen3"]().write(tmp_path / "q")
    with pytest.raises(
        RefusedError, match="only Llama drafts are converted, and the class of this one is Eagle3Qwen3ForCausalLM"
    ):
        convert(str(qwen3), tmp_path / "out2", Wish(to="sglang", anyway=True), None, ("vigil",))


@pytest.mark.parametrize("case", ["no-d2t", "unknown-tensor"])
def test_what_no_server_could_use_is_refused_whatever_was_asked(case: str, tmp_path: Path) -> None:
    source = make.CASES[case]().write(tmp_path / "d")
    with pytest.raises(RefusedError, match=r"DRAFT00[16]"):
        convert(str(source), tmp_path / "out", Wish(to="vllm", anyway=True), None, ("vigil",))
