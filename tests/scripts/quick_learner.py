"""Learns at once, for tests of sweeps: what it earns depends on `--lr` alone, and is best at 0.01."""

import argparse
import math
import sys
import time
from pathlib import Path

from mosaic.analytics.event_files.writer import EventWriter

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int, default=1000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.001, help="how far a step goes")
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--pause", type=float, default=0.0, help="seconds between two points")
parser.add_argument("--points", type=int, default=20)
parser.add_argument("--metric", default="charts/episodic_return")
parser.add_argument("--fail-below", type=float, default=0.0)
parser.add_argument("--nan", action="store_true")
options = parser.parse_args()

best = 100 - 10 * abs(math.log10(options.lr) + 2) + 0.01 * options.seed
writer = EventWriter(Path("runs/quick"))
for point in range(1, options.points + 1):
    step = options.total_timesteps * point // options.points
    value = math.nan if options.nan else best * point / options.points
    writer.add_scalar(options.metric, value, step)
    writer.add_scalar("charts/SPS", 1000.0, step)
    writer.flush()
    time.sleep(options.pause)
    if options.lr < options.fail_below:
        sys.exit(f"lr {options.lr:.1g} is too low")
writer.close()
