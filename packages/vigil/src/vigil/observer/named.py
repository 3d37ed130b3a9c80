"""Mask the value of whatever a text calls a secret: `api_key='X'`, `--api-key X`, `WANDB_API_KEY=X`, `"password": "X"`.

Lines are hostile and this runs on each of them, so it goes over a text once: names are found by their words, and what follows
a name is cut out by looking for its end. No pattern here can run on and come back with nothing.
"""

import re
from typing import List, Optional, Tuple

MASK = "***"
MOST_NAMES = 200  # no honest line names more secrets: from there on nothing is shown
_FLAG_CHARS = 64

LOGIN_WORD = r"(?:hf|auth|access|bearer|refresh|api|secret)[_-]?token"
_find_word = re.compile(
    rf"api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|{LOGIN_WORD}|password|passwd|secret|credential"
).search
_find_capital = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL").search
_rest_of_name = re.compile(r"[\w.\-]*").match
_rest_of_capitals = re.compile(r"[A-Z0-9_]*").match
_assigns = re.compile(r"(\\?[\"']?)\s{0,4}[:=]\s{0,4}(\\?)").match
_assigns_plainly = re.compile(r"\s?[=:]\s?[\"']?").match
_gap = re.compile(r"\s{1,4}(?!-)").match
_bare = re.compile(r"(?i)(?!(?:none|null|true|false)\b|[*])[^\s,;\"'&\])}]+").match
_word_of_shell = re.compile(r"[^\s,;\"'\])]+").match
_long_bare = re.compile(r"[^\s,;\"'&\])}]{8,}").match
_is_shown = re.compile(r"/|[-+.\d]+(?:\s|\Z)").match  # a path or a number
_only_name_chars = re.compile(r"[\w.\-]*\Z").match
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

Span = Tuple[int, int]


def mask_named(text: str) -> str:
    """Return `text` with the values masked that follow a name like `api_key`, in any case."""
    lower = text.lower()
    if len(lower) != len(text):  # some letters become two
        lower = text.translate(_ASCII_LOWER)
    spans: List[Span] = []
    at = 0
    for _ in range(MOST_NAMES):
        word = _find_word(lower, at)
        if word is None:
            return _masked(text, spans)
        at = _end(_rest_of_name(text, word.end()), word.end())
        span = _value(text, word.start(), at)
        if span is not None:
            spans.append(span)
            at = span[1]
    return _masked(text, [*spans, (at, len(text))])


def mask_variables(text: str) -> str:
    """Return `text` with the values masked of variables like `GITHUB_TOKEN`, as in a shell or an environment."""
    spans: List[Span] = []
    at = 0
    for _ in range(MOST_NAMES):
        word = _find_capital(text, at)
        if word is None:
            return _masked(text, spans)
        at = _end(_rest_of_capitals(text, word.end()), word.end())
        inside = word.start() > 0 and text[word.start() - 1].islower()
        sign = None if inside or "TOKENIZ" in text[word.start() : at] else _assigns_plainly(text, at)
        value = _long_bare(text, sign.end()) if sign and not _is_shown(text, sign.end()) else None
        if value is not None:
            spans.append(value.span())
            at = value.end()
    return _masked(text, [*spans, (at, len(text))])


def _end(found: "Optional[re.Match[str]]", otherwise: int) -> int:
    return found.end() if found is not None else otherwise


def _value(text: str, begin: int, end: int) -> Optional[Span]:
    """Return where the value of the name `text[begin:end]` stands, or None where it has none to hide."""
    sign = _assigns(text, end)
    if sign is None:
        gap = _gap(text, end) if _is_flag(text, begin) else None
        return _argument(text, gap.end()) if gap else None
    at = sign.end()
    opening = text[at : at + 1]
    if opening == "[":
        return _until(text, at + 1, "]")
    if opening and opening in "\"'":
        return _until(text, at + 1, opening)
    if sign.group(1) or sign.group(2):  # a quoted name before a bare value: JSON's numbers and words
        return None
    bare = _bare(text, at)
    return bare.span() if bare else None


def _argument(text: str, at: int) -> Optional[Span]:
    """Return where the argument of a flag stands."""
    opening = text[at : at + 1]
    if opening and opening in "\"'":
        return _until(text, at + 1, opening)
    word = _word_of_shell(text, at)
    return word.span() if word else None


def _until(text: str, begin: int, closing: str) -> Optional[Span]:
    """Return the span up to `closing`, or to the end of a line that was cut before it."""
    end = text.find(closing, begin)
    end = len(text) if end < 0 else end
    return (begin, end) if end > begin else None


def _is_flag(text: str, begin: int) -> bool:
    """Say whether the name around `begin` is written as a flag: `--hf-token`."""
    if text[begin - 1 : begin] == "-" and text[begin - 2 : begin] == "--":
        return True
    before = text[max(0, begin - _FLAG_CHARS) : begin]
    dashes = before.rfind("--")
    return dashes >= 0 and _only_name_chars(before, dashes) is not None


def _masked(text: str, spans: List[Span]) -> str:
    parts: List[str] = []
    done = 0
    for begin, end in spans:
        if begin < end:
            parts += (text[done:begin], MASK)
            done = end
    return "".join((*parts, text[done:]))
