"""How fast `ppo` trains on grid worlds beside an earlier checkout: CPU time of whole trainings on one core.

git worktree add ../earlier 0942555
python benchmarks/grids.py --old ../earlier [--envs BabyAI-GoToLocal-v0 …] [--rounds 3] [--steps N] [--core N]

Old and new take turns, each time in a new process with one thread, so that other work on the machine hits
both alike. Importing torch is left out, all else counts: making the environments, training, writing curves,
checkpoints and the model, and the evaluation after it. Three rounds of all environments take 6 minutes on a
quiet machine. The page is written when all environments are measured; else the table is printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tables import Table, write_tables

ENVS = (
    "BabyAI-GoToRedBallNoDists-v0",
    "BabyAI-GoToLocal-v0",
    "BabyAI-BossLevel-v0",
    "MiniGrid-DoorKey-8x8-v0",
)
WANTED = 2.0
"""So many times as fast as the earlier checkout."""
HERE = Path(__file__).resolve().parents[1]
MEASURED = """\
import pathlib, sys, time
import torch
from cleanrl_worker.algorithms import ppo
assert pathlib.Path(ppo.__file__).is_relative_to(sys.argv[1]), ppo.__file__
start = time.process_time()
code = ppo.main(sys.argv[2:])
print("\\nCPU", time.process_time() - start)
sys.exit(code)
"""
HEADER = ("environment", "old", "new", "old median", "new median", "old ÷ new", "each round", "at least 2 ×")
TEXT = """\
CPU seconds of whole trainings with `ppo`, {steps:,} steps with its default parameters and the seeds 1 to
{rounds}: old is the checkout at `{commit}`, new is this one. They took turns, each in a process of its
own, on one core with one thread. Importing torch is left out; environments, curves, checkpoints, the
model and the evaluation after training count. Read a row from the left: the seconds of each round, the
medians, how many times as fast new is by the medians, and in each round.

The load average of the machine was {before:.1f} before and {after:.1f} after, on {cores} cores; the measured
process alone makes it 1."""


def main() -> int:
    options = parse_options()
    os.sched_setaffinity(0, {options.core})
    before = os.getloadavg()[1]
    rows = [measure(env_id, options) for env_id in options.envs]
    table = Table(HEADER, rows)
    if tuple(options.envs) != ENVS:
        print("\n".join(table.lines()))
        return 0
    commit = subprocess.check_output(["git", "-C", options.old, "rev-parse", "--short", "HEAD"], text=True)
    text = TEXT.format(
        steps=options.steps,
        rounds=options.rounds,
        commit=commit.strip(),
        before=before,
        after=os.getloadavg()[1],
        cores=os.cpu_count(),
    )
    write_tables("grids", "Grid worlds", text, [table], ("torch", "gymnasium", "numpy", "minigrid"))
    return 0


def measure(env_id: str, options: argparse.Namespace) -> list[str]:
    """The row of an environment."""
    old: list[float] = []
    new: list[float] = []
    for seed in range(1, options.rounds + 1):
        old.append(train(options.old.resolve(), env_id, options.steps, seed))
        new.append(train(HERE, env_id, options.steps, seed))
        print(f"{env_id:30} seed {seed}  old {old[-1]:6.2f} s  new {new[-1]:6.2f} s", flush=True)
    ratio = median(old) / median(new)
    return [
        env_id,
        ", ".join(f"{seconds:.1f}" for seconds in old),
        ", ".join(f"{seconds:.1f}" for seconds in new),
        f"{median(old):.1f}",
        f"{median(new):.1f}",
        f"**{ratio:.2f} ×**",
        ", ".join(f"{one / other:.2f}" for one, other in zip(old, new, strict=True)),
        "yes" if ratio >= WANTED else "**no**",
    ]


def train(checkout: Path, env_id: str, steps: int, seed: int) -> float:
    """CPU seconds of a training with the code of a checkout."""
    source = checkout / "src"
    flags = [f"--env-id={env_id}", f"--total-timesteps={steps}", f"--seed={seed}"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(source), *flags],
            cwd=folder,
            env={**os.environ, **threads, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return float(done.stdout.rsplit("CPU", 1)[1])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, required=True, help="the earlier checkout")
    parser.add_argument("--envs", nargs="+", default=list(ENVS), help="the environments to train on")
    parser.add_argument("--rounds", type=int, default=3, help="how often old and new take turns")
    parser.add_argument("--steps", type=int, default=16384, help="the steps of each training")
    parser.add_argument("--core", type=int, default=0, help="the core to run on")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
