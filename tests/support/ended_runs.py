"""Ended runs as their files tell them, made in no time: a daemon that starts beside them takes them in."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ulid import ULID

from mosaic.analytics.event_files import EventWriter
from mosaic.contract.paths import RunPaths, VarPaths
from mosaic.contract.run_config import validate_train_run_config


@dataclass
class EndedRun:
    """What is to be known of a run; its curve rises with `rate` to `top`."""

    env_id: str = "CartPole-v1"
    seed: int = 1
    params: Mapping[str, Any] = field(default_factory=dict)
    algo: str = "ppo"
    name: str = "made"
    tags: Sequence[str] = ("made",)
    notes: str = ""
    top: float = 100.0
    points: int = 300
    tag: str = "charts/episodic_return"
    outcome: str = "completed"
    reason: str | None = None
    run_id: str = field(default_factory=lambda: str(ULID()))

    @property
    def config(self) -> dict[str, Any]:
        extras = {"algo_params": dict(self.params)} if self.params else {}
        asked = {"run_id": self.run_id, "algo": self.algo, "env_id": self.env_id, "seed": self.seed}
        worker = {"type": "cleanrl", "config": {**asked, "total_timesteps": 1000, "extras": extras}}
        metadata = {"worker": worker, "ui": {"notes": self.notes} if self.notes else {}}
        whole = {"run_name": self.name, "tags": list(self.tags), "metadata": metadata}
        return validate_train_run_config(whole).as_json()

    def write(self, paths: VarPaths) -> RunPaths:
        """Leave all that such a run leaves."""
        paths.make()
        run = paths.run(self.run_id)
        run.logs.mkdir(parents=True)
        run.checkpoints.mkdir()
        (run.checkpoints / "step-000000001000.npz").write_bytes(random.Random(self.seed).randbytes(5000))
        run.events.write_text(json.dumps({"event": "run_completed", "folder": str(run.run_dir)}) + "\n")
        log_dir = {"tensorboard": {"log_dir": str(run.event_files)}}
        run.manifest.write_text(json.dumps({"run_id": self.run_id, "artifacts": log_dir}))
        run.provenance.write_text(json.dumps(_PROVENANCE))
        self.write_curve(run.event_files / "one")
        paths.run_config(self.run_id).write_text(json.dumps(self.config))
        paths.worker_config(self.run_id).write_text(json.dumps({"run_id": self.run_id}))
        paths.kept_logs(self.run_id).mkdir(parents=True)
        (paths.kept_logs(self.run_id) / "supervisor.stderr.log").write_text("all well\n")
        ended = time.time() - 5
        row: dict[str, Any] = {"status": "TERM", "outcome": self.outcome, "reason": self.reason}
        row |= {"started_at": ended - 60, "ended_at": ended, "headline": {"step": 1000, "sps": 50.0}}
        change = {"seq": 0, "run_id": self.run_id, "at": ended, **{key: row[key] for key in list(row)[:3]}}
        record = {"format": 1, "row": row, "notes": self.notes or None, "history": [change]}
        paths.run_record(self.run_id).write_text(json.dumps(record))
        return run

    def write_curve(self, folder: Path) -> None:
        writer, draw = EventWriter(folder), random.Random(self.seed)
        for number in range(1, self.points + 1):
            share = 1 - math.exp(-4 * number / self.points)
            writer.add_scalar(self.tag, self.top * share + draw.gauss(0, 2), number * 3)
        writer.close()


_PROVENANCE = {
    "versions": {"mosaic": "0.1.0", "python": "3.11.7"},
    "hardware": {"cpu": "A CPU", "cpus": 8, "cpus_usable": 4, "memory": "16777216 kB", "system": "Linux 6"},
    "user_folder": {
        "git_commit": "0123456789abcdef",
        "git_diff": "--- a\n+++ b\n-</pre><script>\n+new\n",
    },
}
