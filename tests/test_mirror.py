"""What was last known of servers on other hosts."""

from pathlib import Path

import pytest

from vigil.store import Mirror
from vigil.verdict import Verdict, Word


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Mirror()


def verdict(word: Word, name: str = "s1") -> Verdict:
    return Verdict(name=name, word=word, exit_code=0, since_s=1.0)


def test_mirror_knows_the_newest_verdict_of_each_server(mirror: Mirror) -> None:
    mirror.keep("gpu7", verdict(Word.READY))
    mirror.keep("gpu8", verdict(Word.STALLED))
    mirror.keep("gpu7", verdict(Word.CRASHED))
    last = mirror.last("gpu7", "s1")

    assert last is not None
    assert last.verdict.word is Word.CRASHED
    assert last.age_s < 60
    assert mirror.last("gpu9", "s1") is None
    assert mirror.last("gpu7", "s2") is None


def test_host_that_cannot_be_reached_leaves_what_was_seen(mirror: Mirror) -> None:
    mirror.keep("gpu7", verdict(Word.READY))
    mirror.keep("gpu7", verdict(Word.UNREACHABLE))
    last = mirror.last("gpu7", "s1")

    assert last is not None
    assert last.verdict.word is Word.READY


def test_mirror_that_cannot_be_read_knows_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "elsewhere.db"
    broken.write_bytes(b"no database" * 200)
    mirror = Mirror(broken)
    mirror.keep("gpu7", verdict(Word.READY))

    assert mirror.last("gpu7", "s1") is None
