"""How fast trainings are beside an earlier checkout: CPU time of whole trainings on one core.

git worktree add ../earlier be0e32e
python benchmarks/earlier.py --old ../earlier [--what nine|grids] [--rows ppo …] [--rounds 3] [--core N]

Old and new run at the same time on one core, each in a process of its own with one thread: the scheduler lets
them take turns of milliseconds, so that whatever else the machine does hits both alike. `nine` are the rows
of speed.py, which must not fall by more than 5 %: each is trained once to its end and once twice as far, and
the second half counts, without start-up and evaluation. `grids` are whole trainings of ppo on grid worlds,
beside 0942555. Rows that are not measured again stay as they are on the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from speed_rows import ROWS
from tables import Table, kept_rows, write_tables


@dataclass(frozen=True)
class Training:
    """What is trained."""

    name: str
    algo: str
    env_id: str
    steps: int
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """A page of trainings with one limit: how many times as fast as the earlier checkout they must be."""

    page: str
    title: str
    wanted: float
    rows: tuple[Training, ...]
    steady: bool = False
    """Only what the second half of a training twice as long takes counts."""


GRIDS = (
    "BabyAI-GoToRedBallNoDists-v0",
    "BabyAI-GoToLocal-v0",
    "BabyAI-BossLevel-v0",
    "MiniGrid-DoorKey-8x8-v0",
)
COMPARISONS = {
    "nine": Comparison(
        "earlier",
        "Speed beside an earlier checkout",
        0.95,
        tuple(Training(row.name, row.algo, row.env_id, row.steps, row.params) for row in ROWS),
        steady=True,
    ),
    "grids": Comparison(
        "grids", "Grid worlds", 2.0, tuple(Training(name, "ppo", name, 8192) for name in GRIDS)
    ),
}
HERE = Path(__file__).resolve().parents[1]
MEASURED = """\
import importlib, json, pathlib, sys, time
module = importlib.import_module("cleanrl_worker.algorithms." + sys.argv[2])
assert pathlib.Path(module.__file__).is_relative_to(sys.argv[1]), module.__file__
start = time.process_time()
code = module.main(json.loads(sys.argv[3]))
print("\\nCPU", time.process_time() - start)
sys.exit(code)
"""
TEXT = """\
CPU seconds {what} with the seeds 1 to {rounds}: old is the checkout at `{commit}`, new is
this one. Both ran at the same time on one core, each in a process of its own with one thread, so that they
took turns of milliseconds. Read a row from the left: the seconds of each round, how many times as fast new is
by the medians, and in each round.

The load average of the machine was {before:.1f} before and {after:.1f} after, on {cores} cores; the
measured processes alone make it 2."""


def main() -> int:
    options = parse_options()
    os.sched_setaffinity(0, {options.core})
    before = os.getloadavg()[1]
    comparison = COMPARISONS[options.what]
    chosen = [row for row in comparison.rows if not options.rows or row.name in options.rows]
    header = ("training", "steps", "old", "new", "old ÷ new", "each round", f"at least {comparison.wanted} ×")
    known = {row[0]: row for row in kept_rows(comparison.page, header)}
    for row in chosen:
        known[row.name] = measure(row, comparison, options)
    table = Table(header, [known[row.name] for row in comparison.rows if row.name in known])
    commit = subprocess.check_output(["git", "-C", options.old, "rev-parse", "--short", "HEAD"], text=True)
    text = TEXT.format(
        what="of the second half of trainings" if comparison.steady else "of whole trainings",
        rounds=options.rounds,
        commit=commit.strip(),
        before=before,
        after=os.getloadavg()[1],
        cores=os.cpu_count(),
    )
    packages = ("torch", "gymnasium", "numpy", "minigrid")
    command = ("benchmarks/earlier.py", "--what", options.what, "--old", "../earlier")
    write_tables(comparison.page, comparison.title, text, [table], packages, command)
    return 0


def measure(row: Training, comparison: Comparison, options: argparse.Namespace) -> list[str]:
    """The row of a training."""
    old: list[float] = []
    new: list[float] = []
    for seed in range(1, options.rounds + 1):
        checkouts = options.old.resolve(), HERE
        spent = train(checkouts, row, row.steps * (1 + comparison.steady), seed)
        if comparison.steady:
            start = train(checkouts, row, row.steps, seed)
            spent = [whole - half for whole, half in zip(spent, start, strict=True)]
        old.append(spent[0])
        new.append(spent[1])
        print(f"{row.name:30} seed {seed}  old {old[-1]:6.2f} s  new {new[-1]:6.2f} s", flush=True)
    ratio = median(old) / median(new)
    return [
        row.name,
        f"{row.steps:,}",
        ", ".join(f"{seconds:.1f}" for seconds in old),
        ", ".join(f"{seconds:.1f}" for seconds in new),
        f"**{ratio:.2f} ×**",
        ", ".join(f"{one / other:.2f}" for one, other in zip(old, new, strict=True)),
        "yes" if ratio >= comparison.wanted else "**no**",
    ]


def train(checkouts: Sequence[Path], row: Training, steps: int, seed: int) -> list[float]:
    """CPU seconds of a training with the code of each checkout, all at the same time."""
    params = {"env_id": row.env_id, "total_timesteps": steps, "seed": seed, **row.params}
    flags = json.dumps([f"--{name.replace('_', '-')}={value}" for name, value in params.items()])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        running = [
            subprocess.Popen(
                [sys.executable, "-c", MEASURED, str(checkout / "src"), row.algo, flags],
                cwd=folder,
                env={**os.environ, **threads, "PYTHONPATH": str(checkout / "src")},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for checkout in checkouts
        ]
        told = [process.communicate() for process in running]
    for process, (_, errors) in zip(running, told, strict=True):
        if process.returncode != 0:
            raise RuntimeError(errors[-2000:])
    return [float(output.rsplit("CPU", 1)[1]) for output, _ in told]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, required=True, help="the earlier checkout")
    parser.add_argument("--what", choices=COMPARISONS, default="nine", help="which trainings")
    parser.add_argument("--rows", nargs="+", help="only these of them")
    parser.add_argument("--rounds", type=int, default=3, help="how often, each with a seed of its own")
    parser.add_argument("--core", type=int, default=0, help="the core to run on")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
