"""Read the folder of a model: its config as it stands there, and where each tensor's bytes lie. Hostile files get one line."""

from pathlib import Path
from typing import Any

import msgspec

from vigil.scout import headers, shards
from vigil.scout.pieces import parsed, piece, shape_of
from vigil.screen import plain
from vigil_draft.errors import DraftError, NotADraftError

CONFIG_BYTES = 1 << 20
INDEX_BYTES = 32 << 20
MOST_FILES = 1000
SHOWN = 3


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor in a file: its bytes lie from `begin` to `end`."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.begin


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A model's folder. `config` is whole, as the file has it."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, Stored]


def read_folder(path: Path) -> Folder:
    """Read the config and the headers of a folder; the data of no tensor, and no pickle.

    Raises:
        NotADraftError: It is no folder of a model, or holds pickles alone.
        DraftError: A file in it is broken; the text says which and how.

    """
    if not path.is_dir():
        raise NotADraftError(f"{plain(str(path), 200)} is no folder: name the one that holds config.json")
    config = _config(path)
    found: dict[str, Stored] = {}
    for name in _files(path):
        for tensor, one in _header(path / name).items():
            if tensor in found:
                raise DraftError(f"{plain(tensor, 80)} stands in two files of {plain(str(path), 200)}")
            found[tensor] = one
    return Folder(path=path, config=config, tensors=found)


def read_json(path: Path, most_bytes: int) -> Any:
    """Return what a JSON file of others says.

    Raises:
        DraftError: It cannot be read, is longer than `most_bytes`, or is no JSON.

    """
    shown = plain(str(path), 200)
    shape = shape_of(str(path))
    if shape is None or not shape.regular:
        raise NotADraftError(f"{plain(str(path.parent), 200)} has no {path.name}: it is no model")
    if shape.size > most_bytes:
        raise DraftError(f"{shown} has {shape.size} bytes, and was not read")
    data = piece(str(path), 0, most_bytes)
    if data is None:
        raise DraftError(f"{shown} cannot be read")
    try:
        return parsed(data)
    except ValueError as error:
        raise DraftError(f"{shown} cannot be read: {plain(str(error), 200)}") from error


def _config(path: Path) -> dict[str, Any]:
    told = read_json(path / "config.json", CONFIG_BYTES)
    if not isinstance(told, dict):
        raise DraftError(f"{plain(str(path / 'config.json'), 200)} is no JSON object")
    return told


def _files(path: Path) -> list[str]:
    """Return the files of weights that an index names, else those that are there."""
    names = shards.listing_of(str(path)).names
    index = next((one for one in names if one.endswith(".safetensors.index.json")), None)
    if index is not None:
        told = read_json(path / index, INDEX_BYTES)
        places = told.get("weight_map") if isinstance(told, dict) else None
        wanted = sorted({one for one in places.values() if isinstance(one, str)}) if isinstance(places, dict) else []
        missing = [one for one in wanted if one not in names]
        if missing:
            raise DraftError(f"{plain(str(path), 200)} lacks files that {index} names: {_some(missing)}")
        if wanted:
            return wanted[:MOST_FILES]
    found = [one for one in names if one.endswith(".safetensors")]
    if not found:
        pickles = [one for one in names if one.endswith(shards.PICKLES)]
        what = (
            f"holds pickles alone ({_some(pickles)}): they are never loaded" if pickles else "has no safetensors files"
        )
        raise NotADraftError(f"{plain(str(path), 200)} {what}")
    return found[:MOST_FILES]


def _some(names: list[str]) -> str:
    return ", ".join(plain(one, 80) for one in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def _header(path: Path) -> dict[str, Stored]:
    shape = shape_of(str(path))
    shown = plain(str(path), 200)
    if shape is None or not shape.regular:
        raise DraftError(f"{shown} cannot be read: it is no file")
    header = headers.read(str(path), shape.size)
    if header.trouble is not None:
        raise DraftError(f"{shown} cannot be loaded: {header.trouble or 'its header is too long to be read'}")
    return {
        name: Stored(path=str(path), dtype=one.dtype, shape=one.shape, begin=one.begin, end=one.end)
        for name, one in header.tensors.items()
    }
