"""The target in process: its states are transformers' own, whatever its documents stand beside."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_attention import WrittenOut
from toy import make_target
from transformers import AutoModelForCausalLM

from vigil.errors import UsageError
from vigil_draft.states.target import Target
from vigil_draft.states.trial import trial_batch

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("target")
    make_target(where)
    return where


def test_states_are_those_of_transformers_document_by_document(folder: Path) -> None:
    target, batch = Target(str(folder), CPU, torch.float32), trial_batch(256)
    plain = AutoModelForCausalLM.from_pretrained(folder)
    aux, last = target.states(batch)
    assert target.boundaries == (2, 3, 4)
    for begin, end in zip(batch.bounds, batch.bounds[1:], strict=False):
        with torch.no_grad():
            want = plain(batch.token_ids[None, begin:end], output_hidden_states=True)
        wide = torch.cat([want.hidden_states[at][0] for at in (2, 3, 4)], dim=-1)
        torch.testing.assert_close(aux[begin:end], wide, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(target.logits(last[begin:end]), want.logits[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(plain.model.norm(last[begin:end]), want.hidden_states[-1][0], rtol=1e-4, atol=1e-5)
        assert torch.equal(target.greedy(last[begin:end]), want.logits[0].argmax(-1))


def test_a_kernels_attention_gives_the_same_states_and_a_wrong_one_is_not_taken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class AcrossDocuments(WrittenOut):
        def forward(self, q, k, v, batch):
            return super().forward(q.roll(1, 0), k, v, batch)

    target, batch = Target(str(folder), CPU, torch.float32), trial_batch(256)
    before = target.states(batch)
    target.take(AcrossDocuments())
    assert target.kernel is None
    assert "goes by a mask" in capsys.readouterr().err
    target.take(WrittenOut())
    assert target.kernel is not None
    for one, other in zip(before, target.states(batch), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_folder_that_is_no_model_and_a_boundary_that_is_not_there_are_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded as a target"):
        Target(str(tmp_path), CPU, torch.float32)
    with pytest.raises(UsageError, match="the target has 7 layers"):
        Target(str(folder), CPU, torch.float32, (2, 3, 9))
