"""The few rules of protobuf's wire format that event files need, without the weight of protobuf."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_INT64_MASK = (1 << 64) - 1
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """The bytes are no protobuf message."""


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
    position, end = 0, len(message)
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
        yield key >> 3, wire_type, message[start:position]


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
