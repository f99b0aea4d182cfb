"""A script of somebody else's: argparse, no `main()`, the standard library only."""

import argparse
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("--pause", type=float, default=0.0)
parser.add_argument("--exit-code", type=int, default=0)
parser.add_argument("--complain", default="")
options = parser.parse_args()
for step in range(options.total_timesteps):
    print(f"step={step}", flush=True)
    time.sleep(options.pause)
if options.complain:
    print(options.complain, file=sys.stderr)
sys.exit(options.exit_code)
