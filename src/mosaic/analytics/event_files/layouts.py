"""Takes the numbers out of thousands of records at once: those of one layout differ in few bytes.

Whoever writes scalars writes the same bytes over and over, and between them a number, a time and a step. Once
one such record has been decoded, all others like it are told by their other bytes, which are compared as
words. The checksum is linear, so that only the bytes that differ have to be looked up.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.event_files.format import CRC_START, CRC_TABLE, MASK_DELTA, extend_crc
from mosaic.analytics.event_files.parser import Place

LONGEST = 1024
"""Bytes of data; longer records are decoded one by one."""
_WORD = 8

Bytes = NDArray[np.uint8]
Indices = NDArray[np.intp]


class Points(NamedTuple):
    """Scalars of one metric: which records of the block they stand in, and three columns."""

    tag: str
    records: Indices
    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]


class Layout:
    """Records that differ from `record` in the bytes at the places of its numbers only."""

    def __init__(
        self, record: bytes, values: Sequence[tuple[str, Place]], time: Place | None, step: Place | None
    ) -> None:
        self._values, self._time, self._step, self._length = tuple(values), time, step, len(record)
        mask = np.zeros(padded_size(len(record)), np.uint8)
        mask[: len(record)] = 0xFF
        free = [place for _, place in self._values] + ([time] if time else [])
        for place in free:
            mask[place.start : place.start + place.size] = 0
        if step:
            # The highest bit of each byte says whether the step goes on in the next one.
            mask[step.start : step.start + step.size] = 0x80
        places = np.flatnonzero(mask[: len(record)] != 0xFF)
        skeleton = np.zeros(len(mask), np.uint8)
        skeleton[: len(record)] = np.frombuffer(record, np.uint8)
        self._mask, self._skeleton = mask.view(np.uint64), (skeleton & mask).view(np.uint64)
        skeleton[places] = 0
        self._places = places
        self._constant = np.uint32(extend_crc(CRC_START, skeleton[: len(record)].tobytes()))
        self._tables = np.ascontiguousarray(_crc_tables()[len(record) - 1 - places]).ravel()
        self._columns = (np.arange(len(places), dtype=np.intp) * 256)[:, None]

    def fits(self, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these rows are of this layout."""
        differs = np.zeros(len(words), np.uint64)
        for column, (bits, expected) in enumerate(zip(self._mask, self._skeleton, strict=True)):
            if bits:
                differs |= (words[:, column] & bits) ^ expected
        fits: NDArray[np.bool_] = differs == 0
        return fits

    def sound(self, rows: Bytes) -> NDArray[np.bool_]:
        """Which of its rows have the checksum that stands behind them."""
        found = self._tables.take(rows.T[self._places] + self._columns)
        crc = ~(np.bitwise_xor.reduce(found, axis=0) ^ self._constant)
        crc = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(MASK_DELTA)
        told: NDArray[np.uint32] = _column(rows, Place(self._length, 4), np.uint32)
        sound: NDArray[np.bool_] = crc == told
        return sound

    def points(self, rows: Bytes, records: Indices) -> list[Points]:
        """What its rows say."""
        times = _column(rows, self._time, np.float64) if self._time else np.zeros(len(rows))
        steps = np.zeros(len(rows), np.int64)
        for at in range(self._step.size if self._step else 0):
            assert self._step is not None
            steps |= (rows[:, self._step.start + at].astype(np.int64) & 127) << (7 * at)
        return [
            Points(tag, records, steps, times, _column(rows, place, _FLOATS[place.size]).astype(np.float64))
            for tag, place in self._values
        ]


_FLOATS = {4: np.float32, 8: np.float64}


def padded_size(length: int) -> int:
    """So many bytes hold a record with its checksum in whole words."""
    return -(-(length + 4) // _WORD) * _WORD


def rows_of(block: Bytes, starts: Indices, length: int) -> Bytes:
    """A row for each record; `block` goes on for at least a word behind the last one."""
    size = padded_size(length)
    windows: Bytes = np.ndarray((len(block) - size + 1, size), np.uint8, block, strides=(1, 1))
    return windows[starts]


def _column(rows: Bytes, place: Place, kind: Any) -> NDArray[Any]:
    column: NDArray[Any] = np.ascontiguousarray(rows[:, place.start : place.start + place.size]).view(kind)
    return column[:, 0]


@functools.cache
def _crc_tables() -> NDArray[np.uint32]:
    """Row d tells what each byte adds to the checksum when d bytes follow it."""
    first = np.array(CRC_TABLE, np.uint32)
    tables = np.empty((LONGEST, 256), np.uint32)
    tables[0] = first
    for at in range(1, LONGEST):
        tables[at] = (tables[at - 1] >> np.uint32(8)) ^ first[tables[at - 1] & np.uint32(0xFF)]
    return tables


_LANES = 256


def crc_of(data: bytes) -> int:
    """The running state of the checksum after `data`, for much of it: what `extend_crc` gives, but fast."""
    rest = len(data) % _LANES
    state = extend_crc(CRC_START, data[:rest])
    if rest == len(data):
        return state
    lanes = np.frombuffer(data, np.uint8, offset=rest).reshape(-1, _LANES).T
    tables = _crc_tables()
    added = np.zeros(lanes.shape[1], np.uint32)
    for at in range(_LANES):
        added ^= tables[_LANES - 1 - at].take(lanes[at])
    # What stands in the state is as the first four bytes of the next lane.
    ahead = tables[_LANES - 4 : _LANES].tolist()
    for one in added.tolist():
        state = (
            ahead[3][state & 0xFF]
            ^ ahead[2][state >> 8 & 0xFF]
            ^ ahead[1][state >> 16 & 0xFF]
            ^ ahead[0][state >> 24]
            ^ one
        )
    return state
