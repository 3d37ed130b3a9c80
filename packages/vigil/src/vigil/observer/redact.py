"""Take secrets out of everything that is reported: those we know by value, and what looks like one."""

import re
from typing import FrozenSet, Iterable, List, Sequence, Tuple

from .named import LOGIN_WORD, MASK, mask_named, mask_variables

SHORTEST_VALUE = 8
SHORTEST_FLAG_VALUE = 5  # a shorter one is masked where its flag stands; replacing it everywhere would eat the log

_NAME = re.compile(r"(?i)key|token|secret|passw|credential")
_NOT_NAME = re.compile(r"(?i)tokeniz|tokens|keyword|keepalive|monkey")
_PLAIN_VALUE = re.compile(r"(?i)(?:none|null|true|false|auto|empty|[-+.\d]+|(?:~|\.{0,2})/[\w.\-]+(?:/[\w.\-]+)*/?)\Z")

# What looks like a secret wherever it stands, by the texts of which one must be there. No part of a pattern may run on and come
# back with nothing: lines are hostile, and this runs on each of them.
_SHAPES: Tuple[Tuple[Tuple[str, ...], "re.Pattern[str]", str], ...] = (
    (
        ("bearer ", "basic "),
        re.compile(r"(?i)(\b(?:bearer|basic)\s{1,4})(?!auth|token|scheme)[A-Za-z0-9._~+/=\-]{6,}"),
        rf"\1{MASK}",
    ),
    (("://",), re.compile(r"(://[^/\s:@]{0,256}:)[^/\s@]+(?=@)"), rf"\1{MASK}"),
    (("hf_",), re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}"), MASK),
    (("sk-",), re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_\-]{8,}"), MASK),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{16,}"), MASK),
    (("akia", "asia"), re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"), MASK),
    (("github_pat_",), re.compile(r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}"), MASK),
    (("glpat-", "nvapi-"), re.compile(r"(?<![A-Za-z0-9])(?:glpat|nvapi)-[A-Za-z0-9_\-]{16,}"), MASK),
    (("xox",), re.compile(r"(?<![A-Za-z0-9])xox[abeps]-[A-Za-z0-9\-]{10,}"), MASK),
    (("aiza",), re.compile(r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_\-]{30,}"), MASK),
    (
        ("token=", "signature=", "sig="),
        re.compile(r"(?i)([?&](?:[\w\-]{0,24}token|[\w\-]{0,24}signature|sig)=)[^&\s\"'#]{4,}"),
        rf"\1{MASK}",
    ),
    (("private key-----",), re.compile(r"(?i)(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----).+"), rf"\1{MASK}"),
    (("eyj",), re.compile(r"(?<![\w\-])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"), MASK),
)
_find_login_word = re.compile(LOGIN_WORD).search
_CAPITALS = ("KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL")


def _mask_looks(text: str) -> str:
    """Return `text` without what looks like a secret; cheap looks first for what a rule needs."""
    lower = text.lower()
    token = "token" in lower
    named = "key" in lower or "secret" in lower or "passw" in lower or "credential" in lower
    if named or (token and _find_login_word(lower)):
        text = mask_named(text)
    if (named or token) and any(name in text for name in _CAPITALS):
        text = mask_variables(text)
    for needs, rule, put in _SHAPES:
        if any(need in lower for need in needs):
            text = rule.sub(put, text)
    return text


def is_secret_name(name: str) -> bool:
    """Tell whether a variable or flag of this name holds a secret."""
    return _NAME.search(name) is not None and _NOT_NAME.search(name) is None


def is_plain_value(value: str) -> bool:
    """Tell whether a value is a number, a path or a word like `none`, which no one keeps secret."""
    return _PLAIN_VALUE.match(value) is not None


def secrets_of(
    argv: Sequence[str], environ: Iterable[Tuple[str, str]], key_flags: Sequence[str] = ()
) -> FrozenSet[str]:
    """Return the values that a process was started with and that must not be seen."""
    found = {
        value
        for name, value in environ
        if len(value) >= SHORTEST_VALUE and is_secret_name(name) and not is_plain_value(value)
    }
    for value in flag_values(argv, key_flags):
        found.update(part for part in (value, *value.split(",")) if len(part) >= SHORTEST_FLAG_VALUE)
    for flag, value in _flags(argv):
        if is_secret_name(flag) and len(value) >= SHORTEST_VALUE and not is_plain_value(value):
            found.add(value)
    return frozenset(found)


def flag_values(argv: Sequence[str], flags: Sequence[str]) -> List[str]:
    """Return the values of `flags` in a command line, written `--flag X` or `--flag=X`; the last one counts."""
    return [value for flag, value in _flags(argv) if flag in flags and value]


def _flags(argv: Sequence[str]) -> List[Tuple[str, str]]:
    found = []
    for index, word in enumerate(argv):
        if not word.startswith("-"):
            continue
        flag, equals, value = word.partition("=")
        if not equals and index + 1 < len(argv) and not argv[index + 1].startswith("--"):
            value = argv[index + 1]
        found.append((flag, value))
    return found


class Redactor:
    """Replace secrets by `***`. Threads share it: what it knows is replaced as a whole, never changed in place."""

    def __init__(self) -> None:
        self._values: Tuple[str, ...] = ()
        self.key_flags: Tuple[str, ...] = ()

    def learn(self, values: Iterable[str]) -> None:
        """Know these values from now on, with those known before."""
        known = {*self._values, *(value for value in values if value)}
        self._values = tuple(sorted(known, key=len, reverse=True))  # a value inside another must not break it

    def clean(self, text: str) -> str:
        """Return `text` without secrets."""
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return _mask_looks(text)

    def clean_argv(self, argv: Sequence[str]) -> Tuple[str, ...]:
        """Return a command line without secrets, word by word."""
        cleaned = []
        hide_next = False
        for word in argv:
            flag, equals, value = word.partition("=")
            if hide_next and not word.startswith("--"):
                cleaned.append(MASK)
                hide_next = False
                continue
            hide_next = False
            if flag.startswith("-") and self._hides(flag):
                hide_next = not equals
                cleaned.append(f"{flag}={MASK}" if equals and not self._shows(flag, value) else word)
                continue
            cleaned.append(self.clean(word))
        return tuple(cleaned)

    def _hides(self, flag: str) -> bool:
        return flag in self.key_flags or is_secret_name(flag)

    def _shows(self, flag: str, value: str) -> bool:
        return flag not in self.key_flags and is_plain_value(value)
