"""A server's own account of its arguments, over HTTP; and settings from anywhere, flat, bounded and without secrets."""

import json
from typing import Any, Dict, Iterable, Optional

from .exchange import Target, exchange
from .named import MASK
from .redact import Redactor, is_secret_name

INFO_S = 5.0
INFO_BYTES = 4 << 20
MOST_VALUES = 2000
VALUE_CHARS = 400
DEEPEST = 4
LARGEST = 1 << 63  # what JSON's readers take for a number


def account(target: Target, key: Optional[str], paths: Iterable[str], redactor: Redactor) -> Dict[str, Any]:
    """Return what the first of `paths` that answers says of the server's arguments; else why none did."""
    errors = []
    for path in paths:
        reply = exchange(target, "GET", path, INFO_S, key=key, limit=INFO_BYTES)
        if reply.status != 200:  # noqa: PLR2004
            errors.append("%s: %s" % (path, reply.status or reply.error))
            continue
        try:
            told = json.loads(reply.body)
        except (ValueError, RecursionError):
            told = None
        if isinstance(told, dict):
            return {"source": path, "values": flat(told, redactor)}
        errors.append("%s: no JSON object" % path)
    return {"source": "", "values": {}, "error": ", ".join(errors)}


def flat(values: Any, redactor: Redactor, before: str = "", depth: int = 0) -> Dict[str, Any]:
    """Return nested values under dotted names, without secrets and strange things."""
    found: Dict[str, Any] = {}
    for name, value in list(values.items())[:MOST_VALUES]:
        whole = before + str(name)[:200]
        if is_secret_name(str(name)) and value not in (None, "", False):
            found[whole] = MASK
        elif isinstance(value, dict) and value and depth < DEEPEST:
            found.update(flat(value, redactor, whole + ".", depth + 1))
        else:
            found[whole] = _shown(value, redactor)
        if len(found) >= MOST_VALUES:
            break
    return dict(list(found.items())[:MOST_VALUES])


def _shown(value: Any, redactor: Redactor) -> Any:
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < LARGEST):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return redactor.clean(text.encode("utf-8", "replace").decode())[:VALUE_CHARS]
