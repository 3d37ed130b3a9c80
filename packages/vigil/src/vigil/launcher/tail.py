"""The end of a server's log for somebody who looks at it: without the secrets that can be known."""

import os
import re
import stat
from typing import Any, Dict, List

from ..observer.process import read_argv, read_environ
from ..observer.redact import Redactor, is_plain_value, is_secret_name, secrets_of
from . import state

LONGEST_TAIL_BYTES = 4 << 20
LINE_CHARS = 8192
MOST_VALUES = 200
# `api_key='X'`, `--api-key X`, `HF_TOKEN=X`, `"api_key": ["X"`: what a log calls a secret once is one wherever it stands.
_NAMED = re.compile(
    r"([\w-]{0,40}(?:key|token|secret|passw|credential)[\w-]{0,20})[\"']?\s?[=: ]\s?\[?[\"']?([^\s\"',;\])}]{8,512})",
    re.IGNORECASE,
)


def tail(name: str, limit_bytes: int) -> Dict[str, Any]:
    """Return the end of the log of a name's newest start, from where that start began; `size`, `inode`: to go on from."""
    life = state.show(name)["life"]
    if not life:
        raise state.Refused("state", "what is written down about %s cannot be read" % name)
    limit = min(limit_bytes, LONGEST_TAIL_BYTES)
    handle = os.open(life["log"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise state.Refused("state", "%s is no regular file any more" % life["log"])
        begin = life["log_offset"] if 0 <= life["log_offset"] <= status.st_size else 0
        begin = max(begin, status.st_size - limit)
        file.seek(begin)
        data = file.read(limit)
    text = clean(data.decode("utf-8", "replace"), life["main"])
    return {"log": life["log"], "text": text, "size": begin + len(data), "inode": status.st_ino}


def clean(text: str, main: Dict[str, int]) -> str:
    """Return a log's text without secrets: those of the process `main`, where it runs, and those that the text names."""
    redactor = Redactor()
    if state.is_running(main):
        redactor.learn(secrets_of(read_argv(main["pid"]), read_environ(main["pid"])))
    lines = text.split("\n")
    redactor.learn(_named_values(lines))
    return "\n".join(redactor.clean(line) for line in lines)


def _named_values(lines: List[str]) -> List[str]:
    found: List[str] = []
    for line in lines:
        for name, value in _NAMED.findall(line[:LINE_CHARS]):
            if is_secret_name(name) and not is_plain_value(value) and any(map(str.isdigit, value)):
                found.append(value)
        if len(found) > MOST_VALUES:
            break
    return found
