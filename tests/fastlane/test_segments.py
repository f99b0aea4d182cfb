"""Segments: who may read them, how many fit, and what a viewer says of one that is not right."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mosaic.fastlane import layout, slots
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.reader import FastLaneReader
from mosaic.fastlane.segment import Segment, SegmentError, create_segment, list_segments, remove_segment
from mosaic.fastlane.writer import SlotWriter


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(layout.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def test_a_segment_belongs_to_its_owner_alone() -> None:
    path = create_segment("RUN", "grid")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.name == "mosaic.fastlane.RUN"
    assert list_segments() == ["RUN"]
    remove_segment("RUN")
    remove_segment("RUN")
    assert list_segments() == []


@pytest.mark.parametrize(
    ("mode", "shown"), [("single", range(3, 4)), ("grid", range(6)), ("off", range(3, 3))]
)
def test_the_mode_says_which_slots_are_shown(mode: str, shown: range) -> None:
    segment = Segment(create_segment("RUN", mode, slot=3, limit=6))
    assert (segment.mode, list(segment.shown)) == (mode, list(shown))


def test_a_run_started_again_gets_a_new_segment() -> None:
    with closing(FastLaneReader(create_segment("RUN", "grid"))) as old:
        create_segment("RUN", "grid")
        assert old.ended


def test_no_room_is_said_and_leaves_nothing(folder: Path) -> None:
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000));"
        "from mosaic.fastlane.segment import create_segment, SegmentError\n"
        "try: create_segment('RUN', 'grid')\n"
        "except SegmentError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("There is no room for live frames")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a segment"),
        (b"PNG" * 10_000, "not a segment"),
        (layout.MAGIC + (7).to_bytes(4, sys.byteorder) + bytes(80_000), "have format 7"),
        (layout.MAGIC + layout.VERSION.to_bytes(4, sys.byteorder) + bytes(5_000), "cut short"),
    ],
)
def test_a_file_that_is_no_segment_is_named(content: bytes, words: str, folder: Path) -> None:
    path = folder / "mosaic.fastlane.RUN"
    path.write_bytes(content)
    with pytest.raises(SegmentError, match=words):
        FastLaneReader(path)


def test_a_region_cut_off_later_is_refused_and_not_fatal() -> None:
    path = create_segment("RUN", "grid")
    segment = Segment(path)
    slot = slots.claim(segment, slots.Owner.myself())
    assert slot == 0
    base = slots.entry(0)
    segment.words[base + layout.REGION] = layout.pack_region(1 << 20, 1 << 20)
    segment.words[base + layout.NEWEST] = 1
    with closing(FastLaneReader(path)) as reader, pytest.raises(SegmentError, match="cut short"):
        reader.read(0)


def test_frames_that_grow_and_grow_leave_little_behind() -> None:
    path = create_segment("RUN", "grid")
    segment = Segment(path)
    slot = slots.claim(segment, slots.Owner.myself())
    assert slot is not None
    writer = SlotWriter(segment, slot)
    for size in range(1, 200):
        writer.publish(np.zeros((size, size, 3), np.uint8), 0.0, 0.0, 0.0)
    assert path.stat().st_size < 12 * 200 * 200 * 3


def test_a_segment_cut_short_is_told_to_whoever_looks() -> None:
    path = create_segment("RUN", "grid")
    segment = Segment(path)
    assert slots.claim(segment, slots.Owner.myself()) == 0
    segment.words[slots.entry(0) + layout.REGION] = layout.pack_region(1 << 20, 1 << 20)
    segment.words[slots.entry(0) + layout.NEWEST] = 1
    with LiveGrid("RUN") as grid:
        assert not grid.look()
        assert "cut short" in grid.status().reason


def test_a_link_in_place_of_a_segment_is_refused(tmp_path: Path) -> None:
    path = create_segment("RUN", "grid")
    link = tmp_path / "mosaic.fastlane.LINK"
    link.symlink_to(path)
    with pytest.raises(SegmentError, match="cannot be opened"):
        FastLaneReader(link)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_segment_of_another_user_is_refused() -> None:
    path = create_segment("RUN", "grid")
    os.chown(path, 1234, 1234)
    with pytest.raises(SegmentError, match="another user"):
        FastLaneReader(path)


CLAIM_IN_EIGHT_CHILDREN = """
import os, sys
from pathlib import Path
from mosaic.fastlane import slots
from mosaic.fastlane.segment import Segment
answer, stay = os.pipe(), os.pipe()
for _ in range(8):
    if os.fork() == 0:
        os.close(stay[1])
        os.write(answer[1], bytes([slots.claim(Segment(Path(sys.argv[1])), slots.Owner.myself())]))
        os.read(stay[0], 1)
        os._exit(0)
claimed = b"".join(os.read(answer[0], 1) for _ in range(8))
os.close(stay[1])
for _ in range(8):
    os.wait()
print(sorted(claimed))
"""


def test_eight_processes_get_eight_slots() -> None:
    path = create_segment("RUN", "grid")
    command = [sys.executable, "-c", CLAIM_IN_EIGHT_CHILDREN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(list(range(8)))
    assert slots.claim(Segment(path), slots.Owner.myself()) == 0, "the dead leave their slots"
