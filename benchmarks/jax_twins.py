"""How fast each algorithm in JAX is beside its torch twin, both on one core with one thread.

python benchmarks/jax_twins.py [--rows td3 …] [--rounds 3] [--core N]

The two take turns, each time in a new process, and medians are told. Seconds are those of the processor, on
which other work on the machine hardly shows. Only steady training counts; what the first steps take beyond
that, mostly compiling, stands beside it.
A step of QDagger is an offline one, which is an update. With --rows the others stay on the page as they were.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from speed_measure import ONE_THREAD, Measurement, measure_script
from speed_rows import JAX_TWINS, Row
from tables import Table, kept_rows, write_tables

PACKAGES = ("torch", "jax", "flax", "gymnasium", "envpool", "numpy")
TEXT = """\
Environment steps per second of processor time, medians of {rounds} rounds in which the two took turns, each
in a process of its own, on one core with one thread and the same hyperparameters. Only steady training
counts; the first steps, in which JAX compiles, are left out and told beside it, where they show by
themselves."""
HEADER = ("algorithm", "environment", "torch", "JAX", "JAX ÷ torch", "seconds of compiling")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [row.name for row in JAX_TWINS]
    parser.add_argument("--rows", nargs="+", default=names, choices=names)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core to use")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    os.environ.update(ONE_THREAD)
    with tempfile.TemporaryDirectory() as folder:
        rows = [with_teacher(row, Path(folder)) for row in JAX_TWINS if row.name in options.rows]
        found = {row.algo: compare(row, options.rounds) for row in rows}
    lines = {line[0]: line for line in kept_rows("jax_twins", HEADER)} | found
    known = [lines[row.algo] for row in JAX_TWINS if row.algo in lines]
    text, command = TEXT.format(rounds=options.rounds), ("benchmarks/jax_twins.py",)
    write_tables("jax_twins", "JAX beside torch", text, [Table(HEADER, known)], PACKAGES, command)
    return 0


def with_teacher(row: Row, folder: Path) -> Row:
    """The row with a policy that has hardly been trained as its teacher, where it needs one."""
    if "teacher_steps" not in row.params:
        return row
    flags = [f"--env-id={row.env_id}", "--total-timesteps=100", "--buffer-size=100", "--eval-episodes=0"]
    command = [sys.executable, "-m", "cleanrl_worker.algorithms.dqn_atari", *flags]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (teacher,) = folder.glob("runs/*/*.cleanrl_model")
    return replace(row, params={**row.params, "teacher_policy": str(teacher)})


def compare(row: Row, rounds: int) -> list[str]:
    """The cells of one algorithm."""
    twin = replace(row, algo=row.algo.removesuffix("_scan").replace("_jax", "").removesuffix("_xla"))
    found: dict[str, list[Measurement]] = {row.algo: [], twin.algo: []}
    for turn in range(rounds):
        for one in (twin, row):
            found[one.algo].append(measure_script(one, by_cpu=True))
            speed = found[one.algo][-1].steps_per_second
            print(f"{turn + 1}  {one.algo:32} {speed:10,.1f}", flush=True)
    torch, jax = (median(each.steps_per_second for each in found[one.algo]) for one in (twin, row))
    compiling = f"{median(each.warm_up_seconds for each in found[row.algo]):.1f}"
    if "num_steps" in row.params:
        # Nothing is told before the first rollout has been learned from, with all that is compiled.
        compiling = "–"
    speeds = [_digits(torch), _digits(jax), f"{jax / torch:.2f} ×"]
    return [row.algo, row.env_id, *speeds, compiling]


def _digits(speed: float) -> str:
    """Three digits, or all before the point."""
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


if __name__ == "__main__":
    sys.exit(main())
