"""A script that writes a short curve, without torch."""

import argparse
import time
from contextlib import closing
from pathlib import Path

from mosaic.analytics.event_files import EventWriter

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("--pause", type=float, default=0.0)
parser.add_argument("--after", type=Path, default=Path("."))
options = parser.parse_args()
while not options.after.exists():
    time.sleep(0.02)
with closing(EventWriter(Path(f"runs/curves__{options.seed}"))) as writer:
    for step in range(1, options.total_timesteps + 1):
        writer.add_scalar("charts/episodic_return", float(step), step)
        writer.flush()
        time.sleep(options.pause)
