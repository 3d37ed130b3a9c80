"""Put facts on the wire: stamp them, keep secrets out of them, and hold our own troubles to one a minute."""

import threading
import time
from typing import Any, Callable, Dict, Optional

from .lines import escape
from .redact import Redactor

TITLE_CHARS = 120
BODY_CHARS = 300
TROUBLE_S = 60.0
ARGV_CHARS = 2000
ARGV_WORDS = 200


class Reporter:
    """Facts go out through here, one at a time, with a time that never goes back.

    `write` gets one dict a fact. It is called from the loop and from the probes' threads, never by two at once.
    """

    def __init__(self, write: Callable[[Dict[str, Any]], None], redactor: Optional[Redactor] = None) -> None:
        self.redactor = redactor or Redactor()
        self._write = write
        self._lock = threading.Lock()
        self._troubles: Dict[str, float] = {}

    def say(self, kind: str, **fields: Any) -> None:
        """Write one fact. Fields that are None are left out."""
        fact = {"kind": kind, "at_s": 0.0, **{name: value for name, value in fields.items() if value is not None}}
        with self._lock:
            fact["at_s"] = time.monotonic()
            self._write(fact)

    def trouble(self, what: str) -> None:
        """Report that we could not do something; the same again only after a minute."""
        now = time.monotonic()
        with self._lock:
            if now - self._troubles.get(what, float("-inf")) < TROUBLE_S:
                return
            if len(self._troubles) > 256:  # noqa: PLR2004 - troubles that differ in a pid each time must not fill the memory
                self._troubles.clear()
            self._troubles[what] = now
        self.say("Troubled", what=self.shorten(what, BODY_CHARS))

    def shorten(self, text: str, limit: int) -> str:
        """Return hostile text as it may be shown: without secrets, escaped, at most `limit` characters."""
        text = escape(self.redactor.clean(text[: limit * 4]))
        return text if len(text) <= limit else text[: limit - 1] + "…"
