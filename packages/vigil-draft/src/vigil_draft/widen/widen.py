"""Write a model or a draft in its widened form, a layer at a time."""

import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from vigil_draft import __version__
from vigil_draft.errors import DraftError
from vigil_draft.formats.folders import read_json
from vigil_draft.formats.provenance import NAME, SCHEMA
from vigil_draft.formats.writing import appearing, write_json
from vigil_draft.widen.plan import WRITES, Dims, Wish, config_of, dims_of, kind_of, places_of, spans, wider

SPREAD = 0.02
"""Standard deviation of the added weights: that of Llama's own beginning."""
MOST_CONFIG_BYTES = 1 << 20
INDEX = "model.safetensors.index.json"
_AUX = "eagle_aux_hidden_state_layer_ids"
_LAYER = "model.layers."


class Origin(NamedTuple):
    """The small model's tensor that a wide one is made from; of an added layer only its shape and its norms are taken."""

    name: str
    added: bool = False


class Widening(NamedTuple):
    """One widening: from where, how far, and with which chance."""

    source: Path
    small: Dims
    large: Dims
    times: int
    draft: bool
    device: str
    chance: torch.Generator


def widen(source: Path, folder: Path, wish: Wish) -> dict[str, Any]:
    """Write `folder`; return what it is: sizes, parameters, and where the real layers stand.

    Raises:
        DraftError: The model cannot be widened so, or `folder` cannot be written.

    """
    config = _config(source)
    draft = "eagle3" in str(config.get("architectures")).lower()
    small = dims_of(config)
    if draft and config.get(_AUX, (config.get("eagle_config") or {}).get(_AUX)):
        raise DraftError(
            f"{source}: names its boundaries; only a draft of the default ones is right for a deeper target"
        )
    large = wider(small, wish._replace(layers=None) if draft else wish)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chance = torch.Generator(device).manual_seed(wish.seed)
    asked = Widening(source, small, large, wish.times, draft, device, chance)
    with appearing(folder, 0) as beside:
        parameters = _write(asked, beside)
        _copy_words(source, beside)
        write_json(beside / "config.json", _wide_config(config, asked))
        told = {
            "schema": SCHEMA,
            "made_by": "vigil draft widen",
            "version": __version__,
            "command": ["vigil", *sys.argv[1:]],
            "source": {"path": str(source)},
            "conventions": f"{wish.times} times as wide, function kept: added weights never reach what is real",
            "sizes": {"small": small._asdict(), "large": large._asdict()},
            "layers": places_of(small.layers, large.layers),
            "seed": wish.seed,
        }
        write_json(beside / NAME, told)
    return {"path": str(folder), "parameters": parameters, **told}


def _config(source: Path) -> dict[str, Any]:
    found = read_json(source / "config.json", MOST_CONFIG_BYTES)
    if not isinstance(found, dict):
        raise DraftError(f"{source}/config.json holds no table")
    return found


def _wide_config(config: dict[str, Any], asked: Widening) -> dict[str, Any]:
    wide = config_of(config, asked.times, asked.large)
    if config.get("target_hidden_size"):
        wide["target_hidden_size"] = config["target_hidden_size"] * asked.times
    return wide


def _copy_words(source: Path, folder: Path) -> None:
    """Take the tokenizer and its templates along."""
    for path in source.iterdir():
        if path.suffix in {".json", ".jinja", ".txt", ".model"} and path.name not in {"config.json", INDEX, NAME}:
            shutil.copyfile(path, folder / path.name)


def _write(asked: Widening, folder: Path) -> int:
    """Write the shards, and their index where there are several; return how many numbers they hold."""
    shards = list(_shards(asked))
    index: dict[str, str] = {}
    parameters = total = 0
    for number, names in enumerate(shards, 1):
        file = "model.safetensors" if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        tensors = {name: _tensor(asked, origin) for name, origin in names.items()}
        save_file(tensors, folder / file, metadata={"format": "pt"})
        index.update(dict.fromkeys(tensors, file))
        parameters += sum(each.numel() for each in tensors.values())
        total += sum(each.numel() * each.element_size() for each in tensors.values())
    if len(shards) > 1:
        write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": index})
    return parameters


def _shards(asked: Widening) -> Iterator[dict[str, Origin]]:
    """Yield the names of each shard, with what each is made from."""
    names = _names(asked.source)
    layers = [] if asked.draft else places_of(asked.small.layers, asked.large.layers)
    yield {name: Origin(name) for name in names if asked.draft or not name.startswith(_LAYER)}
    ends = [name.removeprefix(f"{_LAYER}0.") for name in names if name.startswith(f"{_LAYER}0.")]
    for layer, real in enumerate(layers):
        yield {f"{_LAYER}{layer}.{end}": Origin(f"{_LAYER}{real or 0}.{end}", added=real is None) for end in ends}


def _files(source: Path) -> list[Path]:
    found = sorted(source.glob("*.safetensors"))
    if not found:
        raise DraftError(f"{source} holds no safetensors file")
    return found


def _names(source: Path) -> list[str]:
    return [name for path in _files(source) for name in safe_open(path, "pt").keys()]  # noqa: SIM118 - it is no mapping


def _read(source: Path, name: str) -> torch.Tensor:
    for path in _files(source):
        with safe_open(path, "pt") as file:
            if name in file.keys():  # noqa: SIM118 - it is no mapping
                found: torch.Tensor = file.get_tensor(name)
                return found
    raise DraftError(f"{source} has no tensor {name}")


def _tensor(asked: Widening, origin: Origin) -> torch.Tensor:
    """Return one tensor of the wide model: its real block from the small one's, the rest made."""
    kind, real = kind_of(origin.name, draft=asked.draft), _read(asked.source, origin.name)
    if kind is None:
        return real
    real = real.to(asked.device)
    lengths = asked.large.names
    if kind.columns is None:
        norm = torch.zeros(lengths[kind.rows], dtype=real.dtype, device=asked.device)
        norm[: len(real)] = real / math.sqrt(asked.times)
        return norm.cpu()
    wide = _background(
        asked, kind.rows, (lengths.get(kind.rows, len(real)), lengths[kind.columns] * kind.times), real.dtype
    )
    if not origin.added:
        for begin, wide_begin, width in spans(kind, asked.small, asked.large):
            wide[: len(real), wide_begin : wide_begin + width] = real[:, begin : begin + width]
    return wide.cpu()


def _background(asked: Widening, rows: str, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """Return noughts where the residual would be written, else small numbers of chance."""
    if rows in WRITES:
        return torch.zeros(shape, dtype=dtype, device=asked.device)
    return (torch.randn(shape, generator=asked.chance, device=asked.device) * SPREAD).to(dtype)
