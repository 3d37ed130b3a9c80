"""See the tokens of a draft beside its target's: which ids stand for other tokens. No tokenizer is made, only its file is read.

Of a folder that is tokenizer.json (its vocabulary and its added tokens), else vocab.json; of a GGUF file its list of tokens.
"""

import hashlib
import json
import os
import re
from typing import Any, Dict, List, Optional

from . import gguf
from .pieces import Shape, integer_of, piece, plain, shape_of
from .remembered import Remembered

FILES = ("tokenizer.json", "vocab.json")
LARGEST = 48 << 20
MOST_TOKENS = 1_000_000  # four times as many as any model had by 2026
SHOWN_CHARS = 40
# llama.cpp b11434 compares from here on: the first tokens are special ones, which families name as they like.
FIRST_COMPARED = 5
_DRAFT = re.compile(r"-+(?:speculative|spec|draft|model-draft|md|sc|hfr?d|hf-repo-draft)\b")
_VOCABULARY = re.compile(r'"vocab"\s*:\s*(?=[\[{])')
_ADDED = re.compile(r'"added_tokens"\s*:\s*(?=\[)')
_DECODER = json.JSONDecoder(parse_int=integer_of, parse_constant=lambda _: None)
Tokens = Dict[int, str]


def see(models: List[Dict[str, Any]]) -> None:
    """Put beside each draft how its tokens differ from the served model's, as a `TokensSeen`, where both can be read."""
    served = next((one for one in models if one["what"] == "model" and one.get("path")), None)
    for one in models:
        if served is not None and one.get("path") and _DRAFT.match(one["what"]):
            pair = _pair(served, one)
            one["tokens"] = _remembered(*pair) if pair is not None else None


def _pair(served: Dict[str, Any], draft: Dict[str, Any]) -> "Optional[tuple[str, str]]":
    """Return the two files that hold the tokens, None where one has none, or they are of two kinds."""
    if served["path"] == draft["path"]:
        return None
    if served["kind"] == "file" and draft["kind"] == "file":
        paths = (served["path"], draft["path"])
        return paths if all(path.endswith(".gguf") for path in paths) else None
    for name in FILES:
        paths = (os.path.join(served["path"], name), os.path.join(draft["path"], name))
        if all(os.path.isfile(path) for path in paths):
            return paths
    return None


def _remembered(target: str, draft: str) -> Optional[Dict[str, Any]]:
    shapes = shape_of(target), shape_of(draft)
    if shapes[0] is None or shapes[1] is None:
        return None
    both = Shape(shapes[0].size << 50 | shapes[1].size, shapes[0].mtime_ns ^ shapes[1].mtime_ns << 1, regular=True)
    memory = Remembered(target + "\0" + draft)
    known = memory.recall("tokens", both)
    if known is None:
        known = _compared(target, draft, shapes[0], shapes[1])
        memory.keep("tokens", both, known)
        memory.save()
    return dict(known)


def _compared(target: str, draft: str, target_shape: Shape, draft_shape: Shape) -> Dict[str, Any]:
    told: Dict[str, Any] = {"what": plain(os.path.basename(draft)) if draft.endswith(".json") else "gguf"}
    if told["what"] != "gguf" and target_shape.size == draft_shape.size and _sha256(target) == _sha256(draft):
        return {**told, "same_file": True}
    try:
        tokens = [_tokens(path, shape.size) for path, shape in ((target, target_shape), (draft, draft_shape))]
    except (ValueError, RecursionError) as error:
        return {**told, "trouble": plain(str(error))[:200] or "it is nested too deeply"}
    first = FIRST_COMPARED if told["what"] == "gguf" else 0
    return {**told, **_differences(tokens[0], tokens[1], first)}


def _differences(target: Tokens, draft: Tokens, first: int) -> Dict[str, Any]:
    both = [one for one in draft if one in target and one >= first]
    different = sorted(one for one in both if draft[one] != target[one])
    found: Dict[str, Any] = {"target": len(target), "draft": len(draft)}
    found.update(compared=len(both), different=len(different))
    if different:
        one = different[0]
        found.update(first=one, first_target=_short(target[one]), first_draft=_short(draft[one]))
    return found


def _short(token: str) -> str:
    return plain(token)[:SHOWN_CHARS]


def _sha256(path: str) -> bytes:
    return hashlib.sha256(piece(path, 0, LARGEST) or b"").digest()


def _tokens(path: str, size: int) -> Tokens:
    """Return the tokens by id; raises ValueError in words where they cannot be read."""
    name = os.path.basename(path)
    if path.endswith(".gguf"):
        listed = gguf.tokens(path, size)
        if listed is None or len(listed) > MOST_TOKENS:
            raise ValueError("%s: its tokens cannot be read" % name)
        return {at: one.decode("utf-8", "replace") for at, one in enumerate(listed)}
    if size > LARGEST:
        raise ValueError("%s has %d bytes, and was not read" % (name, size))
    text = (piece(path, 0, LARGEST) or b"").decode("utf-8", "replace")
    if name == "vocab.json":
        return _by_id(_value_at(text, 0, name))
    found = _VOCABULARY.search(text)
    if found is None:
        raise ValueError("%s has no vocabulary" % name)
    tokens = _by_id(_value_at(text, found.end(), name))
    added = _ADDED.search(text)
    for one in _value_at(text, added.end(), name) if added is not None else []:
        if isinstance(one, dict) and type(one.get("id")) is int and isinstance(one.get("content"), str):
            tokens[one["id"]] = one["content"]
    return tokens


def _value_at(text: str, at: int, name: str) -> Any:
    try:
        return _DECODER.raw_decode(text, at)[0]
    except ValueError:
        raise ValueError("%s is no JSON" % name) from None


def _by_id(vocabulary: Any) -> Tokens:
    """Return the tokens of a vocabulary: {token: id} (BPE, WordPiece), or [[token, score], ...] in order (Unigram)."""
    if isinstance(vocabulary, dict) and len(vocabulary) <= MOST_TOKENS:
        return {number: token for token, number in vocabulary.items() if type(number) is int}
    if isinstance(vocabulary, list) and len(vocabulary) <= MOST_TOKENS:
        return {
            at: one[0] for at, one in enumerate(vocabulary) if isinstance(one, list) and one and isinstance(one[0], str)
        }
    raise ValueError("its vocabulary has another form")
