"""What an engine's own files say of architectures, read without running them."""

from pathlib import Path

import pytest

from vigil.scout import registry

LLAMA = """
from torch import nn
class LlamaForCausalLM(nn.Module):
    def set_eagle3_layers_to_capture(self, layer_ids=None):
        pass
class Phi(LlamaForCausalLM):
    pass
EntryClass = [LlamaForCausalLM, Phi]
"""
OTHERS = """
from torch import nn
from sglang.srt.models.llama import LlamaForCausalLM as Base, (
)
class Mistral(
    Base,
):
    pass
class Mixtral(nn.Module):
    pass
class Strange(Made):
    pass
EntryClass = [
    Mistral,  # a word: Comment
    Mixtral, Strange,
]
"""


@pytest.fixture
def sglang(tmp_path: Path) -> Path:
    models = tmp_path / "sglang" / "srt" / "models"
    models.mkdir(parents=True)
    (models / "llama.py").write_text(LLAMA)
    (models / "others.py").write_text(OTHERS.replace(", (\n)", ""))
    (models / "llama_eagle3.py").write_text(
        "self.midlayer = 1\nclass LlamaForCausalLMEagle3: pass\nEntryClass = [LlamaForCausalLMEagle3]"
    )
    return tmp_path / "sglang"


def test_sglang_says_by_its_entry_classes_what_it_serves_and_by_their_bases_what_they_hand_out(sglang: Path) -> None:
    found = registry.read("sglang", str(sglang))
    assert found.aux == {
        "LlamaForCausalLM": True,
        "Phi": True,
        "Mistral": True,
        "Mixtral": False,
        "Strange": None,
        "LlamaForCausalLMEagle3": False,
    }
    assert found.draft_reads == ["self.midlayer", "midlayer"]


def test_vllm_says_it_in_its_tables(tmp_path: Path) -> None:
    models = tmp_path / "vllm" / "model_executor" / "models"
    models.mkdir(parents=True)
    (models / "registry.py").write_text(
        'A = {\n "Llama": ("llama", "LlamaModel"),\n "Far": (\n  "vllm.models.far",\n  "Far",\n ),\n "Old": ("old", "Old")}'
    )
    (models / "llama.py").write_text(
        "from .interfaces import SupportsEagle3, X\nclass LlamaModel(Base, SupportsEagle3): pass\nclass Base: pass"
    )
    (models / "interfaces.py").write_text("class SupportsEagle3(Protocol): pass")
    (models / "old.py").write_text("import torch\nclass Old(torch.nn.Module): pass")
    assert registry.read("vllm", str(tmp_path / "vllm")).aux == {"Llama": True, "Far": None, "Old": False}


def test_classes_that_are_their_own_bases_end(tmp_path: Path) -> None:
    models = tmp_path / "sglang" / "srt" / "models"
    models.mkdir(parents=True)
    (models / "a.py").write_text("from sglang.srt.models.b import B\nclass A(B): pass\nEntryClass = A")
    (models / "b.py").write_text("from sglang.srt.models.a import A\nclass B(A): pass")
    assert registry.read("sglang", str(tmp_path / "sglang")).aux == {"A": False}
