"""Text that came from elsewhere, made safe to show: nothing in it can move or colour the terminal, or give a secret away."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_SECRET_NAME = r"[A-Za-z0-9_.-]*(?:api[_-]?key|token|secret|password|passwd|credential)s?"  # noqa: S105 - a pattern, not a secret
_SECRET_ASSIGNED = re.compile(rf"(?i)\b({_SECRET_NAME})(['\"]?\s*[=:]\s*['\"]?|\s+)([^\s'\",}}]{{6,}})")
_SECRET_SHAPES = re.compile(r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|AKIA[0-9A-Z]{12,})|(?<=Bearer )\S+")
SECRET_FLAG = re.compile(rf"(?i)^--?{_SECRET_NAME}$")
HIDDEN = "***"


def plain(text: str, limit: int = 2000) -> str:
    """Return `text` without ANSI sequences, with control characters spelled out, cut at `limit` characters."""
    text = _ANSI.sub("", text[: limit * 4])
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def hide_secrets(text: str) -> str:
    """Return `text` with what looks like a key or a token replaced by `***`."""
    text = _SECRET_SHAPES.sub(HIDDEN, text)
    return _SECRET_ASSIGNED.sub(_hide_assigned, text)


def _hide_assigned(found: re.Match[str]) -> str:
    value = found[3]
    is_number_or_name = value.isdigit() or value.lower() in {"false", "true", "none", "null"}
    between_words = found[2].isspace() and not found[1].startswith("-")
    return found[0] if is_number_or_name or between_words else f"{found[1]}{found[2]}{HIDDEN}"


def hide_in_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line with the values of secret flags (`--api-key X`, `--api-key=X`, `HF_TOKEN=X`) replaced."""
    shown: list[str] = []
    for word in words:
        before = shown[-1] if shown else ""
        if SECRET_FLAG.match(before) and not word.startswith("--"):
            shown.append(HIDDEN)
            continue
        name, equals, _ = word.partition("=")
        is_secret = equals and (SECRET_FLAG.match(name) or SECRET_FLAG.match(f"--{name}"))
        shown.append(f"{name}={HIDDEN}" if is_secret else hide_secrets(word))
    return tuple(shown)


def duration(seconds: float) -> str:
    """Return seconds in words that fit a status line: `0.4 s`, `12.3 s`, `2 min 5 s`, `1 h 4 min`."""
    if seconds < 100:  # noqa: PLR2004 - two significant parts are enough from here on
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 100:  # noqa: PLR2004
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
