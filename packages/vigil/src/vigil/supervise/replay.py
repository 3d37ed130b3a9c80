"""Replay a trace: recorded facts through the same function, without the world."""

from collections.abc import Iterator
from pathlib import Path

from vigil.supervise.session import Session
from vigil.trace import read
from vigil.verdict import Verdict, Word


def replay(path: Path) -> Iterator[Verdict]:
    """Yield the verdict at each change of its word, and the last one at the end of the trace."""
    header, facts = read(path)
    session = Session(header.plan, header.slowest_quiet_s)
    word: Word | None = None
    told = -1
    for fact in facts:
        session.take(fact)
        if session.state.judged.word is not word:
            word = session.state.judged.word
            yield session.verdict
            told = session.state.n
    if told != session.state.n:
        yield session.verdict
