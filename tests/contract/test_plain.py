"""What a terminal would obey is taken out of the text of others; everything else stays as it is."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic.contract.plain import PlainStream, plain, plain_line
from mosaic.trainer import log

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert not OBEYED.search(plain(text))
    assert "\n" not in plain_line(text)
    if not OBEYED.search(text):
        assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("\x1b]52;c;cm0=\x1b\\", "\ufffd]52;c;cm0=\ufffd\\"),
        ("\x9b31mred", "\ufffd31mred"),
        ("user\u202etxt.exe", "user\ufffdtxt.exe"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
        ("naïve 日本 👍 שלום", "naïve 日本 👍 שלום"),
    ],
)
def test_colours_go_and_other_commands_are_marked(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_stream_is_as_the_one_behind_it() -> None:
    raw = io.StringIO()
    stream = PlainStream(raw)
    print("a\x1b[31mb\x07", file=stream)
    stream.writelines(["c\x1b", "d"])
    assert raw.getvalue() == "ab\ufffd\nc\ufffdd"
    assert not stream.isatty()


def test_what_others_have_written_is_one_line_in_the_log(tmp_path: Path) -> None:
    path, root = tmp_path / "trainer.log", logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        log.set_up(path)
        log.info(log.Code.RUN_MOVED, "failed \x1b]0;x\x07\n2026-01-01 00:00:00,000 INFO T201 run=- forged")
        try:
            raise ValueError("\x1b[2J")
        except ValueError:
            log.exception(log.Code.CALL_FAILED, "SubmitRun")
    finally:
        for handler in [one for one in root.handlers if one not in before]:
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    written = path.read_text("utf-8")
    assert not OBEYED.search(written)
    assert len([line for line in written.splitlines() if " INFO " in line]) == 1
    assert "Traceback" in written
