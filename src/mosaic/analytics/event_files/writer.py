"""Writes a TensorBoard event file from inside a training loop, for a few microseconds a scalar.

Protobuf fields may stand in any order. Here the tag comes first and what changes comes last, so that the
checksum of the constant part is computed once for each tag.
"""

from __future__ import annotations

import itertools
import math
import os
import struct
import time
from pathlib import Path

from mosaic.analytics.event_files.format import (
    CRC_START,
    CRC_TABLE,
    extend_crc,
    field,
    finish_crc,
    frame,
    record_header,
    scalar_prefix,
    varint,
)

FILE_VERSION = b"brain.Event:2"
FLUSH_BYTES = 64 * 1024
FLUSH_SECONDS = 1.0

_SESSION_START = b"\x08\x01"
_TEXT_METADATA = b"\x0a\x06\x0a\x04text"
_STRING_VECTOR_OF_ONE = b"\x08\x07\x12\x04\x12\x02\x08\x01"

_file_numbers = itertools.count()
_pack_double = struct.Struct("<d").pack
# What follows the tag: the value, then the key and the bytes of the wall time, then the key of the step.
_pack_scalar = struct.Struct("<fBdB").pack


class EventWriter:
    """One event file in `folder`.

    Records are buffered: they reach the file with `flush`, which the add methods also call after a second or
    64 KiB. A full disk raises OSError then; what could not be written stays in the buffer, and the next flush
    goes on at the very byte.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        """With `purge_step`, readers drop what earlier files of the folder hold from that step on."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / _file_name(folder)
        self._buffer = bytearray()
        self._prefixes: dict[str, tuple[bytes, int]] = {}
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._flushed_at = time.time()
        self._add_event(0, 3, FILE_VERSION)
        if purge_step is not None:
            self._add_event(purge_step, 7, _SESSION_START)
        try:
            self.flush()
        except OSError:
            os.close(self._descriptor)
            self.path.unlink()
            raise

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Records one number; anything `float()` and `int()` take will do."""
        prefix, state = self._prefixes.get(tag) or self._remember(tag)
        now = time.time()
        try:
            tail = _pack_scalar(value, 0x09, now, 0x10) + varint(int(step))
        except (struct.error, OverflowError):
            tail = _pack_scalar(_as_float32(value), 0x09, now, 0x10) + varint(int(step))
        table = CRC_TABLE
        for byte in tail:
            state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
        self._buffer += record_header(len(prefix) + len(tail)) + prefix + tail + finish_crc(state)
        if len(self._buffer) >= FLUSH_BYTES or not 0 <= now - self._flushed_at < FLUSH_SECONDS:
            self.flush()

    def add_text(self, tag: str, text: str, step: int = 0) -> None:
        """Records Markdown for TensorBoard's text page, under the name other writers give it."""
        tensor = _STRING_VECTOR_OF_ONE + field(8, text.encode(errors="replace"))
        value = (
            field(1, f"{tag}/text_summary".encode(errors="replace"))
            + field(8, tensor)
            + field(9, _TEXT_METADATA)
        )
        self._add_event(step, 5, field(1, value))
        if len(self._buffer) >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hands everything recorded so far to the operating system."""
        self._flushed_at = time.time()
        while self._buffer:
            written = os.write(self._descriptor, self._buffer)
            del self._buffer[:written]

    def close(self) -> None:
        """Flushes and closes the file; closing twice is fine."""
        if self._descriptor < 0:
            return
        try:
            self.flush()
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def _add_event(self, step: int, number: int, content: bytes) -> None:
        head = b"\x09" + _pack_double(time.time()) + b"\x10" + varint(step)
        self._buffer += frame(head + field(number, content))

    def _remember(self, tag: str) -> tuple[bytes, int]:
        prefix = scalar_prefix(tag)
        self._prefixes[tag] = prefix, extend_crc(CRC_START, prefix)
        return self._prefixes[tag]


def _file_name(folder: Path) -> str:
    """A name that sorts after those already there: readers take a folder's files in the order of names.

    The clock alone does not do: a run may go on within the second, or the clock go back.
    """
    stamp = int(time.time())
    for path in folder.glob("events.out.tfevents.*"):
        number = path.name.split(".")[3]
        if number.isdecimal():
            stamp = max(stamp, int(number) + 1)
    return f"events.out.tfevents.{stamp:010d}.{os.uname().nodename}.{os.getpid()}.{next(_file_numbers)}"


def _as_float32(value: float) -> float:
    number = float(value)
    return number if abs(number) < 3.4028235e38 or number != number else math.copysign(math.inf, number)
