"""Whether algorithms learn as well as published: trains them with several seeds and writes a table.

python benchmarks/learning.py --algos ppo --envs CartPole-v1 --seeds 1 2 3 --steps 500000
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from mosaic.analytics.event_files import EventReader

TABLE = Path(__file__).with_name("results") / "learning.md"

# Mean and spread over seeds that CleanRL's documentation gives for the same number of steps.
PUBLISHED = {
    ("ppo", "CartPole-v1"): "490.04 ± 6.12",
    ("ppo", "Acrobot-v1"): "-86.36 ± 1.32",
    ("ppo", "MountainCar-v0"): "-200.00 ± 0.00",
    ("dqn", "CartPole-v1"): "488.69 ± 16.11",
    ("dqn", "Acrobot-v1"): "-91.54 ± 7.20",
    ("dqn", "MountainCar-v0"): "-194.95 ± 8.48",
    ("c51", "CartPole-v1"): "481.20 ± 20.53",
    ("c51", "Acrobot-v1"): "-87.70 ± 5.52",
    ("c51", "MountainCar-v0"): "-166.38 ± 27.94",
    ("pqn", "CartPole-v1"): "495.13 ± 6.89",
    ("pqn", "Acrobot-v1"): "-95.63 ± 5.73",
    ("pqn", "MountainCar-v0"): "-200.00 ± 0.00",
}


@dataclass(frozen=True)
class Result:
    """What one training run reached."""

    last_tenth: float
    steps_per_second: float
    seconds: float


def train(algo: str, env_id: str, seed: int, steps: int) -> Result:
    """One run in a process of its own."""
    module = DEFAULT_ALGO_REGISTRY[algo]
    flags = [f"--env-id={env_id}", f"--seed={seed}", f"--total-timesteps={steps}", "--no-save-model"]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", module, *flags], cwd=folder, check=True)
        seconds = time.perf_counter() - started
        (chunk,) = EventReader(Path(folder, "runs")).poll(10_000_000)
    returns = chunk.series["charts/episodic_return"]
    late = [value for step, value in zip(returns.steps, returns.values, strict=True) if step > 0.9 * steps]
    return Result(statistics.fmean(late), statistics.median(chunk.series["charts/SPS"].values), seconds)


def table_row(algo: str, env_id: str, steps: int, results: list[Result]) -> str:
    """One line of the table: mean and spread over seeds, beside the published figure."""
    returns = [result.last_tenth for result in results]
    cells = [
        algo,
        env_id,
        f"{steps:,}",
        f"{statistics.fmean(returns):.2f} ± {statistics.pstdev(returns):.2f}",
        ", ".join(f"{value:.1f}" for value in returns),
        PUBLISHED.get((algo, env_id), "–"),
        f"{statistics.fmean(result.steps_per_second for result in results):,.0f}",
        f"{statistics.fmean(result.seconds for result in results):.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def write_table(rows: list[str]) -> None:
    """The table with the command that makes it again."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "gymnasium", "numpy"))
    lines = [
        "# Learning",
        "",
        "Mean episodic return over the last tenth of training, mean ± standard deviation over seeds.",
        "The published figures come from older environments, may average over another part of training, "
        "and for",
        "ppo from a script that takes a time limit for a failure. "
        "A CartPole-v1 episode cannot return more than 500.",
        "",
        f"    {shlex.join(['python', 'benchmarks/learning.py', *sys.argv[1:]])}",
        "",
        f"Python {platform.python_version()}, {packages}; {os.cpu_count()} CPU cores, one run at a time.",
        "",
        "| algorithm | environment | steps | return | each seed | published | steps/s | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algos", nargs="+", default=["ppo"], choices=list(DEFAULT_ALGO_REGISTRY))
    parser.add_argument("--envs", nargs="+", default=["CartPole-v1"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=500_000)
    options = parser.parse_args()
    rows = []
    for algo in options.algos:
        for env_id in options.envs:
            results = [train(algo, env_id, seed, options.steps) for seed in options.seeds]
            rows.append(table_row(algo, env_id, options.steps, results))
            print(rows[-1], flush=True)
    write_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
