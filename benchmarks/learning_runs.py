"""Training the runs of the plan, each in a process and a folder of its own, and reading their curves."""

from __future__ import annotations

import csv
import json
import math
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


CURVES = Path(__file__).with_name("results") / "curves"
"""A file for each run that ever finished, so that seeds may be trained in several calls and places."""
PARTS = 100
"""Points of a curve: each is the mean over the episodes in that part of training."""


@dataclass(frozen=True)
class Curve:
    """How the episodes of a run went."""

    last_tenth: float
    """The mean return of the episodes that ended in the last tenth of training."""
    means: list[float]
    """The mean return in each of `PARTS` equal parts of training; where no episode ended, that before."""

    @classmethod
    def of(cls, total_steps: int, steps: Iterable[int], returns: Iterable[float]) -> Curve:
        """The curve of episodes that ended at these steps with these returns."""
        found: list[list[float]] = [[] for _ in range(PARTS)]
        late: list[float] = []
        for step, value in zip(steps, returns, strict=True):
            found[min(PARTS - 1, (step - 1) * PARTS // total_steps)].append(value)
            if step > 0.9 * total_steps:
                late.append(value)
        means, last = [], float("nan")
        for values in found:
            last = fmean(values) if values else last
            means.append(last)
        return cls(fmean(late), means)


def train_all(rows: Iterable[Row], keep: Path, jobs: int, missing: bool) -> list[str]:
    """Train what is not finished in `keep`, or what has no curve; gives the names of the runs that failed."""
    wanted = [job for row in rows for job in (*row.jobs(), row.peer_job()) if job is not None]
    if missing:
        wanted = [job for job in wanted if read_run(job, keep) is None]
    teachers = list(dict.fromkeys(job.teacher for job in wanted if job.teacher is not None))
    failed: list[str] = []
    # A teacher may be a row of the plan too, and then there is nothing left to train of it.
    for stage in (teachers, wanted):
        left = [job for job in stage if not _is_done(keep / job.folder, teaches=job in teachers)]
        with ThreadPoolExecutor(jobs) as pool:
            failed += [name for name in pool.map(lambda job: _train(job, keep), left) if name]
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
    """The curve of a run that is finished in `keep`, or was in an earlier call with the same flags."""
    folder, kept = keep / job.folder, CURVES / (job.folder.replace("/", "__") + ".json")
    if (folder / "done.json").exists():
        curve = _read_folder(job, folder)
        told = {"flags": job.flags, "last_tenth": curve.last_tenth}
        # Six digits are more than a picture shows; NaN, where no episode has ended yet, is null in JSON.
        means = [None if math.isnan(mean) else float(f"{mean:.6g}") for mean in curve.means]
        CURVES.mkdir(exist_ok=True)
        write_atomic(kept, (json.dumps(told | {"means": means}) + "\n").encode())
        return curve
    if kept.exists():
        told = json.loads(kept.read_text("utf-8"))
        if told["flags"] == list(job.flags):
            means = [math.nan if mean is None else mean for mean in told["means"]]
            return Curve(told["last_tenth"], means)
    return None


def _read_folder(job: Job, folder: Path) -> Curve:
    if job.trainer.startswith("sb3_"):
        return _read_monitor(folder / "sb3.monitor.csv", job.steps)
    (chunk,) = EventReader(folder / "runs").poll(10_000_000)
    episodes = chunk.series["charts/episodic_return"]
    return Curve.of(job.steps, episodes.steps, episodes.values)


def _read_monitor(path: Path, total_steps: int) -> Curve:
    """What Stable-Baselines3 notes of episodes: a line of JSON, then return and length of each."""
    steps, returns, step = list[int](), list[float](), 0
    with open(path, encoding="utf-8", newline="") as file:
        next(file)
        for row in csv.DictReader(file):
            step += int(row["l"])
            steps.append(step)
            returns.append(float(row["r"]))
    return Curve.of(total_steps, steps, returns)
