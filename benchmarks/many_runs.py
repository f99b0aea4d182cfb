"""How the command line, the daemon and the window bear very many runs.

python benchmarks/many_runs.py --runs 100000 --folders 5000

The runs are written straight into the database of a var folder, as ended runs of the last year, with their
config files; so many of the newest have folders and logs too. `--keep FOLDER` fills a folder and keeps it.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ulid import ULID

from mosaic.client import train_config
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import validate_train_run_config
from mosaic.trainer.storage import prepare

_YEAR = 365 * 86_400.0
_WAY = ("INIT", "HSHK", "RDY", "EXEC", "TERM")
_OUTCOMES = ("completed",) * 7 + ("cancelled", "timed_out", "failed")
_KINDS = (
    *(("ppo", "CartPole-v1"), ("ppo", "Acrobot-v1"), ("dqn", "CartPole-v1"), ("dqn", "MountainCar-v0")),
    *(("c51", "CartPole-v1"), ("ppo_continuous_action", "Pendulum-v1")),
)


def fill(paths: VarPaths, runs: int, folders: int) -> None:
    """Write `runs` ended runs; the newest `folders` of them with what a run leaves behind."""
    paths.make()
    made = list(_runs(runs))
    with closing(sqlite3.connect(paths.database, isolation_level=None)) as database:
        prepare(database)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN")
        for run in made:
            names, marks = ", ".join(run), ", ".join("?" * len(run))
            database.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", list(run.values()))
            database.executemany(
                "INSERT INTO transitions (run_id, status, outcome, at) VALUES (?, ?, ?, ?)", _moves(run)
            )
        database.execute("UPDATE runs SET place = position")
        database.execute("COMMIT")
    for run in made:
        config = json.loads(run["config"])
        paths.run_config(run["run_id"]).write_text(run["config"], "utf-8")
        worker = json.dumps(config["metadata"]["worker"]["config"])
        paths.worker_config(run["run_id"]).write_text(worker, "utf-8")
    for run in made[-folders:]:
        _leave_files(paths, run)


def _runs(count: int) -> Iterator[dict[str, Any]]:
    draw, now = random.Random(1), time.time()
    for number in range(count):
        algo, env_id = _KINDS[number // 3 % len(_KINDS)]
        params = {"learning_rate": draw.choice([1e-4, 2.5e-4, 1e-3]), "gamma": draw.choice([0.95, 0.99])}
        config = train_config(
            algo, env_id, total_timesteps=500_000, seed=number % 3 + 1, params=params, tags=_tags(number)
        )
        stored = validate_train_run_config(config).as_json()
        submitted = now - _YEAR * (count - number) / count - 3600
        outcome = draw.choice(_OUTCOMES)
        step = 500_000 if outcome == "completed" else draw.randrange(500_000)
        headline = {
            "step": step,
            "total_steps": 500_000,
            "sps": draw.uniform(1_000, 9_000),
            "last_return": draw.uniform(0, 500),
            "mean_return": draw.uniform(0, 500),
            "episodes": step // 200,
            "progress": step / 500_000,
            "phase": "training",
            "time_shares": {"env": 0.4, "update": 0.6},
        }
        yield {
            "run_id": str(ULID.from_timestamp(submitted)),
            "request_id": f"filled-{number}",
            "run_name": stored["run_name"],
            "worker_type": "cleanrl",
            "config": json.dumps(stored),
            "tags": json.dumps(stored["tags"]),
            "cpus": 1,
            "status": "TERM",
            "outcome": outcome,
            "reason": "the environment broke" if outcome == "failed" else None,
            "submitted_at": submitted,
            "started_at": submitted + 1,
            "ended_at": submitted + 60,
            "exit_code": 1 if outcome == "failed" else 0,
            "headline": json.dumps(headline),
        }


def _tags(number: int) -> list[str]:
    return [*(["paper"] if number % 50 == 0 else []), f"sweep-{number // 1000}"]


def _moves(run: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for number, status in enumerate(_WAY):
        outcome = run["outcome"] if status == "TERM" else None
        yield run["run_id"], status, outcome, run["submitted_at"] + number


def _leave_files(paths: VarPaths, run: dict[str, Any]) -> None:
    place, kept = paths.run(run["run_id"]), paths.kept_logs(run["run_id"])
    for folder in (place.stdout.parent, place.run_dir / "checkpoints", kept):
        folder.mkdir(parents=True)
    for file in (place.stdout, place.stderr, place.events, kept / "events.jsonl"):
        file.write_text("a line\n" * 50, "utf-8")
    (place.run_dir / "analytics.json").write_text("{}", "utf-8")
    (place.run_dir / "checkpoints" / "step-500000.npz").write_bytes(bytes(2000))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=5_000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    fill(VarPaths(options.keep.resolve()), options.runs, options.folders)
    return 0


if __name__ == "__main__":
    sys.exit(main())
