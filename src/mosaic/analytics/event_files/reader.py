"""Reads the event files of a run while they grow, each byte once."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mosaic.analytics.event_files.format import FRAME_BYTES, HEADER_BYTES
from mosaic.analytics.event_files.parser import (
    EARLIEST_STEP,
    CorruptRecord,
    EventParser,
    ScalarChunk,
    Scalars,
)
from mosaic.contract.errors import UserError

SKIPPED_FOLDERS = frozenset({"wandb", "checkpoints", "videos", "bridge"})

Signature = tuple[int, int]
"""Size and time of change: as long as both stay, a file is taken to be unchanged."""


def find_event_files(folder: Path) -> dict[str, dict[str, Signature]]:
    """The event files under `folder`: source (the folder they lie in) → relative path → signature.

    They stand in the order they are to be read. Links are not followed; what cannot be listed is left out.
    """
    found: dict[str, dict[str, Signature]] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        for name in sorted(name for name in names if "tfevents" in name):
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    files = found.setdefault(os.path.relpath(place, folder), {})
                    files[os.path.relpath(path, folder)] = (status.st_size, status.st_mtime_ns)
    return dict(sorted(found.items()))


@dataclass(slots=True)
class FilePosition:
    """How far one file has been read; `head` is a checksum of its first bytes, 0 while unknown."""

    offset: int = 0
    head: int = 0
    read_to_end_at: Signature | None = None


def _load_cursor(text: str) -> dict[str, FilePosition]:
    """The positions that `EventReader.cursor` gave; UserError when the text is something else."""
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


BLOCK_BYTES = 1 << 20
# The first record holds the time the file was made, so these bytes tell one file from another.
_HEAD_BYTES = 24
_LARGEST_MEDIUM = 256 * 2**20


class EventReader:
    """The scalars of all event files under `folder`, in pieces, as they come.

    `problems` has a sentence for each file that cannot be read on; such a one is tried again when it changes.
    """

    def __init__(self, folder: Path, cursor: str | None = None, media: bool = False) -> None:
        """With `media` chunks tell of pictures, texts and the like, too."""
        self.folder = folder
        self._media = media
        self.problems: dict[str, str] = {}
        self._positions = _load_cursor(cursor) if cursor is not None else {}
        self._parser = EventParser()

    def poll(self, max_records: int = 50_000) -> list[ScalarChunk]:
        """What is new since the last poll, from at most `max_records` records; apply the chunks in order."""
        chunks: list[ScalarChunk] = []
        left = max_records
        for source, files in find_event_files(self.folder).items():
            scalars = Scalars(source, self._media)
            left -= self._read_source(files, scalars, left)
            chunks += scalars.filled()
        return chunks

    def cursor(self) -> str:
        """Where reading stands, as path → [offset, head]: another reader of the folder goes on from there."""
        known = {path: [place.offset, place.head] for path, place in self._positions.items() if place.offset}
        return json.dumps(known, separators=(",", ":"))

    def marks(self) -> dict[str, list[int]]:
        """How far each file was read, by what stands there: `go_on_from` tells it even in a copied folder."""
        return {
            path: [place.offset, place.head, _checksum(self.folder / path, place.offset)]
            for path, place in self._positions.items()
        }

    def go_on_from(self, marks: Mapping[str, Sequence[int]]) -> bool:
        """Read from these marks on; False, with nothing changed, when the files are not those of then."""
        there = find_event_files(self.folder)
        if not marks.keys() <= {path for files in there.values() for path in files}:
            return False
        for files in there.values():
            known = [path for path in files if path in marks]
            # A file that is new and comes before others would have been read before them.
            if known and any(path < known[-1] for path in files if path not in marks):
                return False
        for path, (offset, _, tail) in marks.items():
            # Whether it begins as it did is looked at when it is read on.
            if _checksum(self.folder / path, offset) != tail:
                return False
        self._positions = {path: FilePosition(offset, head) for path, (offset, head, _) in marks.items()}
        return True

    def _read_source(self, files: dict[str, Signature], scalars: Scalars, limit: int) -> int:
        for path in files:
            self._positions.setdefault(path, FilePosition())
        if any(self._was_replaced(path, signature) for path, signature in files.items()):
            # What was read of the old file cannot be told from the rest: the whole source is read again.
            scalars.purge(EARLIEST_STEP)
            for path in files:
                self._positions[path] = FilePosition()
        taken = 0
        for path, signature in files.items():
            if taken >= limit:
                break
            if signature != self._positions[path].read_to_end_at:
                taken += self._read_file(path, signature, scalars, limit - taken)
        return taken

    def _was_replaced(self, path: str, signature: Signature) -> bool:
        """Whether a file has become shorter, or begins with other bytes than those that were read."""
        place = self._positions[path]
        if place.offset == 0 or signature == place.read_to_end_at:
            return False
        if signature[0] < place.offset:
            return True
        try:
            with open(self.folder / path, "rb", buffering=0) as file:
                return place.head not in (0, _checksum_of_head(file.fileno()))
        except OSError:
            return False

    def _read_file(self, path: str, signature: Signature, scalars: Scalars, limit: int) -> int:
        place = self._positions[path]
        taken = 0
        try:
            with open(self.folder / path, "rb", buffering=0) as file:
                while taken < limit and self._read_block(file.fileno(), path, scalars, limit - taken):
                    taken += self._parser.records
        except FileNotFoundError:
            return taken
        except CorruptRecord as error:
            self.problems[path] = _damage_text(path, place.offset, error)
        except OSError as error:
            self.problems[path] = f"The event file {path} cannot be read ({error.strerror}): correct that."
        else:
            self.problems.pop(path, None)
        if taken < limit:
            place.read_to_end_at = signature
        return taken

    def _read_block(self, descriptor: int, path: str, scalars: Scalars, limit: int) -> bool:
        """Takes what a block holds; False when no whole record is left."""
        place = self._positions[path]
        block = os.pread(descriptor, BLOCK_BYTES, place.offset)
        if len(block) == BLOCK_BYTES and self._media:
            size = self._parser.length(block[:HEADER_BYTES]) + FRAME_BYTES
            if BLOCK_BYTES < size <= _LARGEST_MEDIUM:
                block = os.pread(descriptor, size, place.offset)
        try:
            self._parser.parse(block, scalars, limit, path, place.offset)
        finally:
            place.offset += self._parser.position
            if place.head == 0 and place.offset >= _HEAD_BYTES:
                place.head = _checksum_of_head(descriptor)
        if self._parser.records or len(block) < BLOCK_BYTES:
            return self._parser.records > 0
        # Larger than a block: an image or the like, and never a scalar.
        size = self._parser.length(block[:HEADER_BYTES]) + FRAME_BYTES
        if place.offset + size > os.fstat(descriptor).st_size:
            return False
        place.offset += size
        return True


def _damage_text(path: str, offset: int, error: CorruptRecord) -> str:
    if offset == 0:
        return f"{path} is named like an event file, but is something else ({error}): it is not shown."
    return f"The event file {path} is damaged at byte {offset} ({error}): what follows there is not shown."


def _checksum_of_head(descriptor: int) -> int:
    return zlib.crc32(os.pread(descriptor, _HEAD_BYTES, 0))


_TAIL_BYTES = 256


def _checksum(path: Path, end: int) -> int:
    """Of the last bytes before `end`; -1 when the file is not so long or cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            begin = max(0, end - _TAIL_BYTES)
            data = os.pread(file.fileno(), end - begin, begin)
    except OSError:
        return -1
    return zlib.crc32(data) if len(data) == end - begin else -1
