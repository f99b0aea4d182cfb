"""The newest lines of a log."""

from __future__ import annotations

import os
from pathlib import Path

from gym_gui.services.log_stream import LONGEST_LINE, LogLines, tail_offset


def test_lines_are_whole_however_the_bytes_come() -> None:
    log = LogLines()
    text = "erste Zeile: ä\nzweite\r\nunfinished".encode()
    for byte in text:
        log.feed(bytes([byte]))
    assert log.since(0) == ["erste Zeile: ä", "zweite"]
    log.feed(b"\n")
    assert log.since(2) == ["unfinished"]


def test_memory_is_bounded_and_numbers_go_on() -> None:
    log = LogLines(most=100)
    for number in range(1000):
        log.feed(f"line {number}\n".encode())
    assert (len(log), log.first, log.end) == (100, 900, 1000)
    assert log.since(998) == ["line 998", "line 999"]
    assert log.since(0)[0] == "line 900"


def test_a_progress_bar_is_one_line_as_it_ended_up() -> None:
    log = LogLines()
    log.feed(b"\r10 %" * 100_000 + b"\r100 %\ndone\n")
    assert log.since(0) == ["100 %", "done"]


def test_the_colours_of_a_terminal_are_left_out() -> None:
    log = LogLines()
    log.feed(b"\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain\x00\n")
    assert log.since(0) == ["red and plain"]


def test_an_endless_line_is_cut() -> None:
    log = LogLines()
    log.feed(b"x" * 10_000_000)
    log.feed(b"\n")
    assert len(log.since(0)[0]) <= LONGEST_LINE + 2


def test_searching_takes_no_notice_of_case() -> None:
    log = LogLines()
    log.feed(b"one\nERROR: two\nthree error\n")
    assert log.count("error") == 2


def test_of_a_long_log_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    assert tail_offset(path) == 0
    path.write_bytes(b"x" * 1000)
    assert tail_offset(path) == 0
    os.truncate(path, 10_000_000_000)
    assert tail_offset(path) == 10_000_000_000 - 4_000_000
