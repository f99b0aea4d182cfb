"""How long `mosaic compare` takes over many runs with many points.

python benchmarks/compare.py --runs 100 --points 100000

The runs are written as an ended run leaves them; the first comparison reads their event files, the others
what is cached beside them. A page of a report over the same runs is measured as well.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import Row, write_table
from ulid import ULID

from mosaic.analytics.event_files import EventWriter
from mosaic.client import train_config
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import validate_train_run_config

_SEEDS = 10
_WARM_SECONDS = 2.0
_ROUNDS = 5


def fill(paths: VarPaths, runs: int, points: int) -> None:
    """Write ended runs: so many seeds of each configuration, which differ in their learning rate."""
    paths.make()
    for number in range(runs):
        run_id, seed = str(ULID()), number % _SEEDS + 1
        rate = (number // _SEEDS + 1) * 1e-4
        config = train_config(
            "ppo", "CartPole-v1", total_timesteps=points, seed=seed, params={"learning_rate": rate}
        )
        config["metadata"]["worker"]["config"]["run_id"] = run_id
        config["tags"] = ["compared"]
        accepted = validate_train_run_config(config).as_json()
        paths.run_config(run_id).write_text(json.dumps(accepted))
        ended = time.time() - 60
        row = {
            "status": "TERM",
            "outcome": "completed",
            "reason": None,
            "started_at": ended - 100,
            "ended_at": ended,
            "headline": {"step": points, "sps": 1000.0},
        }
        change = {
            "seq": 0,
            "run_id": run_id,
            "status": "TERM",
            "outcome": "completed",
            "reason": None,
            "at": ended,
        }
        record = {"format": 1, "row": row, "notes": None, "history": [change]}
        paths.run_record(run_id).write_text(json.dumps(record))
        writer = EventWriter(paths.run(run_id).event_files / f"CartPole-v1__ppo__{seed}__1")
        draw = random.Random(number)
        for step in range(1, points + 1):
            value = 500 * (1 - math.exp(-step * rate / 10)) + draw.gauss(0, 40)
            writer.add_scalar("charts/episodic_return", value, step)
        writer.close()


def seconds(var: Path, *arguments: str) -> tuple[float, float]:
    """A command from the shell's prompt back to it: by the clock, and of a processor."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "mosaic", *arguments]
    subprocess.run(command, env={**os.environ, "MOSAIC_VAR": str(var)}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begun, used


def _told(measured: tuple[float, float]) -> str:
    return f"{measured[0]:.2f} s, of which {measured[1]:.2f} s of a CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--points", type=int, default=100_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = VarPaths(Path(folder))
        fill(paths, args.runs, args.points)
        try:
            subprocess.run(
                [sys.executable, "-m", "mosaic", "runs", "--limit", "1"],
                env={**os.environ, "MOSAIC_VAR": folder},
                stdout=subprocess.DEVNULL,
                check=True,
            )
            cold = seconds(paths.root, "compare", "compared")
            warm = sorted(seconds(paths.root, "compare", "compared") for _ in range(_ROUNDS))
            report = seconds(paths.root, "report", "compared", "-o", str(Path(folder, "report.html")))
        finally:
            stop_daemon(paths)
    what = f"{args.runs} runs × {args.points:,} points"
    middle = warm[len(warm) // 2]
    rows = [
        Row(f"compare, {what}, for the first time", _told(cold), "–", True),
        Row(f"compare, {what}, warm", _told(middle), f"{_WARM_SECONDS:g} s", middle[0] < _WARM_SECONDS),
        Row(f"report, {what}, warm", _told(report), "–", True),
    ]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    text = (
        f"From the prompt back to it; warm is the middle of {_ROUNDS} rounds. On the machine "
        f"{load:.1f} processes wanted each CPU meanwhile."
    )
    header = ("what", "measured", "limit", "held")
    write_table("compare", "Comparing many runs", text, header, [row.cells() for row in rows])
    for row in rows:
        print(row.what, row.measured)
    if not all(row.held for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
