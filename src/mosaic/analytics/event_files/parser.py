"""Turns blocks of records into scalars, purges, and an index of everything else.

Nearly every record is one number under a metric seen before. Such a one is recognised by the bytes around its
number, time and step, without looking into them; only the others are decoded. Larger blocks are left to
`bulk`, which needs numpy: those who follow a run without it read small ones, and stay small themselves.
"""

from __future__ import annotations

import struct
import sys
from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from mosaic.analytics.event_files.format import (
    BYTES,
    CRC_START,
    FIXED32,
    FIXED64,
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    VARINT,
    WireError,
    extend_crc,
    fields,
    finish_crc,
    read_varint,
    record_header,
    signed,
    spans,
)

if TYPE_CHECKING:
    from mosaic.analytics.event_files.bulk import BulkParser

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


MediaKind = Literal["image", "video", "histogram", "text", "hparams"]


@dataclass(frozen=True, slots=True)
class Medium:
    """A picture, a text or the like: where its record stands. `load_medium` reads it."""

    name: str
    kind: MediaKind
    step: int
    time: float
    """Seconds since 1970."""
    path: str
    """The event file, relative to the folder that is read."""
    offset: int
    size: int
    """Bytes of the record's data."""


@dataclass(slots=True)
class ScalarChunk:
    """New points of one source.

    First forget that source's points with a step >= `purge_from`, then add these; `EARLIEST_STEP` there means
    that the source begins anew.
    """

    source: str
    purge_from: int | None = None
    series: dict[str, Series] = field(default_factory=dict)
    media: list[Medium] = field(default_factory=list)
    """What is not a number, where a reader was asked for it."""


_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")

_SESSION_START = 1
_TENSOR_SIZES = {1: _FLOAT.size, 2: _DOUBLE.size}
_SCALAR_PLUGINS = ("", "scalars")
_PLUGINS: dict[str, MediaKind] = {
    "images": "image",
    "histograms": "histogram",
    "text": "text",
    "hparams": "hparams",
}


class Place(NamedTuple):
    """Where some bytes of a record stand."""

    start: int
    size: int


class Scalar(NamedTuple):
    """A metric's name, its number, and where in the record that stands."""

    tag: str
    value: float
    place: Place


@dataclass
class Event:
    """What matters to us of one event; the places are those of its wall time and step."""

    wall_time: float = 0.0
    step: int = 0
    restarts: bool = False
    scalars: list[Scalar] = field(default_factory=list)
    media: list[tuple[str, MediaKind]] = field(default_factory=list)
    time_place: Place | None = None
    step_place: Place | None = None

    def media_at(self, path: str, offset: int, size: int) -> list[Medium]:
        """What it holds besides numbers, its record standing there."""
        return [
            Medium(name, kind, self.step, self.wall_time, path, offset, size) for name, kind in self.media
        ]


def decode_event(data: bytes) -> Event:
    """An event of any writer, fields in any order."""
    event = Event()
    for number, wire_type, start, stop in spans(data, 0, len(data)):
        if (number, wire_type) == (1, FIXED64):
            event.wall_time = _DOUBLE.unpack_from(data, start)[0]
            event.time_place = Place(start, stop - start)
        elif (number, wire_type) == (2, VARINT):
            event.step = signed(read_varint(data, start)[0])
            event.step_place = Place(start, stop - start)
        elif (number, wire_type) == (5, BYTES):
            for at, kind, inner, end in spans(data, start, stop):
                if (at, kind) == (1, BYTES):
                    _take_value(data, inner, end, event)
        elif (number, wire_type) == (7, BYTES):
            event.restarts = _is_session_start(data[start:stop])
    return event


