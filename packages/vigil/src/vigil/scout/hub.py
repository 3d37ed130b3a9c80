"""See what stands between a command and Hugging Face's hub: what its cache holds of a repository, and whether it may be asked.

Rules of huggingface_hub 0.34 to 2.4 (constants.py, utils/_auth.py, file_download.py). No request is made, and no token is read.
"""

import os
import re
from typing import Any, Dict, List, Mapping, Optional

from ..observer.redact import Redactor
from ..survey.interpreter import Place
from .pieces import piece, plain, shape_of
from .shards import listing_of

MOST_SHOWN = 8
REF_BYTES = 200
CARD_BYTES = 8192
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_TRUE = {"1", "ON", "YES", "TRUE"}
_OFF = {"", "0", "false", "no", "off"}
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_GATED = re.compile(rb"^extra_gated_\w+\s*:", re.MULTILINE)


def see(place: Place, name: str, revision: Optional[str]) -> Dict[str, Any]:
    """Return what is known of a repository, as a `HubSeen`."""
    folder = cache_of(place)
    return {
        "modelscope": _on(place, "VLLM_USE_MODELSCOPE") or _on(place, "SGLANG_USE_MODELSCOPE"),
        "endpoint": _endpoint(place),
        "offline": offline(place.env),
        "token": has_token(place.env),
        "implicit": not is_true(place.env.get("HF_HUB_DISABLE_IMPLICIT_TOKEN")),
        "folder": plain(folder),
        "writable": _writable(folder),
        **_cached(os.path.join(folder, "models--" + name.partition(":")[0].replace("/", "--")), revision or "main"),
    }


def cache_of(place: Place) -> str:
    """Return the folder of the cache."""
    named = place.env.get("HF_HUB_CACHE") or place.env.get("HUGGINGFACE_HUB_CACHE")
    return place.resolve(named or os.path.join(_home(place.env), "hub"))


def _home(env: Mapping[str, str]) -> str:
    own = env.get("XDG_CACHE_HOME") or os.path.join(env.get("HOME", "/"), ".cache")
    return env.get("HF_HOME") or os.path.join(own, "huggingface")


def is_true(value: Optional[str]) -> bool:
    """Tell whether the hub's client takes a value for true."""
    return (value or "").upper() in _TRUE


def offline(env: Mapping[str, str]) -> Optional[str]:
    """Return the variable that forbids the hub, None where it may be asked: the second counts only where the first is empty."""
    name = "HF_HUB_OFFLINE" if env.get("HF_HUB_OFFLINE") else "TRANSFORMERS_OFFLINE"
    return "%s=%s" % (name, env[name][:20]) if is_true(env.get(name)) else None


def has_token(env: Mapping[str, str]) -> bool:
    """Tell whether a token is there: in the environment, from an identity provider, or as `hf auth login` leaves it."""
    if any(env.get(name, "").strip() for name in (*TOKENS, "HF_OIDC_RESOURCE")):
        return True
    try:
        return os.path.getsize(os.path.expanduser(env.get("HF_TOKEN_PATH") or os.path.join(_home(env), "token"))) > 0
    except (OSError, ValueError):
        return False


def _endpoint(place: Place) -> Optional[str]:
    told = place.env.get("HF_ENDPOINT")
    return plain(Redactor().clean(told))[:200] if told else None


def _on(place: Place, name: str) -> bool:
    return place.env.get(name, "").strip().lower() not in _OFF


def _writable(folder: str) -> Optional[bool]:
    """Tell whether a folder could be written to, or made; None where that is not to be told."""
    for _ in range(40):
        if os.path.lexists(folder):
            return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
        folder = os.path.dirname(folder)
    return None


def _cached(folder: str, revision: str) -> Dict[str, Any]:
    """Return what the cache holds: the commit that the revision names, the snapshots, and downloads that did not end."""
    commit = _commit(folder, revision)
    there = [one for one in listing_of(os.path.join(folder, "snapshots")).names if _COMMIT.match(one)]
    blobs = os.path.join(folder, "blobs")
    begun = [one for one in listing_of(blobs).names if one.endswith(".incomplete")]
    shapes = [shape_of(os.path.join(blobs, one)) for one in begun[:1000]]
    return {
        "begun": os.path.isdir(folder),
        "commit": commit,
        "snapshots": _whole(folder, there),
        "incomplete": len(begun),
        "incomplete_bytes": sum(one.size for one in shapes if one is not None),
        "gated": _gated(folder, there),
    }


def _commit(folder: str, revision: str) -> Optional[str]:
    if {"", ".", ".."} & set(revision.split("/")) or "\0" in revision:
        return None
    text = (piece(os.path.join(folder, "refs", revision), 0, REF_BYTES) or b"").decode("ascii", "replace").strip()
    return plain(text)[:80] or None


def _whole(folder: str, snapshots: List[str]) -> List[str]:
    """Return the snapshots that have a config."""
    there = (os.path.join(folder, "snapshots", one) for one in snapshots)
    return [os.path.basename(one) for one in there if os.path.isfile(os.path.join(one, "config.json"))][:MOST_SHOWN]


def _gated(folder: str, snapshots: List[str]) -> bool:
    """Tell whether a model card in the cache asks for consent before a download."""
    cards = (os.path.join(folder, "snapshots", one, "README.md") for one in snapshots[:MOST_SHOWN])
    heads = ((piece(one, 0, CARD_BYTES) or b"").split(b"\n---", 1)[0] for one in cards)
    return any(_GATED.search(one) for one in heads)
