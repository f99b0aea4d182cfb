"""Whether a run that is stopped and resumed ends with the same bytes as one that was never stopped.

nice -n 10 python benchmarks/resume.py --seed 1

For each algorithm and environment one run trains to its end. Another with the same arguments is stopped at
three random steps, one of them by `kill -9`. After that one it goes on in its own folder; after the other two
a new run in a new folder goes on, and the folder of the old one is removed once the new one trains.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tables import write_table

from cleanrl_worker.config.checkpoint_files import list_checkpoints, read_origin
from cleanrl_worker.kit.state import decode

GRID, INVERTED = "MiniGrid-Empty-5x5-v0", "InvertedPendulum-v5"
ROLLOUTS = ("--num-steps=128", "--num-envs=2", "--num-minibatches=4", "--update-epochs=2")
IMAGES = ("--num-steps=20", "--num-envs=2", "--update-epochs=1")
QUICK = ("--learning-starts=1000", "--batch-size=32")
REPLAY = ("--learning-starts=300", "--batch-size=32", "--buffer-size=700")


@dataclass(frozen=True)
class Case:
    """One row: short enough that all of them take minutes."""

    algo: str
    env_id: str
    steps: int
    flags: tuple[str, ...] = ()

    def command(self, seed: int, resume_from: Path | None = None) -> list[str]:
        flags = [
            f"--env-id={self.env_id}",
            f"--total-timesteps={self.steps}",
            f"--checkpoint-every={self.steps // 40}",
            f"--seed={seed}",
            "--eval-episodes=0",
            *self.flags,
            *([f"--resume-from={resume_from}"] if resume_from else []),
        ]
        return [sys.executable, "-m", f"cleanrl_worker.algorithms.{self.algo}", *flags]


CASES = [
    Case("ppo", "CartPole-v1", 20_000),
    Case("ppo", GRID, 3_000, ("--num-steps=32", "--update-epochs=1")),
    Case("ppo_atari", "ALE/Breakout-v5", 2_000, IMAGES),
    Case("ppo_atari_lstm", "PongNoFrameskip-v4", 2_000, IMAGES),
    Case("ppo_atari_lstm", "mosaic/Recall-v0", 2_000, IMAGES),
    Case("pqn", "CartPole-v1", 20_000),
    Case("pqn", GRID, 8_000),
    # Enough steps for several chunks of the replay buffer, some of which go again.
    *(
        Case(algo, "CartPole-v1", 32_000, (*QUICK, "--buffer-size=14000"))
        for algo in ("dqn", "dqn_jax", "c51")
    ),
    *(Case(algo, GRID, 4_000, (*QUICK, "--buffer-size=3000", "--num-envs=2")) for algo in ("dqn", "c51")),
    *(
        Case(algo, env_id, 8_000, ROLLOUTS)
        for algo in ("ppo_continuous_action", "rpo_continuous_action")
        for env_id in ("Pendulum-v1", INVERTED)
    ),
    *(
        Case(f"{algo}_continuous_action", env_id, 1_000, REPLAY)
        for algo in ("ddpg", "td3", "sac")
        for env_id in ("Pendulum-v1", INVERTED)
    ),
]


@dataclass(frozen=True)
class Outcome:
    """How one case went."""

    case: Case
    stops: list[str]
    same_weights: bool
    same_state: bool


def check(case: Case, folder: Path, seed: int) -> Outcome:
    """Train a whole run and an interrupted one in `folder`, and compare how they end."""
    whole = _folder(folder / "whole")
    subprocess.run(case.command(seed), cwd=whole, check=True, stderr=subprocess.PIPE)
    dice = random.Random(f"{seed} {case.algo} {case.env_id}")
    points = sorted(dice.uniform(0.05, 0.85) for _ in range(3))
    signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGTERM]
    dice.shuffle(signals)
    part, origin, stops = _folder(folder / "part-0"), None, []
    for number, (point, kind) in enumerate(zip(points, signals, strict=True), 1):
        _train_until(case.command(seed, origin), part, round(point * case.steps), kind, dice.uniform(0, 0.05))
        if origin is not None and not origin.is_relative_to(part):
            shutil.rmtree(origin.parents[1])
        origin = list_checkpoints(part / "checkpoints")[-1]
        stops.append(f"{read_origin(origin).step:,} ({kind.name.removeprefix('SIG')})")
        if kind == signal.SIGTERM:
            part = _folder(folder / f"part-{number}")
    subprocess.run(case.command(seed, origin), cwd=part, check=True, stderr=subprocess.PIPE)
    return Outcome(case, stops, _weights(part) == _weights(whole), _same(_end(part), _end(whole)))


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _train_until(command: list[str], folder: Path, step: int, kind: signal.Signals, later: float) -> None:
    """Train until a checkpoint of at least `step` is there, and a little longer."""
    with (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(command, cwd=folder, stderr=stderr)
    while not any((read_step(path) >= step) for path in list_checkpoints(folder / "checkpoints")):
        if process.poll() is not None:
            raise RuntimeError(f"{' '.join(command)} ended by itself: {(folder / 'stderr').read_text()}")
        time.sleep(0.002)
    time.sleep(later)
    os.kill(process.pid, kind)
    process.wait()


def read_step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _weights(folder: Path) -> bytes:
    (path,) = folder.glob("runs/*/*.cleanrl_model")
    return path.read_bytes()


def _end(folder: Path) -> Any:
    """Everything that the last checkpoint holds of the run: optimizer, buffer, random states and all."""
    return decode(list_checkpoints(folder / "checkpoints")[-1])["parts"]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def measure(case: Case, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="resume-") as folder:
        outcome = check(case, Path(folder), seed)
    print(case.algo, case.env_id, outcome.stops, outcome.same_weights, outcome.same_state, flush=True)
    return outcome


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10_000), help="of the stops and the runs"
    )
    parser.add_argument("--only", default="", help="rows whose algorithm or environment holds this text")
    parser.add_argument("--jobs", type=int, default=2, help="rows at a time")
    options = parser.parse_args(argv)
    print(f"seed {options.seed}")
    os.environ["OMP_NUM_THREADS"] = "1"
    cases = [case for case in CASES if options.only in f"{case.algo} {case.env_id}"]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda case: measure(case, options.seed), cases))
    write_table(
        "resume",
        "Exact resume",
        f"Each run was stopped at three random steps (seed {options.seed}), once by `kill -9` (KILL), twice "
        "by SIGTERM, and went on from the checkpoint of the step named: after KILL in its own folder, after "
        "TERM as a new run in a new folder. *Weights*: the final model file has the same bytes as that of a "
        "run which was never stopped. *State*: all else in the last checkpoint file is equal: optimizers, "
        "targets, normalisers, environments, random states, and of the replay buffer where it stands and "
        "what is in no full chunk yet.",
        ["algorithm", "environment", "steps", "stopped and resumed at", "weights", "state"],
        [
            [
                f"`{one.case.algo}`",
                one.case.env_id,
                f"{one.case.steps:,}",
                ", ".join(one.stops),
                "identical" if one.same_weights else "DIFFER",
                "identical" if one.same_state else "DIFFER",
            ]
            for one in outcomes
        ],
    )
    return 0 if all(one.same_weights and one.same_state for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
