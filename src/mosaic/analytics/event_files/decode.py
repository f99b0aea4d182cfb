"""Decodes one event of any writer, field by field."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from mosaic.analytics.event_files.wire import BYTES, FIXED32, FIXED64, VARINT, fields, read_varint, signed

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")

_SESSION_START = 1
_TENSOR_SIZES = {1: _FLOAT.size, 2: _DOUBLE.size}
_SCALAR_PLUGINS = ("", "scalars")


@dataclass(frozen=True)
class Scalar:
    """A tag and its number, as the bytes of a float32 or a float64."""

    tag: str
    packed: bytes

    @property
    def number(self) -> struct.Struct:
        """What makes a float of the bytes."""
        return _DOUBLE if len(self.packed) == _DOUBLE.size else _FLOAT

    @property
    def value(self) -> float:
        """The number itself."""
        value: float = self.number.unpack(self.packed)[0]
        return value


@dataclass
class Event:
    """What matters to us of one event."""

    wall_time: float = 0.0
    step: int = 0
    restarts: bool = False
    scalars: list[Scalar] = field(default_factory=list)


def decode_event(data: bytes) -> Event:
    """An event of any writer, fields in any order; values that are no scalars are left out."""
    event = Event()
    for number, wire_type, content in fields(data):
        if (number, wire_type) == (1, FIXED64):
            event.wall_time = _DOUBLE.unpack(content)[0]
        elif (number, wire_type) == (2, VARINT):
            event.step = signed(read_varint(content, 0)[0])
        elif (number, wire_type) == (5, BYTES):
            event.scalars += _summary_scalars(content)
        elif (number, wire_type) == (7, BYTES):
            event.restarts = _is_session_start(content)
    return event


def _summary_scalars(summary: bytes) -> list[Scalar]:
    values = [
        _summary_value(content) for number, kind, content in fields(summary) if (number, kind) == (1, BYTES)
    ]
    return [value for value in values if value is not None]


def _summary_value(message: bytes) -> Scalar | None:
    tag, plugin, packed = "", "", None
    for number, wire_type, content in fields(message):
        if (number, wire_type) == (1, BYTES):
            tag = content.decode(errors="replace")
        elif (number, wire_type) == (2, FIXED32):
            packed = content
        elif (number, wire_type) == (8, BYTES):
            packed = _tensor_scalar(content)
        elif (number, wire_type) == (9, BYTES):
            plugin = _plugin_name(content)
    return Scalar(tag, packed) if packed is not None and plugin in _SCALAR_PLUGINS else None


def _tensor_scalar(tensor: bytes) -> bytes | None:
    """The bytes of the one number of a float32 or float64 tensor; None for all other tensors."""
    size, packed = 0, b""
    for number, wire_type, content in fields(tensor):
        if (number, wire_type) == (1, VARINT):
            size = _TENSOR_SIZES.get(content[0], 0)
        elif number in (4, 5, 6) and wire_type in (BYTES, FIXED32, FIXED64):
            # tensor_content, float_val or double_val, the latter two packed or one by one.
            packed += content
        elif (number, wire_type) == (2, BYTES) and not _is_shape_of_one(content):
            return None
    return packed if size and len(packed) == size else None


def _is_shape_of_one(shape: bytes) -> bool:
    """Whether all dimensions have the size 1; a dimension of size 0 is an empty message."""
    dimensions = [content for number, _, content in fields(shape) if number == 2]
    sizes = [[content for number, _, content in fields(one) if number == 1] for one in dimensions]
    return all(size == [b"\x01"] for size in sizes)


def _plugin_name(metadata: bytes) -> str:
    for number, wire_type, plugin_data in fields(metadata):
        if (number, wire_type) == (1, BYTES):
            for inner, inner_type, name in fields(plugin_data):
                if (inner, inner_type) == (1, BYTES):
                    return name.decode(errors="replace")
    return ""


def _is_session_start(session_log: bytes) -> bool:
    return any(
        (number, wire_type) == (1, VARINT) and read_varint(content, 0)[0] == _SESSION_START
        for number, wire_type, content in fields(session_log)
    )
