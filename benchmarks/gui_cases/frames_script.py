"""A run that shows environments at 30 frames a second each and writes scalars, until it is ended.

python frames_script.py --env-id X --total-timesteps STEPS --seed N --slots 16
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from mosaic.analytics.event_files.writer import EventWriter
from mosaic.fastlane import slots
from mosaic.fastlane.segment import Segment
from mosaic.fastlane.writer import SlotWriter

RATE = 30.0
HEIGHT, WIDTH = 200, 300
"""What CartPole's 600 × 400 pixels become on their way to a viewer."""
VARIETY = 60
SCALARS_PER_SECOND = 40

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("--slots", type=int, default=16)
options = parser.parse_args()


def moving_picture(number: int) -> np.ndarray:
    """A dark block on white, somewhere else in each frame."""
    picture = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    left = number * (WIDTH - 40) // VARIETY
    picture[120:150, left : left + 40] = 20
    return picture


def claim(segment: Segment) -> SlotWriter:
    slot = slots.claim(segment, slots.Owner.myself())
    assert slot is not None
    return SlotWriter(segment, slot)


segment = Segment(Path(os.environ["CLEANRL_FASTLANE_SEGMENT"]))
writers = [claim(segment) for _ in range(options.slots)]
pictures = [moving_picture(number) for number in range(VARIETY)]
step, began = 0, time.monotonic()
with closing(EventWriter(Path("runs", f"frames__{options.seed}"))) as events:
    while step < options.total_timesteps:
        for place, writer in enumerate(writers):
            writer.steps[0] = step
            writer.publish(
                pictures[(step + 7 * place) % VARIETY], 1.0, float(step % 500), RATE * len(writers)
            )
        for _ in range(int(SCALARS_PER_SECOND / RATE) + 1):
            events.add_scalar("charts/episodic_return", float(step % 500), step)
        events.add_scalar("charts/SPS", RATE * len(writers), step)
        step += 1
        time.sleep(max(0.0, began + step / RATE - time.monotonic()))
