"""A run that leaves a curve with many points, as fast as it can write them.

python points_script.py --env-id X --total-timesteps POINTS --seed N
"""

from __future__ import annotations

import argparse
import math
import random
from contextlib import closing
from pathlib import Path

from mosaic.analytics.event_files.writer import EventWriter

SIDE_EVERY = 100

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--seed", type=int)
options = parser.parse_args()

chance = random.Random(options.seed)
with closing(EventWriter(Path("runs", f"curve__{options.seed}"))) as writer:
    for step in range(options.total_timesteps):
        rise = 500 * (1 - math.exp(-4 * step / options.total_timesteps))
        writer.add_scalar("charts/episodic_return", rise + chance.gauss(0, 20), step)
        if step % SIDE_EVERY == 0:
            writer.add_scalar("losses/value_loss", chance.random() + 100 / (1 + step), step)
            writer.add_scalar("charts/SPS", 20_000 + chance.gauss(0, 500), step)
