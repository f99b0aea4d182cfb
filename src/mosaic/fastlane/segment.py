"""One segment: a file in shared memory that its owner alone can read."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from mosaic.fastlane import layout


class SegmentError(Exception):
    """A segment that cannot be made or used; the text is one sentence for a person."""


def create_segment(run_id: str, mode: str, slot: int = 0, limit: int = 8) -> Path:
    """Make the segment of a run, in place of one that an earlier start of this run left behind.

    In mode `single` only `slot` is shown, in mode `grid` the first `limit` slots.
    """
    path = layout.segment_path(run_id)
    first, shown = (slot, 1) if mode == "single" else (0, limit if mode == "grid" else 0)
    head = struct.pack("=8sIIII", layout.MAGIC, layout.VERSION, layout.MODES.index(mode), first, shown)
    remove_segment(run_id)
    # Made under another name, so that nobody opens it half made.
    draft = _draft(path)
    try:
        handle = os.open(str(draft), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SegmentError(f"The segment {path} cannot be made: {error.strerror}.") from error
    try:
        # Allocated in full: a full memory is an error here and not a crash at some later write.
        os.posix_fallocate(handle, 0, layout.FIXED_BYTES)
        os.pwrite(handle, run_id.encode()[: layout.RUN_ID_BYTES], layout.HEAD_RUN_ID)
        os.pwrite(handle, head, 0)
        os.rename(str(draft), str(path))
    except OSError as error:
        os.unlink(str(draft))
        raise SegmentError(f"There is no room for live frames in {path.parent}: {error.strerror}.") from error
    finally:
        os.close(handle)
    return path


def remove_segment(run_id: str) -> None:
    """Take the segment of a run away; who has it open sees that the run ended."""
    path = layout.segment_path(run_id)
    for file in (path, _draft(path)):
        with contextlib.suppress(OSError):
            file.unlink()


def _draft(path: Path) -> Path:
    return path.with_name("." + path.name)


def list_segments() -> list[str]:
    """The ids of the runs that have a segment."""
    found = layout.segment_folder().glob(layout.PREFIX + "*")
    return sorted(path.name[len(layout.PREFIX) :] for path in found)


class Segment:
    """An open segment; its fixed part as words, its regions on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = os.open(str(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise SegmentError(f"The live frames in {path} cannot be opened: {error.strerror}.") from error
        try:
            self._check()
            self._fixed = mmap.mmap(self._handle, layout.FIXED_BYTES)
        except BaseException:
            os.close(self._handle)
            raise
        self._close_handle = weakref.finalize(self, os.close, self._handle)
        self.words = memoryview(self._fixed).cast("Q")
        self.floats = memoryview(self._fixed).cast("B").cast("d")
        self.bytes = memoryview(self._fixed)

    def _check(self) -> None:
        status = os.fstat(self._handle)
        if status.st_uid != os.geteuid():
            # Its owner could cut it short at any moment, and that would be the end of who looks.
            raise SegmentError(f"The live frames in {self.path} belong to another user.")
        head = os.pread(self._handle, 24, 0)
        if len(head) < 24 or head[:8] != layout.MAGIC:
            raise SegmentError(f"{self.path} is not a segment of live frames.")
        (version,) = struct.unpack_from("=I", head, layout.HEAD_VERSION)
        if version != layout.VERSION:
            raise SegmentError(
                f"The live frames in {self.path} have format {version}, this release knows {layout.VERSION}."
            )
        if status.st_size < layout.FIXED_BYTES:
            raise SegmentError(f"The live frames in {self.path} are cut short.")

    @property
    def mode(self) -> str:
        return layout.MODES[self._head_number(layout.HEAD_MODE)]

    @property
    def shown(self) -> range:
        """The slots that show frames."""
        first = self._head_number(layout.HEAD_FIRST)
        return range(first, first + self._head_number(layout.HEAD_LIMIT))

    def _head_number(self, offset: int) -> int:
        (number,) = struct.unpack_from("=I", self._fixed, offset)
        return int(number)

    def look(self) -> None:
        """Leave word that somebody looks at this run, whether it has environments yet or not."""
        self.floats[layout.HEAD_LOOKED // layout.WORD] = time.monotonic()

    @property
    def looked_at(self) -> bool:
        """Whether somebody looks, or did a moment ago."""
        return time.monotonic() - self.floats[layout.HEAD_LOOKED // layout.WORD] <= layout.WATCHED_SECONDS

    def enter_phase(self, phase: str) -> None:
        """Tell what the training side does now, one of `START_PHASES`; that it steps is seen without."""
        self.words[layout.HEAD_PHASE // layout.WORD] = layout.START_PHASES.index(phase) + 1

    @property
    def phase(self) -> str:
        """How far the training side has come: one of `START_PHASES` or `first steps`; empty if untold."""
        if any(self.column(layout.STEPS)):
            return layout.FIRST_STEPS
        told = self.words[layout.HEAD_PHASE // layout.WORD]
        return layout.START_PHASES[told - 1] if 0 < told <= len(layout.START_PHASES) else ""

    @property
    def unseen_steps(self) -> memoryview:
        """The counter of steps in environments that have no slot."""
        at = layout.HEAD_STEPS // layout.WORD
        return self.words[at : at + 1]

    @property
    def steps(self) -> int:
        """Steps of all environments, also of those that have no slot."""
        return sum(self.column(layout.STEPS)) + self.unseen_steps[0]

    def column(self, word: int) -> memoryview:
        """The same word of every slot's entry."""
        return self.words[layout.TABLE // layout.WORD + word :: layout.SLOT_BYTES // layout.WORD]

    def watched(self, now: float) -> int:
        """How many slots somebody looks at now."""
        first = layout.TABLE // layout.WORD + layout.VIEWER_MARK
        marks = self.floats[first :: layout.SLOT_BYTES // layout.WORD]
        return sum(mark > now - layout.WATCHED_SECONDS for mark in marks)

    @property
    def ended(self) -> bool:
        """Whether the file is gone, as it is when its run has ended."""
        return os.fstat(self._handle).st_nlink == 0

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone among all processes; the kernel lets go of it when a process dies."""
        handle = os.open(f"/proc/self/fd/{self._handle}", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            # Said aloud, because a child that another thread forks meanwhile holds this descriptor too.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def grow(self, size: int) -> int:
        """Append a region of whole pages; gives the word for it."""
        with self.locked():
            end = os.fstat(self._handle).st_size
            try:
                os.posix_fallocate(self._handle, end, size)
            except OSError as error:
                raise SegmentError(
                    f"There is no room for a frame in {self.path.parent}: {error.strerror}."
                ) from error
        return layout.pack_region(end, size)

    def map(self, offset: int, size: int) -> mmap.mmap:
        """A region; one that lies beyond the file's end is refused, as touching it would be fatal."""
        if offset + size > os.fstat(self._handle).st_size:
            raise SegmentError(f"The live frames in {self.path} are cut short.")
        return mmap.mmap(self._handle, size, offset=offset)

    def close(self) -> None:
        for view in (self.words, self.floats, self.bytes):
            view.release()
        self._fixed.close()
        self._close_handle()
