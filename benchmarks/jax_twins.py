"""How fast each algorithm in JAX is beside its torch twin, both on one core with one thread.

python benchmarks/jax_twins.py [--rows td3 …] [--rounds 3] [--core N]

The two take turns, each time in a new process, and medians are told: other work on the machine then hits both
alike. Only steady training counts; what the first steps take beyond that, mostly compiling, stands beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from statistics import median

from speed_measure import ONE_THREAD, Measurement, measure_script
from speed_rows import JAX_TWINS, Row
from tables import Table, write_tables

PACKAGES = ("torch", "jax", "flax", "gymnasium", "envpool", "numpy")
TEXT = """\
Environment steps per second, medians of {rounds} rounds in which the two took turns, each in a process of its
own, on one core with one thread and the same hyperparameters. Only steady training counts; the first steps,
in which JAX compiles, are left out and told beside it. The load average of the machine was {load:.1f}; the
measured process alone makes it 1."""


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
    lines = [compare(row, options.rounds) for row in JAX_TWINS if row.name in options.rows]
    header = ["algorithm", "environment", "torch", "JAX", "JAX ÷ torch", "seconds of compiling"]
    table = Table(header, lines)
    if len(lines) < len(JAX_TWINS):
        print("\n".join(table.lines()))
    else:
        text = TEXT.format(rounds=options.rounds, load=os.getloadavg()[1])
        write_tables("jax_twins", "JAX beside torch", text, [table], PACKAGES)
    return 0


def compare(row: Row, rounds: int) -> list[str]:
    """The cells of one algorithm."""
    twin = replace(row, algo=row.algo.removesuffix("_scan").removesuffix("_jax").removesuffix("_xla"))
    found: dict[str, list[Measurement]] = {row.algo: [], twin.algo: []}
    for turn in range(rounds):
        for one in (twin, row):
            found[one.algo].append(measure_script(one))
            speed = found[one.algo][-1].steps_per_second
            print(f"{turn + 1}  {one.algo:32} {speed:10,.1f}", flush=True)
    torch, jax = (median(each.steps_per_second for each in found[one.algo]) for one in (twin, row))
    compiling = median(each.warm_up_seconds for each in found[row.algo])
    return [row.algo, row.env_id, f"{torch:,.0f}", f"{jax:,.0f}", f"{jax / torch:.2f} ×", f"{compiling:.1f}"]


if __name__ == "__main__":
    sys.exit(main())
