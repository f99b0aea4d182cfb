"""Writes a curve, a model and a film, slowly enough to be watched; started again it goes on where it was."""

import argparse
import pathlib
import time

from mosaic.analytics.event_files import EventWriter

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--total-timesteps", type=int, default=10)
parser.add_argument("--pause", type=float, default=0.0)
parser.add_argument("--fail-at", type=int, default=-1)
parser.add_argument("--until", default="", help="end only when there is a file of this name")
args = parser.parse_args()

folder = pathlib.Path("runs/curves")
state = pathlib.Path("step.txt")
begin = int(state.read_text()) if state.exists() else 0
writer = EventWriter(folder, purge_step=begin if begin else None)
for step in range(begin, args.total_timesteps):
    writer.add_scalar("charts/episodic_return", step * 2.0, step)
    writer.add_scalar("losses/value_loss", 1.0 / (step + 1), step)
    writer.flush()
    if step % 10 == 0:
        state.write_text(str(step))
    if step == args.fail_at:
        raise SystemExit("it fails here")
    time.sleep(args.pause)
while args.until and not pathlib.Path(args.until).exists():
    time.sleep(0.1)
writer.close()
videos = pathlib.Path("videos")
videos.mkdir(exist_ok=True)
(videos / "episode-0.mp4").write_bytes(b"\x00\x00\x00\x18ftypmp42" + bytes(100))
(folder / "curves.cleanrl_model").write_bytes(b"weights")
