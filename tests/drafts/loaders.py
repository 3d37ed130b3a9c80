"""Have an engine's own loader load toy drafts, and say what it did: what it dropped, and which parameters stayed untouched.

Run with the engine's Python (`tests/real/install-*.sh`); `test_draft_loaders.py` compares what it prints with `loaders.json`,
where `--keep` writes it:

    .engines/vllm/bin/python tests/drafts/loaders.py vllm --keep
    .engines/sglang/bin/python tests/drafts/loaders.py sglang --keep
    .engines/sglang/bin/python tests/drafts/loaders.py sglang FOLDER       # other drafts, with a `target` among them

Nothing of the engine is replaced but what lies outside of the question: the attention of a layer whose norms are looked at.
"""
# ruff: noqa: PLC0415 - engines are imported when they are asked for, each in its own Python

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import make

KEPT = Path(__file__).with_name("loaders.json")
UNTOUCHED = 7.0
"""No toy tensor holds it."""


def main() -> None:
    """Print, or keep, what an engine's loader did with each case, or with each draft in a folder."""
    engine, given = sys.argv[1], [Path(one) for one in sys.argv[2:] if one != "--keep"]
    with tempfile.TemporaryDirectory() as folder:
        place = given[0] if given else Path(folder)
        if not given:
            make.write_target(place / "target")
            for name, made in make.CASES.items():
                made().write(place / name)
        names = sorted(one.name for one in place.iterdir() if one.name != "target")
        found = {"vllm": _by_vllm, "sglang": _by_sglang}[engine](place, names)
    if "--keep" in sys.argv:
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        KEPT.write_text(json.dumps({**kept, engine: found}, indent=1, sort_keys=True) + "\n")
    else:
        print(json.dumps(found, sort_keys=True))


def _weights(folder: Path) -> list[tuple[str, Any]]:
    from safetensors.torch import load_file

    return list(load_file(folder / "model.safetensors").items())


def _fill(model: Any) -> None:
    for one in model.parameters():
        one.data.fill_(UNTOUCHED)


def _untouched(model: Any) -> list[str]:
    """Return the parameters of which some part was not written."""
    return sorted(name for name, one in model.named_parameters() if bool((one == UNTOUCHED).any()))


def _told(error: BaseException, place: Path) -> str:
    """Return an error without what is another at each run: the folder, the order of a set."""
    text = " ".join(str(error).split()).replace(str(place), "PLACE").partition(" The available parameters")[0]
    return f"{type(error).__name__}: {text[:160]}"


def _residual(layer: Any, hidden: int) -> str:
    """Return what the first layer adds back behind its attention: the state before hidden_norm, or after it."""
    import torch

    kept: list[Any] = []

    class Silent(torch.nn.Module):
        def forward(self, *_: Any, **named: Any) -> Any:
            return torch.zeros_like(named["hidden_states"][..., :hidden])

    class Kept(torch.nn.Module):
        def forward(self, state: Any, residual: Any) -> Any:
            kept.append(residual)
            return state, residual

    layer.self_attn, layer.post_attention_layernorm, layer.mlp = Silent(), Kept(), torch.nn.Identity()
    state = torch.linspace(1, 3, hidden).to(torch.bfloat16).reshape(1, hidden)
    layer(**_given(layer, state.clone(), None))
    return "before hidden_norm" if bool(torch.equal(kept[0], state)) else "after hidden_norm"


def _given(layer: Any, state: Any, residual: Any) -> dict[str, Any]:
    """Return what a layer of either engine is called with."""
    import torch

    names = {
        "positions": torch.zeros(1, dtype=torch.long),
        "embeds": state,
        "hidden_states": state,
        "residual": residual,
    }
    return {**names, "forward_batch": None} if "forward_batch" in type(layer).forward.__code__.co_varnames else names


