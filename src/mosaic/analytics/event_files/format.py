"""The format of event files: what they need of protobuf's wire format, and the framing of records.

A record is a length, its checksum, the data, its checksum. Checksums are CRC-32C, masked as the format asks.
The length's checksum is kept by length: runs write few different lengths, so it is computed a few times only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_INT64_MASK = (1 << 64) - 1
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """The bytes are not a protobuf message."""


def varint(number: int) -> bytes:
    """A whole number as protobuf writes it; a negative one as its 64-bit two's complement."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= _INT64_MASK
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A field that holds text, bytes or a message."""
    return bytes((number << 3 | BYTES,)) + varint(len(content)) + content


def scalar_prefix(tag: str) -> bytes:
    """The part of an event that stands before the four bytes of a `simple_value`, its only value."""
    name = field(1, tag.encode(errors="replace"))
    # Four bytes of value and its key follow the tag inside both enclosing messages.
    inner = b"\x0a" + varint(len(name) + 5) + name + b"\x15"
    return b"\x2a" + varint(len(inner) + 4) + inner


def signed(number: int) -> int:
    """The 64-bit number that a varint stands for in a field of type int64."""
    number &= _INT64_MASK
    return number - (1 << 64) if number >> 63 else number


def fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Each field as (number, wire type, its bytes); `read_varint` makes a number of those of a varint."""
    for number, wire_type, start, stop in spans(message, 0, len(message)):
        yield number, wire_type, message[start:stop]


def spans(message: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Each field of the message from `start` to `end` as (number, wire type, where its bytes begin, end)."""
    position = start
    while position < end:
        key, position = read_varint(message, position)
        wire_type, start = key & 7, position
        if wire_type == VARINT:
            _, position = read_varint(message, position)
        elif wire_type == BYTES:
            size, start = read_varint(message, position)
            position = start + size
        elif wire_type in _FIXED_SIZES:
            position += _FIXED_SIZES[wire_type]
        else:
            raise WireError(f"wire type {wire_type} is not in use")
        if position > end or key < 8:
            raise WireError("a field does not fit its message")
        yield key >> 3, wire_type, start, position


def read_varint(message: bytes, position: int) -> tuple[int, int]:
    """The number at `position` and the position after it."""
    number = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
    raise WireError("a number has no end")


HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES

CRC_START = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78
MASK_DELTA = 0xA282EAD8


def _make_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


CRC_TABLE = _make_table()


def extend_crc(state: int, data: bytes) -> int:
    """The running CRC-32C state after `data`; start from `CRC_START`, end with `finish_crc`."""
    table = CRC_TABLE
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state


def finish_crc(state: int) -> bytes:
    """The four bytes an event file holds for a running state."""
    crc = state ^ 0xFFFFFFFF
    return ((((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF).to_bytes(4, "little")


@functools.lru_cache(4096)
def record_header(length: int) -> bytes:
    """The twelve bytes in front of `length` bytes of data."""
    packed = length.to_bytes(8, "little")
    return packed + finish_crc(extend_crc(CRC_START, packed))


def frame(data: bytes) -> bytes:
    """One whole record around `data`."""
    return record_header(len(data)) + data + finish_crc(extend_crc(CRC_START, data))
