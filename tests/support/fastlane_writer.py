"""A process that publishes frames at full speed. Each pixel of a frame is the same, so a torn one shows.

python fastlane_writer.py SEGMENT HEIGHT WIDTH
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mosaic.fastlane import slots
from mosaic.fastlane.segment import Segment
from mosaic.fastlane.writer import SlotWriter

if __name__ == "__main__":
    segment = Segment(Path(sys.argv[1]))
    slot = slots.claim(segment, slots.Owner.myself())
    assert slot is not None
    writer = SlotWriter(segment, slot)
    frames = [np.full((int(sys.argv[2]), int(sys.argv[3]), 3), value, np.uint8) for value in range(256)]
    print(slot, flush=True)
    number = 0
    while True:
        writer.publish(frames[number % 256], float(number), 0.0, 0.0)
        number += 1
