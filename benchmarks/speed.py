"""How fast ours is beside Stable-Baselines3 and sbx-rl, and what the platform costs; all on one core.

python benchmarks/speed.py [--rows ppo sac …] [--rounds 3] [--steps N] [--core N]

The libraries take turns, each time in a new process, and medians are told: other work on the machine then
hits all of them alike. All rows in three rounds take about 25 minutes. The page is written when all rows are
measured; else the tables are printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from statistics import median

from speed_measure import ONE_THREAD, Measurement, measure_peer, measure_platform, measure_script
from speed_rows import DIFFERENCES, ROWS, Row
from tables import Table, write_tables

MEASURES: dict[str, Callable[[Row], Measurement]] = {
    "ours": measure_script,
    "Stable-Baselines3": lambda row: measure_peer(row, "stable_baselines3"),
    "sbx-rl": lambda row: measure_peer(row, "sbx"),
    "platform": measure_platform,
}
PEERS = ("Stable-Baselines3", "sbx-rl")
PACKAGES = ("torch", "gymnasium", "numpy", "stable-baselines3", "sbx-rl", "jax")
Found = dict[str, dict[str, list[Measurement]]]
"""Measurements by row and by who was measured."""

TEXT = """\
Environment steps per second, medians of {rounds} rounds in which the libraries took turns, each in a process
of its own, on one core with one thread and the same hyperparameters. Read a row from the left: how many steps
a second each makes, then how many times as fast ours is. Only steady training counts: start-up, imports and
the first steps, in which sbx-rl compiles, are left out. A dash: the library does not have the algorithm.

ppo, pqn and ppo_continuous_action are measured over whole rollouts with their updates; dqn and c51 over the
first 30,000 steps of the default schedule, of which 10,000 are without updates; sac, td3 and ddpg while each
step has an update with a batch of 256 (`learning_starts` is 500 here).

The load average of the machine was {before:.1f} before and {after:.1f} after; the measured process alone
makes it 1.

CleanRL was not measured here: its figures come from one thread of another machine of this kind, and the
comparison with them is no more than a hint.

{differences}"""
REFERENCE = "CleanRL, reference machine"


def main() -> int:
    options = parse_options()
    os.sched_setaffinity(0, {options.core})
    os.environ.update(ONE_THREAD)
    before = os.getloadavg()[1]
    rows = [row for row in ROWS if row.name in options.rows]
    rows = [row.shortened(options.steps) for row in rows] if options.steps else rows
    found: Found = {row.name: {} for row in rows}
    for turn in range(options.rounds):
        for row in rows:
            for who, measure in MEASURES.items():
                if row.peer is None and who in PEERS:
                    continue
                result = measure(row)
                found[row.name].setdefault(who, []).append(result)
                print(f"{turn + 1}  {row.name:22} {who:18} {result.steps_per_second:10,.0f}", flush=True)
    tables = [speed_table(rows, found), cost_table(rows, found), platform_table(rows, found)]
    if len(rows) < len(ROWS):
        print("\n".join(line for table in tables for line in [*table.lines(), ""]))
    else:
        text = TEXT.format(
            rounds=options.rounds, before=before, after=os.getloadavg()[1], differences=DIFFERENCES
        )
        write_tables("speed", "Speed", text, tables, PACKAGES)
    return 0


def speed_table(rows: list[Row], found: Found) -> Table:
    """Steps per second beside the other libraries, and beside what CleanRL's scripts reached elsewhere."""
    header = ["algorithm", "environment", "ours", *PEERS, *(f"ours ÷ {peer}" for peer in PEERS)]
    lines = []
    for row in rows:
        ours = typical(found, row, "ours", "steps_per_second")
        assert ours is not None
        peers = [typical(found, row, peer, "steps_per_second") for peer in PEERS]
        ratio = ours / row.cleanrl
        lines.append(
            [
                row.name,
                row.env_id,
                *(number(value) for value in (ours, *peers)),
                *(times(ours, peer) for peer in peers),
                number(row.cleanrl),
                f"{ratio:.1f} × (wanted {row.wanted:g} ×)",
            ]
        )
    return Table([*header, REFERENCE, "ours ÷ it"], lines)


def cost_table(rows: list[Row], found: Found) -> Table:
    """Gradient steps per second, memory and compiling."""
    who = ("ours", *PEERS)
    header = ["algorithm", *(f"updates/s, {name}" for name in who), *(f"MB, {name}" for name in who)]
    lines = []
    for row in rows:
        speeds = [typical(found, row, name, "steps_per_second") for name in who]
        memory = [typical(found, row, name, "memory_mb") for name in who]
        compiling = typical(found, row, "sbx-rl", "warm_up_seconds")
        updates = [number(speed and speed * row.updates) for speed in speeds]
        lines.append(
            [row.name, *updates, *map(number, memory), "–" if compiling is None else f"{compiling:.1f}"]
        )
    heading = "Updates per second, peak memory, seconds of compiling"
    return Table([*header, "compiling, sbx-rl"], lines, heading)


def platform_table(rows: list[Row], found: Found) -> Table:
    """Ours as a script alone, and as a run of the daemon with its supervisor on the same core."""
    lines = []
    for row in rows:
        alone = typical(found, row, "ours", "steps_per_second")
        run = typical(found, row, "platform", "steps_per_second")
        assert alone and run
        lines.append([row.name, number(alone), number(run), f"{run / alone:.1%}"])
    header = ["algorithm", "script alone", "through the daemon", "share"]
    return Table(header, lines, "Steps per second with the platform off and on")


def typical(found: Found, row: Row, who: str, what: str) -> float | None:
    """The median over rounds; None when this library does not have the algorithm."""
    measured = found[row.name].get(who)
    return median(getattr(result, what) for result in measured) if measured else None


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def times(ours: float, theirs: float | None) -> str:
    return "–" if theirs is None else f"{ours / theirs:.1f} ×"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [row.name for row in ROWS]
    parser.add_argument("--rows", nargs="+", default=names, choices=names)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, metavar="N", help="measure at most about N steps of each row")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core to use")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
