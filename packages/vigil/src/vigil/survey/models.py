"""What a model is, without reading it: where it lies, its commit, its small files by hash, its weights by size, time and ends."""

import hashlib
import json
import os
import re
import stat
from itertools import islice
from typing import Any, Dict, List, Optional, Tuple

from .digest import Budget, ends_sha256, read_small, whole_sha256
from .interpreter import Place

MOST_FILES = 200
MOST_ENTRIES = 20000
SMALL_BYTES = 32 << 20
CONFIG_BYTES = 1 << 20
MOST_SETTINGS = 150
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ggml", ".npz", ".msgpack", ".h5", ".onnx")
SETTINGS = (".json", ".model", ".txt", ".jinja", ".py", ".tiktoken", ".yaml", ".yml", ".toml")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?\Z")
_SNAPSHOT = re.compile(r"/models--[^/]+/snapshots/([^/]+)")
SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf\Z")
_BLOB = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")


def fingerprint(given: str, revision: Optional[str], place: Place, budget: Budget) -> Dict[str, Any]:
    """Return what is known of a model by what a flag said: a path, or a repository that lies in the cache of this host."""
    path = find(given, revision, place)
    if path is None:
        return {"given": given[:1000], "path": None}
    files = _files(path)
    commit = _SNAPSHOT.search(path)
    return {
        "given": given[:1000],
        "path": path[:1000],
        "commit": commit.group(1)[:80] if commit else None,
        "settings": {
            name: None if budget.spent else _short(whole_sha256(full, SMALL_BYTES, budget)) for name, full in files[1]
        },
        "weights": {name: _weight(full, budget) for name, full in files[0][:MOST_FILES]},
        "count": len(files[0]),
        "all": _all_of(files[0]),
        "declared": _declared(path),
    }


def find(given: str, revision: Optional[str], place: Place) -> Optional[str]:
    """Return the folder or file that a model's name leads to, or None where it is not on this host."""
    try:
        path = place.resolve(given)
        if os.path.exists(path):
            return os.path.realpath(path) if os.path.isdir(path) else path
    except (OSError, ValueError):
        return None
    name = place.fill(given).partition(":")[0]  # llama-server: repository:quantisation
    return _cached(name, revision or "main", place) if _REPOSITORY.match(name) and ".." not in name else None


def parts(path: str) -> List[str]:
    """Return the files of a split GGUF that lie beside one of them, or the one file."""
    folder, name = os.path.split(path)
    if not SPLIT.search(name):
        return [path]
    stem = SPLIT.sub("", name)
    try:
        with os.scandir(folder) as listing:
            names = sorted(entry.name for entry in islice(listing, MOST_ENTRIES))
    except OSError:
        return [path]
    return [os.path.join(folder, one) for one in names if SPLIT.search(one) and SPLIT.sub("", one) == stem]


def is_model(path: str) -> bool:
    """Tell whether a path is a model: a file of weights, or a folder with a config.json."""
    return path.endswith(WEIGHTS) if os.path.isfile(path) else os.path.isfile(os.path.join(path, "config.json"))


def _cached(name: str, revision: str, place: Place) -> Optional[str]:
    """Return the snapshot of a repository in Hugging Face's cache (huggingface_hub: constants.py, file_download.py)."""
    home = place.env.get("HF_HOME") or os.path.join(
        place.env.get("XDG_CACHE_HOME") or os.path.join(place.env.get("HOME", "/"), ".cache"), "huggingface"
    )
    hub = place.env.get("HF_HUB_CACHE") or place.env.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    folder = os.path.join(place.resolve(hub), "models--" + name.replace("/", "--"))
    if {"", ".."} & set(revision.split("/")) or "\0" in revision:
        return None
    commit = (read_small(os.path.join(folder, "refs", revision), 200) or b"").decode(
        "ascii", "replace"
    ).strip() or revision
    found = os.path.join(folder, "snapshots", commit)
    return found if "/" not in commit and commit != ".." and os.path.isdir(found) else None


def _files(path: str) -> Tuple[List[Tuple[str, str]], List[Tuple[str, str]]]:
    """Return (name, path) of the weights and of the settings of a model; of a split GGUF file all parts."""
    if not os.path.isdir(path):
        return [(os.path.basename(one), one) for one in parts(path)], []
    try:
        with os.scandir(path) as listing:
            names = sorted(entry.name for entry in islice(listing, MOST_ENTRIES))
    except OSError:
        return [], []
    weights = [(name, os.path.join(path, name)) for name in names if name.endswith(WEIGHTS)]
    return weights, [(name, os.path.join(path, name)) for name in names if name.endswith(SETTINGS)][:MOST_FILES]


def _weight(path: str, budget: Budget) -> Dict[str, Any]:
    """Return size, time and a hash of the ends; in a cache the name of the blob, which is the hash of the whole."""
    try:
        status = os.stat(path)
    except OSError as error:
        return {"size": None, "trouble": error.strerror}
    if not stat.S_ISREG(status.st_mode):
        return {"size": None, "trouble": "no regular file"}
    blob = os.path.basename(os.path.realpath(path))
    told: Dict[str, Any] = {"size": status.st_size, "mtime": int(status.st_mtime)}
    if os.path.islink(path) and _BLOB.match(blob):
        return {**told, "blob": blob[:16]}
    if not budget.spent:
        ends = ends_sha256(path)
        budget.left_bytes -= min(status.st_size, 128 << 10)
        told["ends"] = ends[:16] if ends else None
    return told


def _all_of(files: List[Tuple[str, str]]) -> str:
    """Return one hash over the names, sizes and times of all weights, however many there are."""
    found = hashlib.sha256()
    for name, path in files:
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.update(("%s\0%d\0%d\n" % (name, status.st_size, int(status.st_mtime))).encode("utf-8", "surrogateescape"))
    return found.hexdigest()[:16]


def _declared(path: str) -> Dict[str, str]:
    """Return the plain values of config.json, those of its parts as `part.name`: a difference then names what differs."""
    try:
        config = json.loads(read_small(os.path.join(path, "config.json"), CONFIG_BYTES) or b"")
    except (ValueError, RecursionError):
        return {}
    found: Dict[str, str] = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for part, inner in parts:
            if len(found) < MOST_SETTINGS:
                found[("%s.%s" % (name, part) if part else name)[:100]] = json.dumps(inner)[:100]
    return found


def _short(digest: Optional[bytes]) -> Optional[str]:
    return digest.hex()[:16] if digest else None
