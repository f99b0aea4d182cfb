"""A script that writes its model after a while, in the usual manner."""

import argparse
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=0.0)
options, _ = parser.parse_known_args()
time.sleep(options.seconds)
folder = Path("runs") / "saves"
folder.mkdir(parents=True)
(folder / "saves.cleanrl_model").write_bytes(bytes(1_000_000))