def _take_value(data: bytes, start: int, stop: int, event: Event) -> None:
    tag, plugin, place, film = "", "", None, False
    medium: MediaKind | None = None
    for number, wire_type, inner, end in spans(data, start, stop):
        if (number, wire_type) == (1, BYTES):
            tag = data[inner:end].decode(errors="replace")
        elif (number, wire_type) == (2, FIXED32):
            place = Place(inner, 4)
        elif (number, wire_type) == (4, BYTES):
            medium = "image"
            film = b"GIF8" in data[inner : min(end, inner + _GIF_WITHIN)]
        elif (number, wire_type) == (5, BYTES):
            medium = "histogram"
        elif (number, wire_type) == (8, BYTES):
            place = _tensor_scalar(data, inner, end)
            film = b"GIF8" in data[inner : min(end, inner + _GIF_WITHIN)]
        elif (number, wire_type) == (9, BYTES):
            plugin = _plugin_name(data[inner:end])
            medium = _PLUGINS.get(plugin, medium)
    if place is not None and plugin in _SCALAR_PLUGINS:
        number = (_DOUBLE if place.size == _DOUBLE.size else _FLOAT).unpack_from(data, place.start)[0]
        event.scalars.append(Scalar(tag, number, place))
    elif medium == "hparams":
        # The others tell what a session could be, and how it ended.
        event.media += [(tag, medium)] if tag.endswith(_SESSION_INFO) else []
    elif medium is not None:
        event.media.append((tag, "video" if film and medium == "image" else medium))


_SESSION_INFO = "session_start_info"
_GIF_WITHIN = 96
"""Height, width and colours of a picture stand before its file, in fewer bytes than this."""


def _tensor_scalar(data: bytes, start: int, stop: int) -> Place | None:
    """Where the one number of a float32 or float64 tensor stands; None for all other tensors."""
    size, found = 0, list[Place]()
    for number, wire_type, inner, end in spans(data, start, stop):
        if (number, wire_type) == (1, VARINT):
            size = _TENSOR_SIZES.get(data[inner], 0)
        elif number in (4, 5, 6) and wire_type in (BYTES, FIXED32, FIXED64):
            # tensor_content, float_val or double_val, the latter two packed or one by one.
            found.append(Place(inner, end - inner))
        elif (number, wire_type) == (2, BYTES) and not _is_shape_of_one(data[inner:end]):
            return None
    filled = [place for place in found if place.size]
    return filled[0] if size and [place.size for place in filled] == [size] else None


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


_KEPT = 4096
"""So many patterns are remembered, and lengths of records."""
_BULK_BYTES = 16 * 1024
"""From here on taking the records of a block all at once is quicker than one by one."""
_IMPORT_BYTES = 256 * 1024
"""The same where numpy would have to be imported for it."""
WRONG_CONTENT = "the checksum of a record's content is wrong"
MOST_CHECKED = 4096
"""Bytes of a record; the checksum of a longer one is looked at when somebody asks for what is in it."""


class CorruptRecord(Exception):
    """A record whose length or content cannot be right."""


@dataclass
class Scalars:
    """Collects what one source says into chunks; a purge opens a new chunk."""

    source: str
    media: bool = False
    """Whether to take what is not a number, too."""
    chunks: list[ScalarChunk] = field(default_factory=list)

    def chunk(self) -> ScalarChunk:
        """Where new points go."""
        if not self.chunks:
            self.chunks.append(ScalarChunk(self.source))
        return self.chunks[-1]

    def purge(self, step: int) -> None:
        """What was read before of this source, from `step` on, is void."""
        self.chunks.append(ScalarChunk(self.source, purge_from=step))

    def filled(self) -> list[ScalarChunk]:
        """The chunks that say something."""
        return [one for one in self.chunks if one.series or one.media or one.purge_from is not None]


@dataclass(slots=True)
class _Pattern:
    """Events of one length with number, time and step at the same places.

    `tags` has each name by all the other bytes, and the state of the checksum after those that come first.
    """

    fixed: list[slice]
    number: struct.Struct
    value: int
    time: int
    step: int
    end: int
    """Of the step."""
    tags: dict[bytes, tuple[str, int]] = field(default_factory=dict)

    def around(self, data: bytes) -> bytes:
        return b"".join([data[one] for one in self.fixed])


