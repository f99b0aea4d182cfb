"""Turns blocks of records into scalars and purges.

Nearly every record is one number under a tag seen before. Those are recognised by the bytes around the
number, without looking into them; only the others are decoded. The data's own checksum is not computed: in
plain Python it would cost more than all the rest.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from mosaic.analytics.event_files.decode import Scalar, decode_event
from mosaic.analytics.event_files.records import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, record_header
from mosaic.analytics.event_files.series import ScalarChunk, Series
from mosaic.analytics.event_files.wire import WireError, read_varint, scalar_prefix, signed

_unpack_length = struct.Struct("<Q").unpack_from
_unpack_float = struct.Struct("<f").unpack_from
_unpack_double = struct.Struct("<d").unpack_from
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
        length: int = _unpack_length(header)[0]
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
            # Then it is no such record; decoding says whether it is sound.
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
