"""Whether ppo_atari_envpool learns Pong in an hour on two cores: trains it, and plays at random beside it.

python benchmarks/pong.py --keep FOLDER [--hours 1 | --steps N]

How many steps an hour has is measured first. A call that was broken off goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np
from learning_figures import draw
from learning_pages import PAGES, cells, write_page
from learning_plan import Row
from learning_runs import Curve
from tables import Table, write_tables

from cleanrl_worker.algorithms.ppo_atari_envpool import SPEC
from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.kit.open_envs import open_envs
from mosaic.analytics.event_files import EventReader
from mosaic.contract.atomic import write_atomic

ALGO, ENV_ID, SEED = "ppo_atari_envpool", "PongNoFrameskip-v4", 1
PUBLISHED = (20.55, 0.37)
ROLLOUT = 8 * 128
PROBE_STEPS = 20 * ROLLOUT
RANDOM_EPISODES = 32
TEXT = """\
One seed, all parameters at their defaults, on games that EnvPool steps. The budget is what the time gives at
the speed that was measured before, and the learning rate falls to zero within it. The return is the game's
own, from -21 to 21: the mean over the episodes that end in the last tenth of training, with exploration. The
interval is that of the mean, 95 %. The random policy draws each action evenly. The published figure is that
of CleanRL's documentation, after 10,000,000 steps."""


def main() -> int:
    options = parse_options()
    folder: Path = options.keep / ALGO
    folder.mkdir(parents=True, exist_ok=True)
    steps = plan_steps(folder, options.steps, options.hours)
    seconds = train(folder, steps)
    (chunk,) = EventReader(folder / "runs").poll(10_000_000)
    episodes = chunk.series["charts/episodic_return"]
    curve = Curve(steps, list(episodes.steps), list(episodes.values))
    late = [value for step, value in zip(curve.steps, curve.returns, strict=True) if step > 0.9 * steps]
    by_chance = play_at_random()
    learned, chance = interval(late), interval(by_chance)
    rows = [
        ["random", "–", str(len(by_chance)), told(by_chance), "–"],
        [ALGO, f"{steps:,}", str(len(late)), told(late), "yes" if learned[0] > chance[1] else "**no**"],
        ["published", "10,000,000", "–", f"{PUBLISHED[0]} ± {PUBLISHED[1]} (over seeds)", "–"],
    ]
    header = ["policy", "steps", "episodes", "return", "above random beyond both intervals"]
    speed = f"\n\nTraining took {seconds / 60:.0f} minutes, {steps / seconds:.0f} steps a second."
    del sys.argv[1:]
    write_tables("pong", "Pong in an hour", TEXT + speed, [Table(header, rows)])
    row = Row(ALGO, ENV_ID, steps, PUBLISHED, "10,000,000 steps", least=round(chance[1], 2), seeds=(SEED,))
    draw(PAGES / "figures" / f"{ALGO}.png", {row: [curve]}, {})
    write_page(ALGO, [cells(row, [curve], None)])
    return 0


def interval(returns: Sequence[float]) -> tuple[float, float]:
    """Where the mean lies with 95 % confidence."""
    half = 1.96 * stdev(returns) / math.sqrt(len(returns))
    return fmean(returns) - half, fmean(returns) + half


def told(returns: Sequence[float]) -> str:
    low, high = interval(returns)
    return f"{fmean(returns):.2f} ({low:.2f} to {high:.2f})"


def command(steps: int, *more: str) -> list[str]:
    flags = [f"--env-id={ENV_ID}", f"--seed={SEED}", f"--total-timesteps={steps}", "--eval-episodes=0"]
    return [sys.executable, "-m", f"cleanrl_worker.algorithms.{ALGO}", *flags, *more]


def plan_steps(folder: Path, steps: int | None, hours: float) -> int:
    """How many steps are trained; what an earlier call has planned stays."""
    plan = folder / "plan.json"
    if plan.exists():
        return int(json.loads(plan.read_text())["steps"])
    if steps is None:
        steps = int(measure_speed() * hours * 3600 / ROLLOUT) * ROLLOUT
    write_atomic(plan, json.dumps({"steps": steps}).encode())
    print(f"{steps:,} steps are trained.", flush=True)
    return steps


def measure_speed() -> float:
    """Steps a second of a short training, without its start."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(command(PROBE_STEPS, "--checkpoint-every=0"), cwd=scratch, check=True)
        (chunk,) = EventReader(Path(scratch) / "runs").poll(10_000_000)
        return median(chunk.series["charts/SPS"].values)


def train(folder: Path, steps: int) -> float:
    """Train what is not trained yet; gives the seconds that it took in all."""
    clock = folder / "seconds.json"
    spent = float(json.loads(clock.read_text())["seconds"]) if clock.exists() else 0.0
    if (folder / "done").exists():
        return spent
    found = list_checkpoints(folder / "checkpoints")
    more = [f"--resume-from={found[-1].absolute()}"] if found else []
    started = time.monotonic()
    try:
        with open(folder / "out.log", "ab") as log:
            subprocess.run(command(steps, *more), cwd=folder, check=True, stdout=log, stderr=log)
    finally:
        spent += time.monotonic() - started
        write_atomic(clock, json.dumps({"seconds": spent}).encode())
    (folder / "done").touch()
    return spent


def play_at_random() -> list[float]:
    """The returns of whole games with actions drawn evenly."""
    args = SPEC.args(env_id=ENV_ID, seed=SEED)
    envs = open_envs(SPEC, args)
    obs = np.zeros((envs.num_envs, *envs.observation_space.shape), envs.obs_dtype)
    envs.reset(SEED, obs)
    random, returns = np.random.default_rng(SEED), list[float]()
    while len(returns) < RANDOM_EPISODES:
        actions = random.integers(0, envs.action_space.n, envs.num_envs).tolist()
        returns += [episode.total_reward for episode in envs.step(actions, obs).episodes]
    envs.close()
    return returns


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where the run stays")
    parser.add_argument("--hours", type=float, default=1.0, help="how long to train")
    parser.add_argument("--steps", type=int, help="how many steps to train, whatever time they take")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
