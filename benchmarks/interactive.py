"""How long one step of an interactive session takes: from the request to its parsed answer.

python benchmarks/interactive.py --steps 5000
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tables import write_table

from mosaic.client.playing import PlaySession

LIMIT_MS = 2.0
WARM_UP = 200
POLICIES = (
    ("ppo", "CartPole-v1", "--total-timesteps=2048"),
    ("dqn", "CartPole-v1", "--total-timesteps=2000", "--learning-starts=1000"),
    ("sac_continuous_action", "Pendulum-v1", "--total-timesteps=300", "--learning-starts=200"),
)


def train(folder: Path, algo: str, env_id: str, *flags: str) -> Path:
    """A policy of a short run."""
    place = folder / algo
    place.mkdir()
    command = [sys.executable, "-m", f"cleanrl_worker.algorithms.{algo}", f"--env-id={env_id}", *flags]
    subprocess.run([*command, "--eval-episodes=0"], cwd=place, check=True)
    (path,) = place.glob("runs/*/*.cleanrl_model")
    return path


def measure(path: Path, steps: int, frames: bool) -> list[float]:
    """Milliseconds of each step."""
    with PlaySession.start(path, seed=1, frames=frames) as session:
        session.reset()
        taken = []
        for number in range(WARM_UP + steps):
            start = time.perf_counter()
            answer = session.step()
            taken.append(1000 * (time.perf_counter() - start))
            if "episode" in answer:
                session.reset()
            if number == WARM_UP:
                taken.clear()
        return taken


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=5000)
    options = parser.parse_args()
    rows, reached = [], True
    with tempfile.TemporaryDirectory() as folder:
        for algo, env_id, *flags in POLICIES:
            path = train(Path(folder), algo, env_id, *flags)
            for frames in (False, True):
                taken = measure(path, options.steps // 10 if frames else options.steps, frames)
                middle, most, worst = np.percentile(taken, [50, 99, 100])
                limited = env_id == "CartPole-v1" and not frames
                reached = reached and (not limited or most < LIMIT_MS)
                limit = f" (limit {LIMIT_MS:g})" if limited else ""
                rows.append(
                    [
                        algo,
                        env_id,
                        "yes" if frames else "no",
                        f"{len(taken):,}",
                        f"{middle:.2f}",
                        f"{most:.2f}{limit}",
                        f"{worst:.2f}",
                    ]
                )
    write_table(
        "interactive",
        "Interactive sessions",
        "Milliseconds from the request for one step to its parsed answer, in another process.",
        ["algorithm", "environment", "picture", "steps", "median", "99 %", "longest"],
        rows,
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
