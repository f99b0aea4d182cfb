"""Text of others as a terminal may show it: without what a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TextIO

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Colours and cursor movements: taken out whole, so that the coloured output of a script stays readable."""
_COMMANDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 but tab and line end, DEL, C1, and what turns the direction of writing."""
_SHOWN_AS = "\ufffd"


def plain(text: str) -> str:
    """The text with a mark for each character that a terminal would obey instead of showing it."""
    if _COMMANDING.search(text) is None:
        return text
    return _COMMANDING.sub(_SHOWN_AS, _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def plain_line(text: str) -> str:
    """The text on one line, so that it cannot pass for several."""
    return plain(" ".join(text.splitlines()))


class PlainStream:
    """A text stream that shows everything written to it plainly; `raw` is the stream behind it."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    @property
    def rich_proxied_file(self) -> TextIO:
        """What rich writes to: the escape sequences there are its own, as our console filters the text."""
        return self.raw

    def write(self, text: str) -> int:
        self.raw.write(plain(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)
