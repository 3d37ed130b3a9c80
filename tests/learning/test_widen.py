"""A wider model answers like the small one, from the same boundaries, and so does its draft."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from vigil_draft.errors import DraftError
from vigil_draft.learn import folder
from vigil_draft.states.batch import Batch
from vigil_draft.states.target import Target, default_boundaries
from vigil_draft.states.trial import trial_batch
from vigil_draft.widen.plan import Wish, places_of
from vigil_draft.widen.widen import widen

CPU = torch.device("cpu")
WISH = Wish(times=4, inner=600, layers=10, seed=3)


@pytest.fixture(scope="module")
def wide(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wide") / "target"
    widen(toy / "target", out, WISH)
    return out


@pytest.fixture
def batch() -> Batch:
    return trial_batch(256)


def test_wide_model_says_what_the_small_one_says(toy: Path, wide: Path) -> None:
    small, large = (LlamaForCausalLM.from_pretrained(path, dtype=torch.float32) for path in (toy / "target", wide))
    ids = torch.randint(3, 256, (3, 40), generator=torch.Generator().manual_seed(1))

    with torch.no_grad():
        before, after = small(ids).logits, large(ids).logits

    assert large.config.hidden_size == 4 * small.config.hidden_size
    assert large.config.num_hidden_layers == 10
    assert float((before - after).abs().max()) < 1e-4 * float(before.abs().max())
    assert torch.equal(before.argmax(-1), after.argmax(-1))


def test_default_boundaries_of_the_deeper_model_hold_the_same_states(toy: Path, wide: Path, batch: Batch) -> None:
    small, large = (Target(str(path), CPU, torch.float32) for path in (toy / "target", wide))
    assert (small.boundaries, large.boundaries) == (default_boundaries(7), default_boundaries(10))

    (aux, last), (wide_aux, wide_last) = small.states(batch), large.states(batch)

    for part in range(3):
        found = wide_aux[:, part * 256 : (part + 1) * 256]
        torch.testing.assert_close(found[:, :64], aux[:, part * 64 : (part + 1) * 64], rtol=1e-4, atol=1e-4)
        assert not found[:, 64:].any()  # the added part of the residual stays nought
    torch.testing.assert_close(wide_last[:, :64], last, rtol=1e-4, atol=1e-4)


def test_wide_draft_guesses_what_the_small_one_guesses(toy: Path, wide: Path, batch: Batch, tmp_path: Path) -> None:
    small, large = (Target(str(path), CPU, torch.float32) for path in (toy / "target", wide))
    words = torch.arange(0, 256, 2)
    config = folder.config_for(small, len(words))
    draft = folder.make(config, words, small)
    draft.begin(small, seed=5)
    folder.write(tmp_path / "draft", draft, config, {"target": "toy"})
    widen(tmp_path / "draft", tmp_path / "wide-draft", WISH)
    narrow, _ = folder.read(tmp_path / "draft", small)
    broad, _ = folder.read(tmp_path / "wide-draft", large)

    with torch.no_grad():
        (aux, _), (wide_aux, _) = small.states(batch), large.states(batch)
        steps = zip(narrow.unroll(batch, aux, 3), broad.unroll(batch, wide_aux, 3), strict=True)
        pairs = [(narrow.lm_head(a), broad.lm_head(b)) for (a, _), (b, _) in steps]

    for before, after in pairs:
        torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-3)


def test_added_weights_are_not_noughts(wide: Path) -> None:
    weight = LlamaForCausalLM.from_pretrained(wide, dtype=torch.float32).model.layers[0].mlp.gate_proj.weight
    assert float((weight == 0).float().mean()) < 0.01


@pytest.mark.parametrize(("layers", "wanted"), [(30, 60), (7, 10), (6, 7), (32, 33)])
def test_real_layers_keep_their_side_of_each_boundary(layers: int, wanted: int) -> None:
    places = places_of(layers, wanted)

    assert len(places) == wanted
    assert [one for one in places if one is not None] == list(range(layers))
    for small, large in zip(default_boundaries(layers), default_boundaries(wanted), strict=True):
        assert sum(one is not None for one in places[:large]) == small


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(times=2), "a square"),
        (Wish(times=4, inner=100), "larger"),
        (Wish(times=4, layers=3), "larger"),
    ],
)
def test_what_cannot_be_widened_is_told_and_nothing_is_written(
    toy: Path, tmp_path: Path, wish: Wish, said: str
) -> None:
    with pytest.raises(DraftError, match=said):
        widen(toy / "target", tmp_path / "out", wish)
    assert not list(tmp_path.iterdir())


def test_folder_that_is_there_is_left_alone(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(DraftError, match="there already"):
        widen(toy / "target", tmp_path, WISH)
