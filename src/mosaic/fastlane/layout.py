"""Where everything lies in a segment. All numbers have the machine's own byte order: both ends are on it.

    page 0               head: magic, version, what is shown, the run's id
    from page 1          the slot table: one entry for each environment
    after the table      regions, appended when a slot shows its first frame, a larger one, or its first state

A region holds three frames, each behind a head of its own, or the state of an environment that another
process draws.
"""

from __future__ import annotations

import os
from pathlib import Path

MAGIC = b"MOSAICFL"
VERSION = 2
PAGE = 4096
WORD = 8

# The head, in bytes.
HEAD_VERSION = 8
HEAD_MODE = 12
HEAD_FIRST = 16
HEAD_LIMIT = 20
HEAD_RUN_ID = 64
RUN_ID_BYTES = 64
HEAD_PHASE = 128
HEAD_LOOKED = 136
HEAD_STEPS = 144
"""Steps of environments that have no slot, as those of evaluations between two updates."""
HEAD_DRAWER = 192
"""Process id and start time of the process that draws, in two words."""

# The slot table.
SLOTS = 256
SLOT_BYTES = 256
TABLE = PAGE
FIXED_BYTES = TABLE + SLOTS * SLOT_BYTES

# A slot's entry, in words of eight bytes.
OWNER_PID, OWNER_START, VIEWER_MARK, STEPS, NEWEST, REGION, PICTURE, REASON = range(8)
STATE, DRAWN, DRAWN_OUTSIDE = range(29, 32)
REASON_BYTES = (STATE - REASON) * WORD

# What `PICTURE` says.
NOTHING_YET, HAS_PICTURE, NO_PICTURE = range(3)

# What `DRAWN` says of a state that cannot be drawn outside; else it is the number of the newest drawn one.
NOT_DRAWABLE = 2**64 - 1

# Frame number n fills buffer n % DEPTH; its sequence is 2n - 1 while it is written, and 2n when it is whole.
DEPTH = 3
FRAME_HEAD = 512
SEQUENCE, WIDTH, HEIGHT, CHANNELS, CHECKSUM = range(5)
TAKEN_AT, LAST_REWARD, ROLLING_RETURN, STEP_RATE, MISSION = range(5, 10)
MISSION_BYTES = FRAME_HEAD - MISSION * WORD

MODES = ("off", "single", "grid")
IMPORTING, MAKING, FIRST_STEPS = "importing", "making environments", "first steps"
START_PHASES = (IMPORTING, MAKING)
"""What a training process does before its first step; `HEAD_PHASE` has the number of one, from 1."""
WATCHED_SECONDS = 2.0
"""How long a viewer's mark lasts."""

FOLDER_VARIABLE = "MOSAIC_FASTLANE_DIR"
PREFIX = "mosaic.fastlane."


def segment_folder() -> Path:
    """Where segments lie: shared memory, or the folder that `MOSAIC_FASTLANE_DIR` names."""
    return Path(os.environ.get(FOLDER_VARIABLE) or "/dev/shm")


def segment_path(run_id: str) -> Path:
    """The segment of a run."""
    return segment_folder() / (PREFIX + run_id)


def pack_region(offset: int, size: int) -> int:
    """Offset and size of a region in one word, which readers see change at once. Both are whole pages."""
    return (offset // PAGE) << 32 | (size // PAGE)


def unpack_region(word: int) -> tuple[int, int]:
    """Offset and size of a region in bytes; size 0 means that there is none yet."""
    return (word >> 32) * PAGE, (word & 0xFFFFFFFF) * PAGE


def pack_text(text: str, size: int) -> bytes:
    """A text in a field of so many bytes, of which the last is zero; what does not fit is left out."""
    return text.encode("utf-8", "replace")[: size - 1].ljust(size, b"\0")


def unpack_text(field: bytes) -> str:
    """The text in a field; a character that was cut in half is left out."""
    return field.partition(b"\0")[0].decode("utf-8", "ignore")


def lacks_package(package: str) -> str:
    """The reason for no picture where a package is not installed; `lacking_package` reads it."""
    return f"the package '{package}', which draws it, is not installed"


def lacking_package(reason: str) -> str:
    """The package that a reason for no picture names; empty where it is another reason."""
    package = "".join(reason.split("'")[1:2])
    return package if reason == lacks_package(package) else ""


def frame_stride(region_size: int) -> int:
    """How far apart the frames of a region lie."""
    return region_size // DEPTH // 64 * 64


def region_size(frame_bytes: int) -> int:
    """The size of a region for frames of so many bytes."""
    stride = (FRAME_HEAD + frame_bytes + 63) // 64 * 64
    return (stride * DEPTH + PAGE - 1) // PAGE * PAGE
