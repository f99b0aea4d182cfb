"""Reads the event files of a run while they grow, each byte once."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from mosaic.analytics.event_files.cursor import FilePosition, dump_cursor, load_cursor
from mosaic.analytics.event_files.finder import Signature, find_event_files
from mosaic.analytics.event_files.parser import CorruptRecord, EventParser, Scalars
from mosaic.analytics.event_files.records import FRAME_BYTES, HEADER_BYTES
from mosaic.analytics.event_files.series import EARLIEST_STEP, ScalarChunk

BLOCK_BYTES = 1 << 20
# The first record holds the time the file was made, so these bytes tell one file from another.
_HEAD_BYTES = 24


class EventReader:
    """The scalars of all event files under `folder`, in pieces, as they come.

    `behind` is True when the last poll stopped at its limit, so there is more to read at once. `problems`
    says of each file that cannot be read on why; such a file is tried again when it changes.
    """

    def __init__(self, folder: Path, cursor: str | None = None) -> None:
        self.folder = folder
        self.behind = False
        self.problems: dict[str, str] = {}
        self._positions = load_cursor(cursor) if cursor is not None else {}
        self._parser = EventParser()

    def poll(self, max_records: int = 50_000) -> list[ScalarChunk]:
        """What is new since the last poll, from at most `max_records` records; apply the chunks in order."""
        chunks: list[ScalarChunk] = []
        left = max_records
        for source, files in find_event_files(self.folder).items():
            scalars = Scalars(source)
            left -= self._read_source(files, scalars, left)
            chunks += scalars.filled()
        self.behind = left <= 0
        return chunks

    def cursor(self) -> str:
        """Where reading stands: another reader of the same folder goes on from there."""
        return dump_cursor(self._positions)

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
                while taken < limit and self._read_block(file.fileno(), place, scalars, limit - taken):
                    taken += self._parser.records
        except FileNotFoundError:
            return taken
        except CorruptRecord as error:
            self.problems[path] = f"At byte {place.offset}, {error}."
        except OSError as error:
            self.problems[path] = f"It cannot be read: {error.strerror}."
        else:
            self.problems.pop(path, None)
        if taken < limit:
            place.read_to_end_at = signature
        return taken

    def _read_block(self, descriptor: int, place: FilePosition, scalars: Scalars, limit: int) -> bool:
        """Takes what a block holds; False when no whole record is left."""
        block = os.pread(descriptor, BLOCK_BYTES, place.offset)
        try:
            self._parser.parse(block, scalars, limit)
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


def _checksum_of_head(descriptor: int) -> int:
    return zlib.crc32(os.pread(descriptor, _HEAD_BYTES, 0))
