"""Reads what event files hold besides numbers, one record at a time, when somebody asks for it.

What is in them was written by any script at all: nothing here trusts it, and nothing runs it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.event_files.format import (
    BYTES,
    FIXED64,
    FOOTER_BYTES,
    HEADER_BYTES,
    VARINT,
    WireError,
    fields,
    finish_crc,
    read_varint,
    record_header,
)
from mosaic.analytics.event_files.layouts import crc_of
from mosaic.analytics.event_files.parser import Medium
from mosaic.contract.errors import StorageError

Floats = NDArray[np.float64]

_LARGEST = float(np.finfo(np.float64).max)
_DOUBLE = struct.Struct("<d")


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many values lie between each `left` and `right`, in places that rise."""

    left: Floats
    right: Floats
    counts: Floats


@dataclass(frozen=True)
class Pictures:
    """One or several image files (PNG, JPEG or GIF), as they were written."""

    files: tuple[bytes, ...]


Content = Histogram | Pictures | str


def load_medium(folder: Path, medium: Medium) -> Content:
    """What a medium holds; StorageError with a sentence when it cannot be read."""
    where = f"The {medium.kind} {medium.name!r} of step {medium.step:,}"
    try:
        value = _value(_record(folder, medium), medium.name)
        if medium.kind == "histogram":
            return _histogram(value)
        if medium.kind == "text":
            return "\n\n".join(one.decode(errors="replace") for one in _strings(value))
        if medium.kind == "hparams":
            return _hparams(value)
        return _pictures(value)
    except OSError as error:
        raise StorageError(
            f"{where} cannot be read ({error.strerror}): {medium.path} is not there."
        ) from error
    except (WireError, ValueError, IndexError, struct.error) as error:
        raise StorageError(f"{where} is damaged ({error}): it cannot be shown.") from error


def _record(folder: Path, medium: Medium) -> bytes:
    """The record's data, checked."""
    descriptor = os.open(folder / medium.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        size = HEADER_BYTES + medium.size + FOOTER_BYTES
        record = os.pread(descriptor, size, medium.offset)
    finally:
        os.close(descriptor)
    data, told = record[HEADER_BYTES:-FOOTER_BYTES], record[-FOOTER_BYTES:]
    if len(record) != size or record[:HEADER_BYTES] != record_header(medium.size):
        raise ValueError("its event file has changed")
    if finish_crc(crc_of(data)) != told:
        raise ValueError("its checksum is wrong")
    return data


def _inside(message: bytes, number: int, wire_type: int = BYTES) -> Iterator[bytes]:
    return (content for at, kind, content in fields(message) if (at, kind) == (number, wire_type))


def _first(message: bytes, number: int) -> bytes:
    return next(_inside(message, number), b"")


def _value(event: bytes, name: str) -> bytes:
    """The value of that name in an event's summary."""
    for summary in _inside(event, 5):
        for value in _inside(summary, 1):
            if _first(value, 1).decode(errors="replace") == name:
                return value
    raise ValueError("it is not in its record any more")


def _strings(value: bytes) -> list[bytes]:
    """The strings of a value's tensor."""
    return [text for tensor in _inside(value, 8) for text in _inside(tensor, 8)]


def _pictures(value: bytes) -> Pictures:
    for image in _inside(value, 4):
        return Pictures((_first(image, 4),))
    # A tensor of width, height and then the files.
    return Pictures(tuple(_strings(value)[2:]))


def _histogram(value: bytes) -> Histogram:
    for old in _inside(value, 5):
        return _old_histogram(old)
    tensor = _first(value, 8)
    content = _first(tensor, 4) or b"".join(_inside(tensor, 6)) or b"".join(_inside(tensor, 6, FIXED64))
    table = np.frombuffer(content, "<f8").reshape(-1, 3)
    return _sound(table[:, 0], table[:, 1], table[:, 2])


def _old_histogram(message: bytes) -> Histogram:
    """One that names the upper limit of each bucket: the outermost may reach to infinity."""
    ends = {
        at: _DOUBLE.unpack(one)[0] for at, kind, one in fields(message) if at in (1, 2) and kind == FIXED64
    }
    limits = np.frombuffer(b"".join(_inside(message, 6)) or b"".join(_inside(message, 6, FIXED64)), "<f8")
    counts = np.frombuffer(b"".join(_inside(message, 7)) or b"".join(_inside(message, 7, FIXED64)), "<f8")
    if len(limits) != len(counts):
        raise ValueError("it has not as many limits as counts")
    low, high = ends.get(1, 0.0), ends.get(2, 0.0)
    filled = np.flatnonzero(counts)
    if not len(filled):
        return Histogram(*(np.empty(0),) * 3)
    edges = np.concatenate([[low], limits])
    first, last = int(filled[0]), int(filled[-1])
    kept = slice(first, last + 1)
    left, right = edges[:-1][kept].copy(), edges[1:][kept].copy()
    left[0], right[-1] = max(left[0], low) if left[0] > -_LARGEST else low, min(right[-1], high)
    return _sound(left, np.maximum(left, right), counts[kept])


def _sound(left: Floats, right: Floats, counts: Floats) -> Histogram:
    table = np.stack([left, right, counts])
    if not np.isfinite(table).all():
        raise ValueError("it holds what is not a number")
    return Histogram(*table)


def _hparams(value: bytes) -> str:
    """`name = value`, line by line."""
    plugin = _first(_first(value, 9), 1)
    lines = []
    for session in _inside(_first(plugin, 2), 3):
        for entry in _inside(session, 1):
            name = _first(entry, 1).decode(errors="replace")
            lines.append(f"{name} = {_hparam(_first(entry, 2))}")
    return "\n".join(sorted(lines))


def _hparam(message: bytes) -> str:
    for number, wire_type, content in fields(message):
        if (number, wire_type) == (2, FIXED64):
            return f"{_DOUBLE.unpack(content)[0]:g}"
        if (number, wire_type) == (3, BYTES):
            return content.decode(errors="replace")
        if (number, wire_type) == (4, VARINT):
            return "true" if read_varint(content, 0)[0] else "false"
    return "null"


def shown_name(medium: Medium) -> str:
    """A medium's name without what its writer adds to it."""
    if medium.kind == "hparams":
        return "hyperparameters"
    return medium.name.removesuffix("/text_summary")


def as_table(histograms: list[Histogram], bins: int) -> tuple[Floats, NDArray[Any]]:
    """The edges of so many bins over all histograms, and a row of counts for each of them."""
    filled = [one for one in histograms if len(one.counts)]
    if not filled:
        return np.linspace(0.0, 1.0, bins + 1), np.zeros((len(histograms), bins))
    low, high = min(float(one.left[0]) for one in filled), max(float(one.right[-1]) for one in filled)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    rows = []
    for one in histograms:
        if not len(one.counts):
            rows.append(np.zeros(bins))
            continue
        # Within a bucket the values are taken to be spread evenly; one without a width is a step.
        places = np.concatenate([one.left[:1], one.right])
        sums = np.concatenate([[0.0], np.cumsum(one.counts)])
        steady = np.maximum.accumulate(places + np.arange(len(places)) * (high - low) * 1e-12)
        below = np.interp(edges, steady, sums, left=0.0, right=sums[-1])
        below[-1] = sums[-1]
        rows.append(np.diff(below))
    return edges, np.stack(rows)
