"""The framing of event files: length, its checksum, the data, its checksum.

Checksums are CRC-32C, masked as the format asks. The length's checksum is kept by length: runs write few
different lengths, so a reader or writer computes it a handful of times only.
"""

from __future__ import annotations

import struct

HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES

CRC_START = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_HEADERS_KEPT = 4096

_pack_length = struct.Struct("<Q").pack
_pack_crc = struct.Struct("<I").pack


def _make_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


CRC_TABLE = _make_table()
_headers: dict[int, bytes] = {}


def extend_crc(state: int, data: bytes) -> int:
    """The running CRC-32C state after `data`; start from `CRC_START`, end with `finish_crc`."""
    table = CRC_TABLE
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state


def finish_crc(state: int) -> bytes:
    """The four bytes an event file holds for a running state."""
    crc = state ^ 0xFFFFFFFF
    return _pack_crc((((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF)


def record_header(length: int) -> bytes:
    """The twelve bytes in front of `length` bytes of data."""
    header = _headers.get(length)
    if header is None:
        packed = _pack_length(length)
        header = packed + finish_crc(extend_crc(CRC_START, packed))
        if len(_headers) >= _HEADERS_KEPT:
            _headers.clear()
        _headers[length] = header
    return header


def frame(data: bytes) -> bytes:
    """One whole record around `data`."""
    return record_header(len(data)) + data + finish_crc(extend_crc(CRC_START, data))
