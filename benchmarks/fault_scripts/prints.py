"""A script that prints a numbered line every few moments, and does nothing else."""

import argparse
import time

parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--pause", type=float, default=0.02)
options, _ = parser.parse_known_args()
for step in range(1, options.total_timesteps + 1):
    print(f"step={step}", flush=True)
    time.sleep(options.pause)
