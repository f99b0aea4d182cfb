"""Whether an algorithm learns a game in an hour on two cores: trains it, and plays at random beside it.

python benchmarks/hour.py --keep FOLDER --algo ALGO --env ENV [--hours 1 | --steps N] [-- FLAGS OF ALGO]

How many steps an hour has is measured first. A call that was broken off goes on from its last checkpoint.
Each call puts a row in results/hour.md; the page of an algorithm that learning.py does not train has it too.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from learning_figures import draw
from learning_pages import PAGES, cells, write_page
from learning_plan import PLAN, Row
from learning_runs import Curve
from tables import Table, kept_rows, write_tables

from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.open_envs import open_envs
from cleanrl_worker.kit.parsing import parse_args
from cleanrl_worker.kit.spec import AlgorithmSpec
from mosaic.analytics.event_files import EventReader
from mosaic.contract.atomic import write_atomic

SEED = 1
PUBLISHED = {
    ("ppo_atari_envpool", "PongNoFrameskip-v4"): (20.55, 0.37, "10,000,000 steps"),
    ("pqn_atari_envpool", "PongNoFrameskip-v4"): (20.49, 0.11, "10,000,000 steps"),
    ("pqn_atari_envpool_lstm", "PongNoFrameskip-v4"): (20.43, 0.11, "10,000,000 steps"),
    ("ppo_procgen", "StarpilotEasy-v0"): (30.99, 1.96, "25,000,000 steps, all levels"),
    ("ppo_procgen", "BossfightEasy-v0"): (8.85, 0.33, "25,000,000 steps, all levels"),
    ("ppo_procgen", "BigfishEasy-v0"): (16.46, 2.71, "25,000,000 steps, all levels"),
}
"""Mean and standard deviation over seeds in CleanRL's documentation, and what they are of."""
LEAST_PROBED = 20_480
RANDOM_EPISODES = 32
"""As the text says."""
HEADER = [
    *("algorithm", "environment", "flags", "steps", "minutes", "steps a second", "episodes", "return"),
    *("random policy", "above random beyond both intervals", "published"),
]
TEXT = """\
One seed, all parameters at their defaults but for the flags named, on games that EnvPool steps. The budget is
what the time gives at the speed that was measured before. The return is the game's own: the mean over the
episodes that end in the last tenth of training, with exploration. The interval is that of the mean, 95 %. The
random policy draws each action evenly for 32 episodes. The published figures are those of
CleanRL's documentation, over seeds. Minutes are half of the processor's: what two cores take that do nothing
else."""


@dataclass(frozen=True)
class Trial:
    """What is trained."""

    spec: AlgorithmSpec
    args: Any
    flags: tuple[str, ...]
    """What is said of it beside environment and seed."""

    @property
    def rollout(self) -> int:
        """The steps of a rollout, at whose ends a run may end."""
        return int(self.args.num_envs * self.args.num_steps)

    def command(self, steps: int, *more: str) -> list[str]:
        """What trains it for so many steps."""
        flags = [f"--env-id={self.args.env_id}", f"--seed={SEED}", f"--total-timesteps={steps}"]
        module = f"cleanrl_worker.algorithms.{self.spec.name}"
        return [sys.executable, "-m", module, *flags, "--eval-episodes=0", *self.flags, *more]


def main() -> int:
    options = parse_options()
    spec = load_spec(options.algo)
    flags = tuple(options.flags)
    trial = Trial(spec, parse_args(spec.args, [f"--env-id={options.env}", *flags], spec.name), flags)
    folder: Path = options.keep / "__".join((options.algo, options.env, *flags))
    folder.mkdir(parents=True, exist_ok=True)
    steps = plan_steps(trial, folder, options.steps, options.hours)
    seconds = train(trial, folder, steps)
    (chunk,) = EventReader(folder / "runs").poll(10_000_000)
    episodes = chunk.series["charts/episodic_return"]
    curve = Curve.of(steps, episodes.steps, episodes.values)
    ended = zip(episodes.steps, episodes.values, strict=True)
    late = [value for step, value in ended if step > 0.9 * steps]
    by_chance = play_at_random(trial)
    learned, chance = interval(late), interval(by_chance)
    mean, spread, note = PUBLISHED.get((options.algo, options.env), (None, None, ""))
    line = [
        *(options.algo, options.env, " ".join(flags) or "–", f"{steps:,}", f"{seconds / 60:.0f}"),
        *(f"{steps / seconds:.0f}", str(len(late)), told(late), told(by_chance)),
        "yes" if learned[0] > chance[1] else "**no**",
        "–" if mean is None else f"{mean:.2f} ± {spread:.2f} ({note})",
    ]
    others = [row for row in kept_rows("hour", HEADER) if row[:3] != line[:3]]
    del sys.argv[1:]
    write_tables("hour", "An hour on two cores", TEXT, [Table(HEADER, sorted([*others, line]))])
    if options.algo not in {row.algo for row in PLAN}:
        published = None if mean is None or spread is None else (mean, spread)
        least = round(chance[1], 2)
        row = Row(options.algo, options.env, steps, published, note, least=least, seeds=(SEED,))
        draw(PAGES / "figures" / f"{options.algo}.png", {row: [curve]}, {})
        write_page(options.algo, [cells(row, [curve], None)])
    return 0


