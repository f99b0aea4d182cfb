"""Turns blocks of records into scalars and purges.

Nearly every record is one number under a tag seen before. Those are recognised by the bytes around the
number, without looking into them; only the others are decoded. The data's own checksum is not computed: in
plain Python it would cost more than all the rest.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, field

from mosaic.analytics.event_files.format import (
    BYTES,
    FIXED32,
    FIXED64,
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    VARINT,
    WireError,
    fields,
    read_varint,
    record_header,
    scalar_prefix,
    signed,
)

EARLIEST_STEP = -(2**63)


@dataclass(slots=True)
class Series:
    """One tag's points in the order they were written, in three columns of equal length."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    wall_times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.steps)

    def append(self, step: int, wall_time: float, value: float) -> None:
        """Adds one point."""
        self.steps.append(step)
        self.wall_times.append(wall_time)
        self.values.append(value)

    def extend(self, other: Series) -> None:
        """Adds all points of another series."""
        self.steps.extend(other.steps)
        self.wall_times.extend(other.wall_times)
        self.values.extend(other.values)

    def without(self, purge_from: int) -> Series:
        """The points before step `purge_from`."""
        kept = Series()
        for step, wall_time, value in zip(self.steps, self.wall_times, self.values, strict=True):
            if step < purge_from:
                kept.append(step, wall_time, value)
        return kept


@dataclass(slots=True)
class ScalarChunk:
    """New points of one source.

    First forget that source's points with a step >= `purge_from`, then add these; `EARLIEST_STEP` there means
    that the source begins anew.
    """

    source: str
    purge_from: int | None = None
    series: dict[str, Series] = field(default_factory=dict)


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
    """An event of any writer, fields in any order; values that are not scalars are left out."""
    event = Event()
    for number, wire_type, content in fields(data):
        if (number, wire_type) == (1, FIXED64):
            event.wall_time = _DOUBLE.unpack(content)[0]
        elif (number, wire_type) == (2, VARINT):
            event.step = signed(read_varint(content, 0)[0])
        elif (number, wire_type) == (5, BYTES):
            values = [
                _summary_value(inner) for at, kind, inner in fields(content) if (at, kind) == (1, BYTES)
            ]
            event.scalars += [value for value in values if value is not None]
        elif (number, wire_type) == (7, BYTES):
            event.restarts = _is_session_start(content)
    return event


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


_unpack_float, _unpack_double = _FLOAT.unpack_from, _DOUBLE.unpack_from
# The tail that EventWriter writes: the value, then the wall time and the step, each with its key.
_unpack_own_tail = struct.Struct("<fBdB").unpack_from

_KEY_WALL_TIME, _KEY_STEP, _KEY_SUMMARY = 0x09, 0x10, 0x2A
_KEPT = 65536


class CorruptRecord(Exception):
    """A record whose length or content cannot be right."""


@dataclass
class Scalars:
    """Collects the scalars of one source into chunks; a purge opens a new chunk."""

    source: str
    chunks: list[ScalarChunk] = field(default_factory=list)

    def series(self) -> dict[str, Series]:
        """Where new points go."""
        if not self.chunks:
            self.chunks.append(ScalarChunk(self.source))
        return self.chunks[-1].series

    def purge(self, step: int) -> None:
        """What was read before of this source, from `step` on, is void."""
        self.chunks.append(ScalarChunk(self.source, purge_from=step))

    def filled(self) -> list[ScalarChunk]:
        """The chunks that say something."""
        return [chunk for chunk in self.chunks if chunk.series or chunk.purge_from is not None]


@dataclass(slots=True)
class _Template:
    """Events of one length whose number stands at one place; `tags` is keyed by all bytes around it."""

    start: int
    number: struct.Struct
    tags: dict[bytes, str] = field(default_factory=dict)

    def around(self, content: bytes) -> bytes:
        return content[: self.start] + content[self.start + self.number.size :]