def _later_norm(layers: Any) -> str | None:
    """Return the norm that a second layer puts before its attention, None where there is none."""
    import torch

    if len(layers) < 2:
        return None
    used: list[str] = []
    second = layers[1]
    for name in ("input_layernorm", "hidden_norm"):
        getattr(second, name).register_forward_hook(lambda *_, name=name: used.append(name))

    class Silent(torch.nn.Module):
        def forward(self, *_: Any, **named: Any) -> Any:
            return named["hidden_states"]

    second.self_attn, second.mlp = Silent(), torch.nn.Identity()
    state = torch.ones(1, second.hidden_size, dtype=torch.bfloat16)
    second(**_given(second, state, state.clone()))
    return ", ".join(used)


def _by_vllm(place: Path, names: list[str]) -> dict[str, Any]:
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    import vllm

    return {"version": vllm.__version__.split("+")[0], "cases": {name: _vllm_case(place, name) for name in names}}


def _vllm_case(place: Path, name: str) -> dict[str, Any]:
    from vllm.config import set_current_vllm_config
    from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.models.registry import ModelRegistry

    asked = {"method": "eagle3", "model": str(place / name), "num_speculative_tokens": 3}
    try:
        config = EngineArgs(
            model=str(place / "target"), skip_tokenizer_init=True, speculative_config=asked, max_model_len=256, dtype="bfloat16",
            enforce_eager=True,
        ).create_engine_config()  # fmt: skip
        draft = config.speculative_config.draft_model_config
        with set_current_vllm_config(config):
            init_distributed_environment(1, 0, f"file://{tempfile.gettempdir()}/vigil-loaders-{os.getpid()}", 0, "gloo")
            ensure_model_parallel_initialized(1, 1)
            kind, _ = ModelRegistry.resolve_model_cls(draft.architectures, draft)
            return {**_vllm_model(kind(vllm_config=config), place / name), **_vllm_layers(config)}
    except Exception as error:  # noqa: BLE001 - the end of a load is what is told
        return {"error": _told(error, place)}


def _vllm_model(model: Any, folder: Path) -> dict[str, Any]:
    import torch

    _fill(model)
    before = None if model.draft_id_to_target_id is None else model.draft_id_to_target_id.clone()
    model.load_weights(_weights(folder))
    first = model.model.layers[0]
    return {
        "class": type(model).__name__,
        "untouched": _untouched(model),
        "mapped": before is not None and not bool(torch.equal(before, model.draft_id_to_target_id)),
        "fc": list(model.model.fc.weight.shape),
        "norm_output": bool(model.model.norm_output),
        "bias": first.self_attn.qkv_proj.bias is not None,
        "window": getattr(first.self_attn.attn, "sliding_window", None),
        "own_embedding": bool(getattr(model, "has_own_embed_tokens", False)),
        "positions": model.config.max_position_embeddings,
        "residual": _residual(first, model.config.hidden_size),
        "later_norm": _later_norm(model.model.layers),
    }


def _vllm_layers(config: Any) -> dict[str, Any]:
    """Return the boundaries that the old and the new runner ask the target for; None: the default ones."""
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import get_eagle3_aux_layers_from_config
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    asker = SimpleNamespace(speculative_config=config.speculative_config)
    old = GPUModelRunner._get_eagle3_aux_layers_from_config(asker)
    new = get_eagle3_aux_layers_from_config(config.speculative_config)
    return {"boundaries_old_runner": old and list(old), "boundaries_new_runner": new and list(new)}


def _by_sglang(place: Path, names: list[str]) -> dict[str, Any]:
    import sglang
    import torch
    from sglang.srt import runtime_context
    from sglang.srt.distributed import parallel_state
    from sglang.srt.server_args import ServerArgs

    asked = ServerArgs(
        model_path=str(place / "target"), device="cpu", attention_backend="torch_native", skip_tokenizer_init=True,
        disable_overlap_schedule=True,
    )  # fmt: skip
    runtime_context.publish(asked, role="test", ranks=runtime_context.SpawnRanks(world_rank=0))
    parallel_state.init_distributed_environment(
        1, 0, f"file://{tempfile.gettempdir()}/vigil-loaders-{os.getpid()}", 0, "gloo"
    )
    parallel_state.initialize_model_parallel(backend="gloo")
    torch.set_default_dtype(torch.bfloat16)
    return {"version": sglang.__version__, "cases": {name: _sglang_case(place, name) for name in names}}


