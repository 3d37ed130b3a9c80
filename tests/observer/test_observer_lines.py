"""Bytes to lines, whatever the chunks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from vigil.observer.keep import pick
from vigil.observer.lines import LINE_BYTES, LineSplitter, RawLine, show


def split(*chunks: bytes) -> list[tuple[int, bytes]]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [tuple(line) for line in lines + splitter.flush()]


def last_of_each(lines: list[tuple[int, bytes]]) -> dict[int, bytes]:
    return dict(lines)


def test_lines_end_at_newline_and_at_return_newline() -> None:
    assert split(b"one\ntwo\r\n\nfour") == [(1, b"one"), (2, b"two"), (3, b""), (4, b"four")]


def test_updates_in_one_chunk_leave_the_last() -> None:
    assert split(b"\r 10%\r 50%\r 90%\rdone\nnext\n") == [(1, b"done"), (2, b"next")]


def test_updates_in_several_chunks_share_a_number() -> None:
    lines = split(b"\r 10%\r", b" 50%\r", b" 90%\r", b"\n", b"next\n")
    assert lines == [(1, b" 10%"), (1, b" 50%"), (1, b" 90%"), (2, b"next")]


def test_return_newline_in_two_chunks_is_one_line() -> None:
    assert split(b"one\r", b"\ntwo\n") == [(1, b"one"), (2, b"two")]


def test_flush_gives_the_open_line_once_and_whole_when_it_goes_on() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"Load") == []
    assert splitter.flush() == [RawLine(1, b"Load")]
    assert splitter.flush() == []
    assert splitter.feed(b"ing\n") == [RawLine(1, b"Loading")]


def test_flushed_line_that_ends_without_news_is_not_given_again() -> None:
    splitter = LineSplitter()
    splitter.feed(b"ready")
    splitter.flush()
    assert splitter.feed(b"\nnext\n") == [RawLine(2, b"next")]


def test_gigabyte_line_is_cut_in_bounded_memory() -> None:
    splitter = LineSplitter()
    chunk = b"a" * (4 << 20)
    for _ in range(256):
        assert splitter.feed(chunk) == []
    assert len(splitter._kept) == LINE_BYTES
    (line,) = splitter.feed(b"\n")
    assert line.raw == b"a" * LINE_BYTES + " …[1073741824 bytes]".encode()


def test_cut_does_not_break_a_character() -> None:
    (line,) = LineSplitter().feed(b"a" + "é".encode() * LINE_BYTES + b"\n")
    assert show(line.raw).endswith("é …[16385 bytes]")


def test_hole_before_a_line_becomes_one_nul() -> None:
    splitter = LineSplitter()
    splitter.feed(b"\0" * 100_000)
    assert splitter.feed(b"\0\0started\n") == [RawLine(1, b"\0started")]


def test_show_makes_controls_visible_and_drops_colours() -> None:
    assert show(b"\x1b[31mred\x1b[0m \x1b]0;title\x07a\0b\x7f\tc\xff") == "red a\\x00b\\x7f\tc\ufffd"
    assert show("a\u202eb\u2028\x9b".encode()) == "a\\u202eb\\u2028\\x9b"


PIECES = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", b"\0", b"\xff", "é".encode(), b"x" * 5000]), max_size=40
)


@settings(max_examples=300, deadline=None)
@given(PIECES, st.data())
def test_lines_are_the_same_for_any_chunking(pieces: list[bytes], data: st.DataObject) -> None:
    text = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    chunks = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert last_of_each(split(*chunks)) == last_of_each(split(text))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"\r", b"a", b"b", b"\0"]), max_size=60))
def test_lines_are_the_same_byte_by_byte(pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    assert last_of_each(split(*[bytes([byte]) for byte in text])) == last_of_each(split(text))


@given(st.lists(st.text("ab\u00e9 ", max_size=6)), st.lists(st.text("ab\u00e9", min_size=1, max_size=2), max_size=4))
def test_pick_keeps_what_holds_a_text(texts: list[str], wanted: list[str]) -> None:
    lines = [RawLine(number, text.encode()) for number, text in enumerate(texts)]
    kept, skipped = pick(lines, [text.encode() for text in wanted])
    assert kept == [line for line in lines if any(text.encode() in line.raw for text in wanted)]
    assert skipped == len(lines) - len(kept)