class EventParser:
    """Parses blocks of records; remembers the tags and record lengths it has met."""

    def __init__(self) -> None:
        self._tags: dict[bytes, str] = {}
        self._templates: dict[int, _Template] = {}
        self._lengths: dict[bytes, int] = {}
        self._packed_step, self._step = b"\0", 0
        """The step that was read last: the scalars of one update share it."""
        self.position = 0
        self.records = 0

    def parse(self, block: bytes, into: Scalars, limit: int) -> None:
        """Takes up to `limit` whole records off the front of `block`.

        Afterwards `position` is where the next record begins and `records` how many were taken, also when
        CorruptRecord is raised.
        """
        position = records = 0
        end, series, lengths = len(block), into.series(), self._lengths
        try:
            while records < limit and position + FRAME_BYTES <= end:
                start = position + HEADER_BYTES
                header = block[position:start]
                length = lengths.get(header)
                stop = start + (self.length(header) if length is None else length)
                if stop + FOOTER_BYTES > end:
                    break
                data = block[start:stop]
                scalar = self._known_scalar(data)
                if scalar is None:
                    self._take_any(data, into)
                    series = into.series()
                else:
                    tag, step, wall_time, value = scalar
                    points = series.get(tag)
                    if points is None:
                        points = series[tag] = Series()
                    points.steps.append(step)
                    points.wall_times.append(wall_time)
                    points.values.append(value)
                position = stop + FOOTER_BYTES
                records += 1
        finally:
            self.position, self.records = position, records

    def length(self, header: bytes) -> int:
        """The length of the data behind a record's header."""
        known = self._lengths.get(header)
        if known is not None:
            return known
        length = int.from_bytes(header[:8], "little")
        if record_header(length) != header:
            raise CorruptRecord("the checksum of a record's length is wrong")
        _make_room(self._lengths)
        self._lengths[header] = length
        return length

    def _known_scalar(self, data: bytes) -> tuple[str, int, float, float] | None:
        """(tag, step, wall time, value) of a record that is one number under a known tag."""
        try:
            if data[0] == _KEY_WALL_TIME:
                step, position = read_varint(data, 10) if data[9] == _KEY_STEP else (0, 9)
                tag = self._tags.get(data[position:-4])
                if tag is not None:
                    value = _unpack_float(data, len(data) - 4)[0]
                    return tag, signed(step), _unpack_double(data, 1)[0], value
                template = self._templates.get(len(data) - position)
                if template is None:
                    return None
                tag = template.tags.get(template.around(data[position:]))
                if tag is not None:
                    value = template.number.unpack_from(data, position + template.start)[0]
                    return tag, signed(step), _unpack_double(data, 1)[0], value
            elif data[0] == _KEY_SUMMARY:
                position = data[1] - 2
                tag = self._tags.get(data[:position])
                if tag is not None:
                    value, wall_time_key, wall_time, step_key = _unpack_own_tail(data, position)
                    if wall_time_key == _KEY_WALL_TIME and step_key == _KEY_STEP:
                        packed = data[position + 14 :]
                        step = self._step if packed == self._packed_step else self._read_step(packed)
                        return tag, step, wall_time, value
        except (IndexError, struct.error, WireError):
            # Then it is not such a record; decoding says whether it is sound.
            pass
        return None

    def _read_step(self, packed: bytes) -> int:
        number, end = read_varint(packed, 0)
        if end != len(packed):
            raise WireError("more than a step is left of a record")
        self._packed_step, self._step = packed, signed(number)
        return self._step

    def _take_any(self, data: bytes, into: Scalars) -> None:
        try:
            event = decode_event(data)
        except (WireError, struct.error) as error:
            raise CorruptRecord(f"a record's content cannot be read ({error})") from error
        if event.restarts:
            into.purge(event.step)
        series = into.series()
        for scalar in event.scalars:
            series.setdefault(scalar.tag, Series()).append(event.step, event.wall_time, scalar.value)
            _make_room(self._tags)
            self._tags[scalar_prefix(scalar.tag)] = scalar.tag
        if len(event.scalars) == 1 and data[0] == _KEY_WALL_TIME:
            self._learn_template(data, event.scalars[0])

    def _learn_template(self, data: bytes, scalar: Scalar) -> None:
        """Remembers where the number stands in an event such as this, if its bytes occur there only."""
        content = data[read_varint(data, 10)[1] :] if data[9] == _KEY_STEP else data[9:]
        start = content.find(scalar.packed)
        if start < 0 or start != content.rfind(scalar.packed):
            return
        template = self._templates.get(len(content))
        if template is None or (template.start, template.number.size) != (start, len(scalar.packed)):
            _make_room(self._templates)
            template = self._templates[len(content)] = _Template(start, scalar.number)
        _make_room(template.tags)
        template.tags[template.around(content)] = scalar.tag


def _make_room(kept: dict[bytes, int] | dict[bytes, str] | dict[int, _Template]) -> None:
    """Forgets everything when there is too much of it: what is in use is soon learnt again."""
    if len(kept) >= _KEPT:
        kept.clear()