def _sglang_case(place: Path, name: str) -> dict[str, Any]:
    from sglang.srt.models.registry import ModelRegistry
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(place / name)
        kind, _ = ModelRegistry.resolve_model_cls(config.architectures)
        model = kind(config)
        if not hasattr(model, "get_hot_token_id"):
            return {"error": f"{kind.__name__} is no class of EAGLE-3 drafts"}
        _fill(model)
        dropped = [tensor for tensor, data in _weights(place / name) if not _changes(model, tensor, data)]
        return {**_sglang_model(model), "dropped": sorted(dropped), "boundaries": _sglang_layers(place, config)}
    except Exception as error:  # noqa: BLE001 - the end of a load is what is told
        return {"error": _told(error, place)}


def _changes(model: Any, name: str, data: Any) -> bool:
    """Load one tensor; tell whether that changed anything."""
    import torch

    before = {one: value.detach().clone() for one, value in model.named_parameters()}
    maps = model.hot_token_id
    model.load_weights([(name, data)])
    changed = any(not torch.equal(before[one], value) for one, value in model.named_parameters())
    return changed or model.hot_token_id is not maps


def _sglang_model(model: Any) -> dict[str, Any]:
    first = model.model.layers[0]
    return {
        "untouched": _untouched(model),
        "mapped": model.hot_token_id is not None,
        "fc": list(model.model.fc.weight.shape),
        "norm_output": bool(model.model.norm_output),
        "bias": first.self_attn.qkv_proj.bias is not None,
        "window": model.get_attention_sliding_window_size(),
        "head_is_embedding": model.lm_head is model.model.embed_tokens,
        "through_fc": _through_fc(model.model),
        "residual": _residual(first, model.config.hidden_size),
        "later_norm": _later_norm(model.model.layers),
    }


def _through_fc(inner: Any) -> bool:
    """Tell whether a state of the target goes through fc."""
    import torch

    layers, norm, fc = inner.layers, inner.norm, inner.fc
    went: list[int] = []

    class Counted(torch.nn.Module):
        def forward(self, state: Any) -> Any:
            went.append(1)
            return fc(state)

    class Plain(torch.nn.Module):
        def forward(self, state: Any, _: Any) -> Any:
            return state, state

    inner.layers, inner.norm, inner.fc = torch.nn.ModuleList(), Plain(), Counted()
    state = torch.ones(1, inner.hidden_size_in * inner.num_aux_hidden_states, dtype=torch.bfloat16)
    batch = SimpleNamespace(spec_info=SimpleNamespace(hidden_states=state))
    inner(None, torch.zeros(1), batch, input_embeds=torch.ones(1, inner.config.hidden_size, dtype=torch.bfloat16))
    inner.layers, inner.norm, inner.fc = layers, norm, fc
    return bool(went)


def _sglang_layers(place: Path, draft: Any) -> list[int]:
    """Return the boundaries that the target is asked for: as SGLang reads them of the draft's config, and counts them."""
    from sglang.srt.models.llama import LlamaForCausalLM
    from transformers import AutoConfig

    told = getattr(draft, "eagle_config", None)
    try:  # as spec_aux_hidden_state.py of 0.5.23 does, whose function wants a whole server's config
        ids = told["eagle_aux_hidden_state_layer_ids"]
    except (TypeError, KeyError):
        ids = None
    target = LlamaForCausalLM(AutoConfig.from_pretrained(place / "target"))
    target.set_eagle3_layers_to_capture(ids)
    return list(target.model.layers_to_capture)


if __name__ == "__main__":
    main()
