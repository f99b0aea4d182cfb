"""A script that writes a numbered line and a numbered scalar every few moments."""

import argparse
import time
from pathlib import Path

from mosaic.analytics.event_files.writer import EventWriter

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("--pause", type=float, default=0.2)
parser.add_argument("--payload", type=int, default=0)
options = parser.parse_args()
writer = EventWriter(Path("runs") / "beats")
for step in range(1, options.total_timesteps + 1):
    print(f"step={step}{'x' * options.payload}", flush=True)
    writer.add_scalar("charts/episodic_return", float(step), step)
    writer.flush()
    time.sleep(options.pause)
writer.close()