class EventParser:
    """Parses blocks of records; remembers the patterns and record lengths it has met."""

    def __init__(self) -> None:
        self._patterns: dict[int, list[_Pattern]] = {}
        self._lengths: dict[bytes, int] = {}
        self._bulk: BulkParser | None = None
        self.position = 0
        self.records = 0

    def parse(self, block: bytes, into: Scalars, limit: int, path: str = "", offset: int = 0) -> None:
        """Takes up to `limit` whole records off the front of `block`, which stands in `path` at `offset`.

        Afterwards `position` is where the next record begins and `records` how many were taken, also when
        CorruptRecord is raised.
        """
        self.position = self.records = 0
        if len(block) >= (_BULK_BYTES if "numpy" in sys.modules else _IMPORT_BYTES):
            if self._bulk is None:
                from mosaic.analytics.event_files.bulk import BulkParser

                self._bulk = BulkParser(self)
            self._bulk.parse(block, into, limit, path, offset)
            return
        end = len(block)
        while self.records < limit and self.position + FRAME_BYTES <= end:
            start = self.position + HEADER_BYTES
            stop = start + self.length(block[self.position : start])
            if stop + FOOTER_BYTES > end:
                break
            self._take(
                block[start:stop], block[stop : stop + FOOTER_BYTES], into, path, offset + self.position
            )
            self.position = stop + FOOTER_BYTES
            self.records += 1

    def length(self, header: bytes) -> int:
        """The length of the data behind a record's header."""
        known = self._lengths.get(header)
        if known is not None:
            return known
        length = int.from_bytes(header[:8], "little")
        if record_header(length) != header:
            raise CorruptRecord("the checksum of a record's length is wrong")
        if len(self._lengths) >= _KEPT:
            self._lengths.clear()
        self._lengths[header] = length
        return length

    def _take(self, data: bytes, checksum: bytes, into: Scalars, path: str, offset: int) -> None:
        known = self._known_scalar(data, checksum)
        if known is not None:
            tag, step, wall_time, value = known
            points = into.chunk().series.get(tag)
            if points is None:
                points = into.chunk().series[tag] = Series()
            points.append(step, wall_time, value)
            return
        check(data, checksum)
        event = decode(data)
        if event.restarts:
            into.purge(event.step)
        chunk = into.chunk()
        for scalar in event.scalars:
            chunk.series.setdefault(scalar.tag, Series()).append(event.step, event.wall_time, scalar.value)
        if into.media:
            chunk.media += event.media_at(path, offset, len(data))
        self._learn(data, event)

    def _known_scalar(self, data: bytes, checksum: bytes) -> tuple[str, int, float, float] | None:
        """(tag, step, wall time, value) of a record that is one number under a known tag."""
        for pattern in self._patterns.get(len(data), ()):
            known = pattern.tags.get(pattern.around(data))
            if known is not None:
                try:
                    step, end = read_varint(data, pattern.step)
                except WireError:
                    continue
                if end == pattern.end:
                    tag, state = known
                    if finish_crc(extend_crc(state, data[pattern.fixed[0].stop :])) != checksum:
                        raise CorruptRecord(WRONG_CONTENT)
                    value = pattern.number.unpack_from(data, pattern.value)[0]
                    return tag, signed(step), _DOUBLE.unpack_from(data, pattern.time)[0], value
        return None

    def _learn(self, data: bytes, event: Event) -> None:
        """Remembers where everything stands in an event that is one number, and nothing else."""
        time, step = event.time_place, event.step_place
        if len(event.scalars) != 1 or event.media or event.restarts or time is None or step is None:
            return
        (scalar,) = event.scalars
        free = sorted([time, step, scalar.place])
        edges = [0, *(edge for place in free for edge in (place.start, place.start + place.size)), len(data)]
        fixed = [slice(begin, end) for begin, end in list(pairwise(edges))[::2]]
        number = _DOUBLE if scalar.place.size == _DOUBLE.size else _FLOAT
        made = _Pattern(fixed, number, scalar.place.start, time.start, step.start, step.start + step.size)
        patterns = self._patterns.setdefault(len(data), [])
        found = next((one for one in patterns if (one.fixed, one.number) == (fixed, number)), made)
        if found is made:
            patterns.append(made)
        if len(found.tags) >= _KEPT or len(self._patterns) >= _KEPT:
            # What is in use is soon learnt again.
            self._patterns.clear()
        found.tags[found.around(data)] = scalar.tag, extend_crc(CRC_START, data[fixed[0]])


def check(data: bytes, checksum: bytes) -> None:
    """CorruptRecord when the data are not those of the checksum."""
    if len(data) <= MOST_CHECKED and finish_crc(extend_crc(CRC_START, data)) != checksum:
        raise CorruptRecord(WRONG_CONTENT)


def decode(data: bytes) -> Event:
    """What an event holds; CorruptRecord when it is not one."""
    try:
        return decode_event(data)
    except (WireError, struct.error) as error:
        raise CorruptRecord(f"a record's content cannot be read ({error})") from error
