"""Text that came from elsewhere, made safe to show: nothing in it can move or colour the terminal, or give a secret away."""

import json
import re
from typing import Any

import msgspec

from vigil.observer.redact import Redactor

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_REDACTOR = Redactor()  # one reading of what a secret looks like, here and beside the server


def plain(text: str, limit: int = 2000) -> str:
    """Return `text` without ANSI sequences, with control characters spelled out, cut at `limit` characters."""
    text = _ANSI.sub("", text[: limit * 4])
    text = _CONTROL.sub(_spelled, text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004


def plain_json(text: str) -> str:
    """Return JSON with the characters that a terminal would obey escaped, as JSON itself writes them."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_of(value: Any) -> str:
    """Return a value of ours as JSON, safe to print: a path that is no UTF-8 keeps its bytes, escaped, where msgspec ends."""
    return plain_json(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":")))


def hide_secrets(text: str) -> str:
    """Return `text` with what looks like a key or a token replaced by `***`."""
    return _REDACTOR.clean(text)


def hide_in_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line with the values of secret flags (`--api-key X`, `--api-key=X`, `HF_TOKEN=X`) replaced."""
    return _REDACTOR.clean_argv(words)


def duration(seconds: float) -> str:
    """Return seconds in words that fit a status line: `0.4 s`, `12.3 s`, `2 min 5 s`, `1 h 4 min`."""
    if seconds < 100:  # noqa: PLR2004 - two significant parts are enough from here on
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 100:  # noqa: PLR2004
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def ago(seconds: float) -> str:
    """Return in one word pair how long ago something was: `40 s ago`, `5 min ago`, `3 h ago`, `2 days ago`."""
    if seconds < 100:  # noqa: PLR2004
        return f"{max(0.0, seconds):.0f} s ago"
    minutes = int(seconds / 60)
    if minutes < 100:  # noqa: PLR2004
        return f"{minutes} min ago"
    hours = round(seconds / 3600)
    return f"{hours} h ago" if hours < 48 else f"{round(seconds / 86400)} days ago"  # noqa: PLR2004


def size(count: int | None) -> str:
    """Return a number of bytes for people: `135 bytes`, `4.9 GiB`; `?` where it is not known."""
    if count is None:
        return "?"
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1024 and len(units) > 1:  # noqa: PLR2004
        value, units = value / 1024, units[1:]
    return f"{count} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"
