"""See the files of weights of one model: which are there, which their index wants, and whether each is whole."""

import os
import struct
import time
from itertools import islice
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import gguf, headers
from .pieces import Shape, parsed, piece, plain, shape_of
from .remembered import Remembered

MOST_ENTRIES = 20_000
MOST_FILES = 1000
MOST_TENSORS = 4000
MOST_SHARED = 400  # tensors of one file that are passed on
MOST_NAMED = 20
INDEX_BYTES = 32 << 20
LOOK_S = 0.4  # without `deep`
DEEP_S = 30.0
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".msgpack")
_INDEX = "model.safetensors.index.json"


class Want(NamedTuple):
    """What is asked of a model: all tensors by name (of a draft), and time for every file of a large one."""

    tensors: bool
    deep: bool


class Listing(NamedTuple):
    """The names in a folder. `more`: it holds more than were read."""

    names: List[str]
    more: bool


def listing_of(folder: str) -> Listing:
    """Return the names in a folder, of a huge one the first that the system gives."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, MOST_ENTRIES + 1)]
    except OSError:
        return Listing([], more=False)
    return Listing(sorted(names[:MOST_ENTRIES]), len(names) > MOST_ENTRIES)


def see(folder: str, names: List[str], memory: Remembered, want: Want) -> Dict[str, Any]:
    """Return the weights in a folder: a list of files, its index, and where they are wanted all tensors of a small model."""
    index = index_of(folder, names, memory)
    wanted = set(index["shards"]) if index is not None and index["trouble"] is None else set()
    files = [name for name in names if name.endswith((".safetensors", ".gguf"))]
    if wanted & set(files):
        files = [name for name in files if name in wanted or name.endswith(".gguf")]
    look = _Look(memory, DEEP_S if want.deep else LOOK_S)
    seen = [look.at(folder, name) for name in _smallest_first(folder, files)[:MOST_FILES]]
    found: Dict[str, Any] = {
        "files": sorted((told for told, _ in seen), key=lambda one: str(one["name"])),
        "pickles": [plain(name) for name in names if name.endswith(PICKLES)][:MOST_NAMED],
        "index": None if index is None else _told(index, wanted, names),
        "weights_bytes": sum(told["size_bytes"] for told, _ in seen),
        "unread": sum(not told["read"] for told, _ in seen),
    }
    if want.tensors:
        found["tensors"] = _tensors([tensors for _, tensors in seen])
    return found


def index_of(folder: str, names: List[str], memory: Remembered) -> Optional[Dict[str, Any]]:
    """Return the shards that an index names, None where there is no index."""
    name = next((one for one in (_INDEX, "model.safetensors.index.fp32.json") if one in names), None)
    name = name or next((one for one in names if one.endswith(".safetensors.index.json")), None)
    path = os.path.join(folder, name or "")
    shape = shape_of(path) if name else None
    if name is None or shape is None:
        return None
    known = memory.recall(name, shape)
    if known is None:
        known = {"name": plain(name), **_read_index(path, shape)}
        memory.keep(name, shape, known)
    return dict(known)


def _read_index(path: str, shape: Shape) -> Dict[str, Any]:
    if not shape.regular or shape.size > INDEX_BYTES:
        return {"shards": [], "tensors": 0, "trouble": "it has %d bytes, and was not read" % shape.size}
    try:
        told = parsed(piece(path, 0, INDEX_BYTES) or b"")
    except ValueError as error:
        return {"shards": [], "tensors": 0, "trouble": plain(str(error))[:200]}
    places = told.get("weight_map") if isinstance(told, dict) else None
    if not isinstance(places, dict):
        return {"shards": [], "tensors": 0, "trouble": "it has no weight_map"}
    shards = sorted({plain(one) for one in places.values() if isinstance(one, str)})
    return {"shards": shards[:MOST_FILES], "tensors": len(places), "trouble": None}


def _told(index: Dict[str, Any], wanted: "set[str]", names: List[str]) -> Dict[str, Any]:
    missing = sorted(wanted - set(names))
    told = {name: index[name] for name in ("name", "tensors", "trouble")}
    return {**told, "shards": len(index["shards"]), "missing": missing[:MOST_NAMED], "missing_count": len(missing)}


def _smallest_first(folder: str, names: List[str]) -> List[str]:
    """Return names by size: a file that is cut off is smaller than its like, and is then read while there is time."""
    sizes = {}
    for name in names:
        shape = shape_of(os.path.join(folder, name))
        sizes[name] = shape.size if shape is not None else -1
    return sorted(names, key=lambda name: (sizes[name], name))


class _Look:
    """A look at the heads of files for some seconds. Invariant: after those only what is remembered is told."""

    def __init__(self, memory: Remembered, seconds: float) -> None:
        self._memory, self._until_s = memory, time.monotonic() + seconds

    def at(self, folder: str, name: str) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Return what was seen of a file, and its tensors."""
        path = os.path.join(folder, name)
        shape = shape_of(path)
        told: Dict[str, Any] = {"name": plain(name), "size_bytes": shape.size if shape is not None else 0, "read": True}
        if shape is None or not shape.regular:
            return {**told, "trouble": "its link leads nowhere" if shape is None else "it is no file"}, {}
        known = self._memory.recall(name, shape)
        if known is None and time.monotonic() >= self._until_s:
            return {**told, "read": False}, {}
        if known is None:
            known = _gguf(path, shape.size) if name.endswith(".gguf") else _safetensors(path, shape.size)
            self._memory.keep(name, shape, known)
        return {**told, **known["file"]}, known["tensors"]


