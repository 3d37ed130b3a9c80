"""Prose in the terminal: lines as wide as it is."""

import shutil
import textwrap

from vigil.screen import plain

NARROWEST = 60
WIDEST = 118


def wrapped(text: str, first: str = "  ", then: str = "    ") -> list[str]:
    """Return text as lines that fit the terminal."""
    return textwrap.wrap(
        plain(text, 1200), width(), initial_indent=first, subsequent_indent=then, break_on_hyphens=False
    ) or [first]


def width() -> int:
    """Return how wide prose may run: as the terminal where there is one, and never so narrow that words break."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((WIDEST + 1, 24)).columns - 1))
