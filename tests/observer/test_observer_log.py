"""A log on a real disk: history, growth, rotation, truncation, holes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vigil import facts
from vigil.observer.log import TURN_BYTES, LogTail
from vigil.observer.report import Reporter


def write(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_log_that_is_missing_is_reported_and_read_when_it_comes(watching: Any, log: Path) -> None:
    watching.watch(log=str(log))
    assert watching.wait(facts.LogUnreadable).missing
    write(log, b"first\n")
    grew = watching.wait(facts.LogGrew)
    assert (grew.lines, grew.history, grew.size) == ((facts.Line(1, "first"),), False, 6)


def test_log_that_was_there_is_history(watching: Any, log: Path) -> None:
    write(log, b"yesterday\nready\n")
    watching.watch(log=str(log))
    assert watching.wait(facts.LogGrew).history
    write(log, b"today\n")
    assert watching.wait_line("today") == facts.Line(3, "today")
    assert not watching.wait(facts.LogGrew, lambda fact: fact.lines and fact.lines[0].text == "today").history


def test_long_history_is_cut_and_its_lines_are_counted(watching: Any, log: Path) -> None:
    write(log, b"".join(b"line %d\n" % number for number in range(1, 100_001)))
    watching.watch(log=str(log))
    assert watching.wait_line("line 100000").number == 100_000
    lines = watching.lines()
    assert all(text == f"line {number}" for number, text in lines)
    assert sum(len(text) + 1 for _, text in lines) <= 256 * 1024
    assert all(len(fact.lines) <= 2000 for fact in watching.all(facts.LogGrew))


def test_start_in_an_old_log_reads_from_its_offset_with_true_numbers(watching: Any, log: Path) -> None:
    write(log, b"old\n" * 1000)
    watching.watch(log=str(log), log_offset=4000)
    write(log, b"new\n")
    assert watching.wait_line("new") == facts.Line(1001, "new")
    assert not any("old" in text for _, text in watching.lines())


def test_resumed_log_gives_the_open_line_whole(watching: Any, log: Path) -> None:
    write(log, b"one\ntwo is half")
    watching.watch(log=str(log), log_offset=10, log_inode=log.stat().st_ino)
    write(log, b" done\n")
    assert watching.wait_line("done") == facts.Line(2, "two is half done")


def test_resumed_log_that_was_rotated_begins_anew(watching: Any, log: Path) -> None:
    write(log, b"another file\n")
    watching.watch(log=str(log), log_offset=5, log_inode=log.stat().st_ino + 1)
    assert watching.wait(facts.LogReset).why == "rotated"
    assert watching.wait_line("another file").number == 1


def test_rotation_reads_the_old_file_to_its_end(watching: Any, log: Path) -> None:
    write(log, b"a\n")
    watching.watch(log=str(log), log_offset=0)
    watching.wait_line("a")
    held = log.open("ab")
    log.rename(log.with_suffix(".1"))
    held.write(b"last words\nunfinished")
    held.close()
    write(log, b"new file\n")
    watching.wait_line("new file")
    reset = watching.wait(facts.LogReset)
    assert reset.why == "rotated"
    assert watching.lines() == [(1, "a"), (2, "last words"), (3, "unfinished"), (1, "new file")]


def test_truncated_log_begins_anew(watching: Any, log: Path) -> None:
    write(log, b"first life, a long one\n")
    watching.watch(log=str(log), log_offset=0)
    watching.wait_line("first life")
    os.truncate(log, 0)
    write(log, b"second\n")
    assert watching.wait_line("second").number == 1
    assert watching.wait(facts.LogReset).why == "truncated"


def test_log_written_over_and_longer_is_seen_by_its_head(watching: Any, log: Path) -> None:
    write(log, b"first life\n")
    watching.watch(log=str(log), log_offset=0)
    watching.wait_line("first life")
    with log.open("r+b") as file:  # truncated and grown past the old size between two looks
        file.write(b"second life, which says more than the first\n")
    assert watching.wait(facts.LogReset).why == "truncated"
    assert watching.wait_line("second life").number == 1


def test_sparse_gigabyte_line_does_not_hide_what_follows(watching: Any, log: Path) -> None:
    write(log, b"start\n")
    watching.watch(log=str(log), log_offset=0)
    watching.wait_line("start")
    os.truncate(log, 1 << 30)
    write(log, b"after the hole\n")
    assert watching.wait_line("after the hole") == facts.Line(2, "\\x00after the hole")


def test_open_line_is_shipped_after_quiet(watching: Any, log: Path) -> None:
    watching.watch(log=str(log), log_offset=0)
    write(log, b"Password: ")
    watching.wait(facts.LogGrew, lambda fact: fact.size == 10 and not fact.lines)
    assert watching.wait_line("Password").number == 1


def test_progress_bar_ships_its_last_update(watching: Any, log: Path) -> None:
    write(log, b"".join(b"\rLoading %d/64" % number for number in range(65)) + b"\nloaded\n")
    watching.watch(log=str(log), log_offset=0)
    watching.wait_line("loaded")
    assert watching.lines() == [(1, "Loading 64/64"), (2, "loaded")]


def test_keep_ships_only_what_matters_and_counts_the_rest(watching: Any, log: Path) -> None:
    watching.watch(log=str(log), log_offset=0)
    watching.do("keep", texts=["ERROR", "CUDA out"])
    watching.do("dance")
    watching.wait(facts.Troubled)  # the commands before it are obeyed
    write(log, b"INFO a\n" * 500 + b"ERROR b\n" + b"INFO c\n" * 10 + b"torch: CUDA out of memory\n")
    watching.wait_line("CUDA out")
    assert watching.lines() == [(501, "ERROR b"), (512, "torch: CUDA out of memory")]
    assert sum(fact.skipped for fact in watching.all(facts.LogGrew)) == 510
    watching.do("keep", texts=None)
    write(log, b"INFO d\n")
    assert watching.wait_line("INFO d").number == 513


def test_fifo_is_not_read(watching: Any, log: Path) -> None:
    os.mkfifo(log)
    watching.watch(log=str(log))
    unreadable = watching.wait(facts.LogUnreadable)
    assert (unreadable.missing, unreadable.error) == (False, "not a regular file")


def test_folder_that_is_a_file_counts_as_missing(watching: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    watching.watch(log=str(tmp_path / "file" / "server.log"))
    assert watching.wait(facts.LogUnreadable).missing


def test_secrets_do_not_leave_the_host(watching: Any, log: Path) -> None:
    watching.watch(log=str(log), log_offset=0, key="my-own-key-1", secrets=["handed-over-2"])
    write(
        log,
        b"Authorization: Bearer abcdef123456\nServerArgs(api_key='hunter2hunter2', tp=8)\nkey my-own-key-1\n"
        b"echo handed-over-2\nend\n",
    )
    watching.wait_line("end")
    assert [text for _, text in watching.lines()] == [
        "Authorization: Bearer ***",
        "ServerArgs(api_key='***', tp=8)",
        "key ***",
        "echo ***",
        "end",
    ]


def test_busy_log_is_read_to_its_end_in_facts_of_bounded_size(
    watching: Any, log: Path, poll: Callable[..., Any]
) -> None:
    write(log, b"".join(b"2026-11-30 12:00:00 INFO step %d loss 0.1\n" % number for number in range(200_000)))
    watching.watch(log=str(log), log_offset=0)
    watching.wait_line("step 199999 ")
    assert poll(lambda: [number for number, _ in watching.lines()] == list(range(1, 200_001)))
    assert max(len(fact.lines) for fact in watching.all(facts.LogGrew)) <= 2000


def test_log_tells_its_inode_from_the_first_fact_on(watching: Any, log: Path) -> None:
    write(log, b"yesterday\n")
    watching.watch(log=str(log))
    watching.wait_line("yesterday")
    first = log.stat().st_ino
    log.rename(log.with_suffix(".1"))
    write(log, b"rotated\n")
    watching.wait_line("rotated")
    told = [fact.inode for fact in watching.all(facts.LogGrew)]
    assert told == [first, log.stat().st_ino]


def test_log_that_an_observer_left_is_taken_up_by_the_next_without_news(watching: Any, log: Path) -> None:
    write(log, b"banner\nloading\n")
    watching.watch(log=str(log), log_offset=0)
    grew = watching.wait(facts.LogGrew)
    said: list[Any] = []
    tail = LogTail(str(log), Reporter(said.append), grew.size, grew.inode)
    while tail.look(0.0):
        pass
    assert said == []
    write(log, b"new\n")
    while not said:
        tail.look(1.0)
    tail.close()
    assert [fact["lines"] for fact in said] == [[[3, "new"]]]


def test_flood_of_lines_is_read_in_short_turns(log: Path) -> None:
    write(log, b"x\n" * 100_000)
    said: list[Any] = []
    tail = LogTail(str(log), Reporter(said.append), 0, None)
    turns = 1
    while tail.look(float(turns)):
        turns += 1
    tail.close()
    assert turns > 200_000 / TURN_BYTES + 3  # by time, not by bytes alone
    assert sum(len(fact["lines"]) for fact in said) == 100_000


def test_drain_does_not_wait_for_what_is_written_meanwhile(log: Path) -> None:
    write(log, b"last words\n" * 20_000)
    said: list[Any] = []
    tail = LogTail(str(log), Reporter(said.append), 0, None)
    turns = 0
    while not tail.drain(0.0):
        turns += 1
        write(log, b"a leftover goes on\n" * 20_000)
        assert turns < 200
    tail.close()
    assert sum(line[1] == "last words" for fact in said for line in fact["lines"]) == 20_000