def _safetensors(path: str, size: int) -> Dict[str, Any]:
    header = headers.read(path, size)
    tensors = {}
    if len(header.tensors) <= MOST_TENSORS:
        tensors = {name: [one.dtype, list(one.shape)] for name, one in header.tensors.items()}
        maps = {
            name: _numbers(path, one) for name, one in header.tensors.items() if name.split(".")[-1] in ("d2t", "t2d")
        }
    else:
        maps = {}
    told = {"tensors": len(header.tensors), "wanted_bytes": header.wanted_bytes, "trouble": header.trouble or None}
    return {
        "file": {**told, "read": header.trouble != "", "maps": maps},
        "tensors": tensors if len(tensors) <= MOST_SHARED else {},
    }


def _gguf(path: str, size: int) -> Dict[str, Any]:
    head = gguf.read(path, size)
    told = {"tensors": head.tensors, "wanted_bytes": head.wanted_bytes, "trouble": head.trouble or None}
    about = {"version": head.version, "metadata": head.metadata, "lengths": head.lengths}
    return {"file": {**told, "read": head.trouble != "", "gguf": about if head.version else None}, "tensors": {}}


def _numbers(path: str, tensor: headers.Tensor) -> Dict[str, Any]:
    """Return what the numbers of a vocabulary map span: as they are, and as offsets from their places."""
    told: Dict[str, Any] = {"dtype": tensor.dtype, "shape": list(tensor.shape)}
    form = {"I64": "q", "I32": "i", "BOOL": "?", "U8": "B"}.get(tensor.dtype)
    length = tensor.shape[0] if len(tensor.shape) == 1 else 0
    if form is None or not 0 < length <= 1 << 20:
        return told
    data = piece(path, tensor.begin, tensor.end - tensor.begin) or b""
    if len(data) != length * struct.calcsize(form):
        return told
    values = [int(one) for one in struct.unpack("<%d%s" % (length, form), data)]
    moved = [place + one for place, one in enumerate(values)]
    told.update(lowest=min(values), highest=max(values), total=sum(values))
    return {**told, "lowest_moved": min(moved), "highest_moved": max(moved), "different": len(set(moved))}


def _tensors(parts: List[Dict[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for part in parts:
        for name, (dtype, shape) in part.items():
            if len(found) < MOST_TENSORS:
                found[name] = {"dtype": dtype, "shape": shape}
    return found
