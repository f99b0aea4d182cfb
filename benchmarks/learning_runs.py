"""Training the runs of the plan, each in a process and a folder of its own, and reading their curves."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from learning_plan import Job, Row

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from mosaic.analytics.event_files import EventReader
from mosaic.contract.atomic import write_atomic

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

MODELS = "runs/*/*.cleanrl_model"


@dataclass(frozen=True)
class Curve:
    """The episodes of a run: the step at which each ended, and its return."""

    total_steps: int
    steps: list[int]
    returns: list[float]

    def last_tenth(self) -> float:
        """The mean return of the episodes that ended in the last tenth of training."""
        episodes = zip(self.steps, self.returns, strict=True)
        return fmean(value for step, value in episodes if step > 0.9 * self.total_steps)

    def means(self, parts: int) -> list[float]:
        """The mean return in each of `parts` equal parts of training; where no episode ended, that before."""
        found: list[list[float]] = [[] for _ in range(parts)]
        for step, value in zip(self.steps, self.returns, strict=True):
            found[min(parts - 1, (step - 1) * parts // self.total_steps)].append(value)
        means, last = [], float("nan")
        for values in found:
            last = fmean(values) if values else last
            means.append(last)
        return means


def train_all(rows: Iterable[Row], keep: Path, jobs: int) -> list[str]:
    """Train what is not finished in `keep`; gives the names of the runs that failed."""
    wanted = [job for row in rows for job in (*row.jobs(), row.peer_job()) if job is not None]
    teachers = list(dict.fromkeys(job.teacher for job in wanted if job.teacher is not None))
    failed: list[str] = []
    # A teacher may be a row of the plan too, and then there is nothing left to train of it.
    for stage in (teachers, wanted):
        missing = [job for job in stage if not _is_done(keep / job.folder, teaches=job in teachers)]
        with ThreadPoolExecutor(jobs) as pool:
            failed += [name for name in pool.map(lambda job: _train(job, keep), missing) if name]
    return failed


def _is_done(folder: Path, teaches: bool) -> bool:
    """Whether a run is finished, and has left a policy if it is to teach."""
    return (folder / "done.json").exists() and (not teaches or any(folder.glob(MODELS)))


def _train(job: Job, keep: Path) -> str | None:
    """Train one run; gives its name when it failed."""
    folder = keep / job.folder
    # What a run that was broken off has left is no part of this one.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"{job.folder} …", flush=True)
    started = time.perf_counter()
    with open(folder / "out.log", "wb") as log:
        ended = subprocess.run(
            _command(job, keep), cwd=folder, env=os.environ | ONE_THREAD, stdout=log, stderr=subprocess.STDOUT
        )
    seconds = time.perf_counter() - started
    print(f"{job.folder}: {seconds:.0f} s, exit code {ended.returncode}", flush=True)
    if ended.returncode != 0:
        return job.folder
    write_atomic(folder / "done.json", json.dumps({"seconds": seconds, "rc": 0}).encode())
    return None


def _command(job: Job, keep: Path) -> list[str]:
    if job.trainer.startswith("sb3_"):
        script = Path(__file__).with_name("sb3_run.py").absolute()
        algo = job.trainer.removeprefix("sb3_")
        return [sys.executable, str(script), algo, job.env_id, str(job.seed), str(job.steps)]
    flags = [f"--env-id={job.env_id}", f"--seed={job.seed}", f"--total-timesteps={job.steps}"]
    module = DEFAULT_ALGO_REGISTRY[job.trainer]
    if job.teacher is not None:
        (policy,) = (keep / job.teacher.folder).absolute().glob(MODELS)
        flags.append(f"--teacher-policy={policy}")
    # What it ends with may be somebody's teacher.
    flags += ["--checkpoint-every=0", "--eval-episodes=0"]
    return [sys.executable, "-m", module, *flags, *job.flags]


def read_run(job: Job, keep: Path) -> Curve | None:
    """The curve of a finished run; None when it is not finished."""
    folder = keep / job.folder
    if not (folder / "done.json").exists():
        return None
    if job.trainer.startswith("sb3_"):
        return _read_monitor(folder / "sb3.monitor.csv", job.steps)
    (chunk,) = EventReader(folder / "runs").poll(10_000_000)
    episodes = chunk.series["charts/episodic_return"]
    return Curve(job.steps, list(episodes.steps), list(episodes.values))


def _read_monitor(path: Path, total_steps: int) -> Curve:
    """What Stable-Baselines3 notes of episodes: a line of JSON, then return and length of each."""
    steps, returns, step = list[int](), list[float](), 0
    with open(path, encoding="utf-8", newline="") as file:
        next(file)
        for row in csv.DictReader(file):
            step += int(row["l"])
            steps.append(step)
            returns.append(float(row["r"]))
    return Curve(total_steps, steps, returns)
