"""One file beside a run that holds what was read of its event files, so that they are read once.

A magic number, a checksum of all that follows, a header in JSON, then the columns as they stand in memory.
Whatever is odd about the file, it counts as not there.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.artifacts import CACHE_NAME
from mosaic.analytics.event_files import Medium
from mosaic.contract.atomic import write_atomic

_MAGIC = b"MOSAICm1"
_HEAD = struct.Struct("<8sII")
"""The magic number, the checksum of what follows it, and the length of the header."""
_ALIGNED = 8
_ROOM = 256 * 2**20
"""A cache leaves so many bytes of the disk to those who train."""
_LEFT_OVER_SECONDS = 3600.0

Columns = tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]
"""Steps, times and values, steps and values in the smallest type that holds them."""


@dataclass(frozen=True)
class Cached:
    """What was read: how far, and by source the columns of each metric, and the media."""

    marks: Mapping[str, Sequence[int]]
    sources: Mapping[str, Mapping[str, Columns]]
    media: Mapping[str, Sequence[Medium]]


def load_cache(folder: Path) -> Cached | None:
    """What stands in a folder's cache; None when there is none of use."""
    try:
        data = (folder / CACHE_NAME).read_bytes()
        magic, checksum, size = _HEAD.unpack_from(data)
        if magic != _MAGIC or zlib.crc32(memoryview(data)[12:]) != checksum:
            return None
        header = json.loads(data[_HEAD.size : _HEAD.size + size])
        sources = {
            source: {name: _columns(data, place) for name, place in columns.items()}
            for source, columns in header["sources"].items()
        }
        media = {source: [Medium(*one) for one in ones] for source, ones in header["media"].items()}
        marks = {
            path: (int(offset), int(head), int(tail))
            for path, (offset, head, tail) in header["marks"].items()
        }
        if not {one.path for ones in media.values() for one in ones} <= marks.keys():
            return None
        return Cached(marks, sources, media)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None


def save_cache(folder: Path, cached: Cached) -> bool:
    """Write it in place of the one before; False where there is no room or no permission for it."""
    places: dict[str, dict[str, tuple[Any, ...]]] = {}
    parts: list[bytes] = []
    at = 0
    for source, metrics in cached.sources.items():
        for name, columns in metrics.items():
            small = tuple(map(_smallest, columns))
            begin = at
            for column in small:
                data = column.tobytes()
                parts += [data, bytes(-len(data) % _ALIGNED)]
                at += len(data) + len(parts[-1])
            place = (begin, len(columns[0]), *(column.dtype.str for column in small))
            places.setdefault(source, {})[name] = place
    media = {source: [astuple(one) for one in ones] for source, ones in cached.media.items()}
    header = json.dumps({"marks": cached.marks, "sources": places, "media": media}).encode()
    header += b" " * (-(_HEAD.size + len(header)) % _ALIGNED)
    body = b"".join([struct.pack("<I", len(header)), header, *parts])
    try:
        if shutil.disk_usage(folder).free < _ROOM + len(body):
            return False
        write_atomic(folder / CACHE_NAME, _MAGIC + struct.pack("<I", zlib.crc32(body)) + body, sync=False)
        _clean_up(folder)
        if not any((folder / path).exists() for path in cached.marks):
            # The run was removed meanwhile: nothing of it may stay.
            (folder / CACHE_NAME).unlink()
            folder.rmdir()
            return False
    except OSError:
        return False
    return True


def _columns(data: bytes, place: Sequence[Any]) -> Columns:
    begin, count, *kinds = place
    (header,) = struct.unpack_from("<I", data, 12)
    at = _HEAD.size + header + begin
    made = []
    for kind in kinds:
        column: NDArray[Any] = np.frombuffer(data, kind, count, at)
        made.append(column)
        at += -(-column.nbytes // _ALIGNED) * _ALIGNED
    steps, times, values = made
    return steps, times, values


def _smallest(column: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in four bytes each, where that loses nothing."""
    # Not by the absolute values: that of the least number of all would be negative.
    if column.dtype == np.int64 and len(column) and column.min() >= -(2**31) and column.max() < 2**31:
        return column.astype(np.int32)
    if column.dtype == np.float64:
        with np.errstate(over="ignore"):
            small = column.astype(np.float32)
        if np.array_equal(small, column, equal_nan=True):
            return small
    return column


def _clean_up(folder: Path) -> None:
    """Remove what writers left that were killed."""
    for path in folder.glob(f".{CACHE_NAME}.*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - _LEFT_OVER_SECONDS:
                path.unlink()
