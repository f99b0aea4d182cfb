"""How far each event file has been read, also as text that a client can keep."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mosaic.analytics.event_files.finder import Signature
from mosaic.contract.errors import UserError


@dataclass(slots=True)
class FilePosition:
    """How far one file has been read; `head` is a checksum of its first bytes, 0 while unknown."""

    offset: int = 0
    head: int = 0
    read_to_end_at: Signature | None = None


def dump_cursor(positions: dict[str, FilePosition]) -> str:
    """The positions as compact JSON: path → [offset, head]."""
    known = {path: [place.offset, place.head] for path, place in positions.items() if place.offset}
    return json.dumps(known, separators=(",", ":"))


def load_cursor(text: str) -> dict[str, FilePosition]:
    """The positions that `dump_cursor` wrote; UserError when the text is something else."""
    try:
        entries = json.loads(text)
        return {path: FilePosition(*_checked(entry)) for path, entry in entries.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        shown = text if len(text) <= 60 else text[:60] + "…"
        raise UserError(
            f"The cursor {shown!r} is not one that a reader gave; leave it out to read from the beginning."
        ) from error


def _checked(entry: object) -> tuple[int, int]:
    match entry:
        case [int(offset), int(head)] if offset >= 0 and head >= 0 and not isinstance(offset, bool):
            return offset, head
    raise ValueError("an entry is not a pair of whole numbers")
