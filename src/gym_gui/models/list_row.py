"""A row of a list that things are chosen from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ListRow:
    """What is shown of one thing, and the key by which it is chosen."""

    key: str
    title: str
    about: str = ""
    """A second line; empty for rows of one line."""
    aside: str = ""
    """At the right end of the first line."""
    faint: bool = False
    """Whether it can be chosen, but will not do as it is."""


def matching(rows: Iterable[ListRow], text: str) -> list[ListRow]:
    """The rows that hold all words of a text."""
    wanted = text.lower().split()
    return [
        row for row in rows if all(word in f"{row.title} {row.about} {row.key}".lower() for word in wanted)
    ]
