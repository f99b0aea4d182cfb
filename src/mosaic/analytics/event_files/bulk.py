"""Parses large blocks of records: those of one layout are taken out of it all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.event_files.format import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, record_header
from mosaic.analytics.event_files.layouts import LONGEST, Indices, Layout, Points, rows_of
from mosaic.analytics.event_files.parser import (
    WRONG_CONTENT,
    CorruptRecord,
    Event,
    Scalars,
    Series,
    check,
    decode,
)

if TYPE_CHECKING:
    from mosaic.analytics.event_files.parser import EventParser

_KEPT = 4096
"""So many layouts are remembered."""
_FEW = 4
"""Fewer records of a length than this are decoded one by one: that is quicker."""
_MOST_NEW = 64
"""So many layouts are learnt of one length in one block: names that never come again are not worth it."""
_CHAINED = 4096
"""Bytes of the records that are looked for all at once."""


class _Found:
    """What a block holds; `ends` is the number of its first damaged record."""

    def __init__(self, ends: int) -> None:
        self.ends = ends
        self.damage: CorruptRecord | None = None
        self.points: list[Points] = []
        self.single: list[tuple[int, Event]] = []

    def end_before(self, record: int, damage: CorruptRecord) -> None:
        if record < self.ends:
            self.ends, self.damage = record, damage


class BulkParser:
    """What `EventParser` does with large blocks; it remembers the layouts it has met."""

    def __init__(self, parser: EventParser) -> None:
        self._parser = parser
        self._layouts: dict[int, list[Layout]] = {}
        self._checks = np.zeros(_CHAINED, np.uint32)
        """The checksum of each length, 0 before it is known."""

    def parse(self, block: bytes, into: Scalars, limit: int, path: str, offset: int) -> None:
        """As `EventParser.parse`, with the same numbers left behind in that one."""
        begins, sizes, damage = self._records(block, limit)
        found = _Found(len(begins))
        found.damage = damage
        padded = np.frombuffer(block + bytes(LONGEST), np.uint8)
        order = np.argsort(sizes, kind="stable")
        edges = np.flatnonzero(np.diff(sizes[order])) + 1
        for records in np.split(order, edges) if len(begins) else ():
            self._take_alike(block, padded, begins, records, int(sizes[records[0]]), found)
        _add(found, into, path, begins + (offset - HEADER_BYTES), sizes)
        parser, last = self._parser, found.ends - 1
        parser.records = found.ends
        parser.position = int(begins[last] + sizes[last]) + FOOTER_BYTES if found.ends else 0
        if found.damage is not None:
            raise found.damage

    def _records(self, block: bytes, limit: int) -> tuple[Indices, Indices, CorruptRecord | None]:
        """Where the data of each whole record begins, and how long it is."""
        begins, sizes = self._chained(block)
        position = int(begins[-1] + sizes[-1]) + FOOTER_BYTES if len(begins) else 0
        end, count = len(block), len(begins)
        starts, lengths = list[int](), list[int]()
        damage: CorruptRecord | None = None
        try:
            while count < limit and position + FRAME_BYTES <= end:
                start = position + HEADER_BYTES
                length = self._parser.length(block[position:start])
                position = start + length + FOOTER_BYTES
                if position > end:
                    break
                starts.append(start)
                lengths.append(length)
                count += 1
        except CorruptRecord as error:
            damage = error
        begins = np.concatenate([begins, np.array(starts, np.intp)])
        sizes = np.concatenate([sizes, np.array(lengths, np.intp)])
        return begins[:limit], sizes[:limit], damage if len(begins) <= limit else None

    def _chained(self, block: bytes) -> tuple[Indices, Indices]:
        """The records from the front of a block on, as far as one follows another: all at once.

        What looks like a header may stand inside of a record; then the chain ends there.
        """
        none = np.empty(0, np.intp)
        if len(block) < FRAME_BYTES:
            return none, none
        words = np.ndarray((len(block) - 3,), np.uint32, block, strides=(1,))
        heads = np.flatnonzero(words[4 : len(block) - FRAME_BYTES + 5] == 0)
        sizes = words[heads]
        short = sizes < _CHAINED
        heads, sizes = heads[short], sizes[short].astype(np.intp)
        for size in np.flatnonzero((np.bincount(sizes, minlength=_CHAINED) > 0) & (self._checks == 0)):
            self._checks[size] = int.from_bytes(record_header(int(size))[8:], "little")
        valid = words[heads + 8] == self._checks[sizes]
        heads, sizes = heads[valid], sizes[valid]
        ends = heads + sizes + FRAME_BYTES
        if not len(heads) or heads[0] != 0:
            return none, none
        breaks = np.flatnonzero(heads[1:] != ends[:-1])
        count = int(breaks[0]) + 1 if len(breaks) else len(heads)
        count -= int(ends[count - 1] > len(block))
        return heads[:count] + HEADER_BYTES, sizes[:count]

    def _take_alike(
        self,
        block: bytes,
        padded: NDArray[np.uint8],
        begins: Indices,
        records: Indices,
        length: int,
        found: _Found,
    ) -> None:
        """Takes records of one length."""
        if len(records) >= _FEW and length <= LONGEST:
            records = self._take_known(block, padded, begins, records, length, found)
        for record in records.tolist():
            start = int(begins[record])
            self._take_single(block, start, length, record, found)

    def _take_known(
        self,
        block: bytes,
        padded: NDArray[np.uint8],
        begins: Indices,
        records: Indices,
        length: int,
        found: _Found,
    ) -> Indices:
        """Takes those that have a layout; gives the others."""
        rows = rows_of(padded, begins[records], length)
        words = rows.view(np.uint64)
        layouts = self._layouts.setdefault(length, [])
        used: list[Layout] = []
        learnt = 0
        odd: list[int] = []
        waiting = iter(tuple(layouts))
        while len(records):
            layout = next(waiting, None)
            if layout is None:
                if learnt == _MOST_NEW:
                    break
                learnt += 1
                start = int(begins[records[0]])
                layout = _layout_of(block[start : start + length])
                if layout is None:
                    odd.append(int(records[0]))
                    rows, words, records = rows[1:], words[1:], records[1:]
                    continue
                layouts.append(layout)
            fits = layout.fits(words)
            if not fits.any():
                continue
            used.append(layout)
            whole = bool(fits.all())
            its, of = (rows, records) if whole else (rows[fits], records[fits])
            sound = layout.sound(its)
            if not sound.all():
                damage = CorruptRecord(WRONG_CONTENT)
                found.end_before(int(of[~sound].min()), damage)
            found.points += layout.points(its, of)
            rest = slice(0, 0) if whole else ~fits
            rows, words, records = rows[rest], words[rest], records[rest]
        # Those that were met last are asked first the next time.
        self._layouts[length] = used + [one for one in layouts if one not in used]
        if sum(map(len, self._layouts.values())) > _KEPT:
            self._layouts.clear()
        return np.concatenate([np.array(odd, np.intp), records])

    def _take_single(self, block: bytes, start: int, length: int, record: int, found: _Found) -> None:
        data = block[start : start + length]
        try:
            check(data, block[start + length : start + length + FOOTER_BYTES])
            found.single.append((record, decode(data)))
        except CorruptRecord as damage:
            found.end_before(record, damage)


def _layout_of(data: bytes) -> Layout | None:
    """What a record has in common with others of its kind, if it holds numbers and nothing else."""
    try:
        event = decode(data)
    except CorruptRecord:
        return None
    if not event.scalars or event.media or event.restarts:
        return None
    values = [(scalar.tag, scalar.place) for scalar in event.scalars]
    return Layout(data, values, event.time_place, event.step_place)


def _add(found: _Found, into: Scalars, path: str, offsets: Indices, sizes: Indices) -> None:
    """Hands over what was found before the damage, in the order in which it was written."""
    single = sorted((one for one in found.single if one[0] < found.ends), key=lambda one: one[0])
    points = [_cut(one, found.ends) for one in found.points] + list(_points_of(single))
    media = [
        (record, medium)
        for record, event in (single if into.media else ())
        for medium in event.media_at(path, int(offsets[record]), int(sizes[record]))
    ]
    purges = [(record, event.step) for record, event in single if event.restarts]
    edges = [0, *(record for record, _ in purges), found.ends]
    for at, (begin, end) in enumerate(pairwise(edges)):
        if at:
            into.purge(purges[at - 1][1])
        chunk = into.chunk()
        chunk.media += [medium for record, medium in media if begin <= record < end]
        inside = points if not purges else [_cut(one, end, begin) for one in points]
        for tag, columns in _by_tag(inside):
            series = chunk.series.setdefault(tag, Series())
            series.steps.frombytes(columns[0].tobytes())
            series.wall_times.frombytes(columns[1].tobytes())
            series.values.frombytes(columns[2].tobytes())


def _points_of(single: Iterable[tuple[int, Event]]) -> Iterator[Points]:
    for record, event in single:
        for scalar in event.scalars:
            place = np.array([record], np.intp), np.array([event.step], np.int64)
            yield Points(scalar.tag, *place, np.array([event.wall_time]), np.array([scalar.value]))


def _cut(points: Points, end: int, begin: int = 0) -> Points:
    """Those of the records from `begin` to `end`."""
    kept = (points.records >= begin) & (points.records < end)
    if kept.all():
        return points
    tag, records, steps, times, values = points
    return Points(tag, records[kept], steps[kept], times[kept], values[kept])


def _by_tag(points: Iterable[Points]) -> list[tuple[str, list[NDArray[Any]]]]:
    """Steps, times and values of each metric as they were written; the metrics by their first record."""
    parts: dict[str, list[Points]] = {}
    for one in points:
        if len(one.records):
            parts.setdefault(one.tag, []).append(one)
    made: list[tuple[int, str, list[NDArray[Any]]]] = []
    for tag, ones in parts.items():
        columns: list[NDArray[Any]] = list(ones[0][1:])
        if len(ones) > 1:
            columns = [np.concatenate([one[at] for one in ones]) for at in range(1, 5)]
            order = np.argsort(columns[0], kind="stable")
            columns = [column[order] for column in columns]
        made.append((int(columns[0][0]), tag, columns[1:]))
    return [(tag, columns) for _, tag, columns in sorted(made, key=lambda one: one[0])]