def interval(returns: Sequence[float]) -> tuple[float, float]:
    """Where the mean lies with 95 % confidence."""
    half = 1.96 * stdev(returns) / math.sqrt(len(returns))
    return fmean(returns) - half, fmean(returns) + half


def told(returns: Sequence[float]) -> str:
    low, high = interval(returns)
    return f"{fmean(returns):.2f} ({low:.2f} to {high:.2f})"


def plan_steps(trial: Trial, folder: Path, steps: int | None, hours: float) -> int:
    """How many steps are trained; what an earlier call has planned stays."""
    plan = folder / "plan.json"
    if plan.exists():
        return int(json.loads(plan.read_text())["steps"])
    if steps is None:
        steps = int(measure_speed(trial) * hours * 3600 / trial.rollout) * trial.rollout
    write_atomic(plan, json.dumps({"steps": steps}).encode())
    print(f"{steps:,} steps are trained.", flush=True)
    return steps


def measure_speed(trial: Trial) -> float:
    """Steps a second of a short training, without its start."""
    steps = max(LEAST_PROBED, 2 * trial.rollout)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(trial.command(steps, "--checkpoint-every=0"), cwd=scratch, check=True)
        (chunk,) = EventReader(Path(scratch) / "runs").poll(10_000_000)
        return median(chunk.series["charts/SPS"].values)


def train(trial: Trial, folder: Path, steps: int) -> float:
    """Train what is not trained yet; gives the seconds that it took in all, of two cores."""
    clock = folder / "seconds.json"
    spent = float(json.loads(clock.read_text())["seconds"]) if clock.exists() else 0.0
    if (folder / "done").exists():
        return spent
    found = list_checkpoints(folder / "checkpoints")
    more = [f"--resume-from={found[-1].absolute()}"] if found else []
    started = processor_seconds()
    try:
        with open(folder / "out.log", "ab") as log:
            subprocess.run(trial.command(steps, *more), cwd=folder, check=True, stdout=log, stderr=log)
    finally:
        spent += (processor_seconds() - started) / 2.0
        write_atomic(clock, json.dumps({"seconds": spent}).encode())
    (folder / "done").touch()
    return spent


def processor_seconds() -> float:
    """What all processes that were waited for have used of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def play_at_random(trial: Trial) -> list[float]:
    """The returns of whole games with actions drawn evenly, one after the other, so that none is favoured."""
    args = dataclasses.replace(trial.args, num_envs=1)
    envs = open_envs(trial.spec, args)
    obs = np.zeros((1, *envs.observation_space.shape), envs.obs_dtype)
    envs.reset(SEED, obs)
    random, returns = np.random.default_rng(SEED), list[float]()
    while len(returns) < RANDOM_EPISODES:
        actions = random.integers(0, envs.action_space.n, 1).tolist()
        returns += [episode.total_reward for episode in envs.step(actions, obs).episodes]
    envs.close()
    return returns


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where the run stays")
    parser.add_argument("--algo", required=True, help="an algorithm that learns from rollouts")
    parser.add_argument("--env", required=True, help="an environment of EnvPool's, by Gymnasium's id")
    parser.add_argument("--hours", type=float, default=1.0, help="how long to train")
    parser.add_argument("--steps", type=int, help="how many steps to train, whatever time they take")
    parser.add_argument("flags", nargs="*", help="flags of the algorithm, after --")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
