"""A script that soon ends, with the code that is asked for."""

import argparse
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--exit-code", type=int, default=0)
parser.add_argument("--seconds", type=float, default=0.0)
options, _ = parser.parse_known_args()
time.sleep(options.seconds)
sys.exit(options.exit_code)
