"""Measures one library on one row of speed.py, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from speed_rows import Phase, Row

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from mosaic.analytics.event_files import EventReader
from mosaic.client import Client, train_config
from mosaic.client.daemon import stop_daemon

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
CURVES = ("charts/episodic_return", "charts/learning_rate", "charts/epsilon", "losses/")
"""What is written while training goes on, and not by an evaluation after it."""

Points = Sequence[tuple[int, float]]
"""Steps and times, in order."""


@dataclass(frozen=True)
class Measurement:
    """What one process showed."""

    steps_per_second: float
    warm_up_seconds: float
    """What the first steps took beyond what they take later: mostly compiling."""
    memory_mb: float


def measure_script(row: Row, by_cpu: bool = False) -> Measurement:
    """Ours, as a script of its own; `by_cpu`: seconds are those of the processor."""
    module = DEFAULT_ALGO_REGISTRY[row.algo]
    params = {"env_id": row.env_id, "total_timesteps": row.steps, **row.params}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in params.items()]
    clock = [str(Path(__file__).with_name("cpu_clock.py").absolute())] if by_cpu else ["-m"]
    with tempfile.TemporaryDirectory() as folder:
        memory = _run([sys.executable, *clock, module, *flags], Path(folder))
        return _measurement(row, _event_points(Path(folder, "runs")), memory)


def measure_platform(row: Row) -> Measurement:
    """Ours, as a run of the daemon: queue, supervisor, heartbeats and all."""
    config = train_config(row.algo, row.env_id, total_timesteps=row.steps, params=row.params)
    with tempfile.TemporaryDirectory() as var, Client.connect(Path(var)) as client:
        try:
            run = client.wait(client.submit(config).run_id)
            assert run.outcome == "completed", run.reason
            return _measurement(row, _event_points(Path(run.run_dir, "runs")), 0.0)
        finally:
            stop_daemon(client.paths)


def measure_peer(row: Row, library: str) -> Measurement:
    """Another library with our hyperparameters."""
    script = Path(__file__).with_name("speed_peer.py").absolute()
    with tempfile.TemporaryDirectory() as folder:
        memory = _run([sys.executable, str(script), library, row.name, str(row.steps)], Path(folder))
        noted = json.loads(Path(folder, "stdout").read_text().splitlines()[-1])
    return _measurement(row, list(zip(noted["steps"], noted["times"], strict=True)), memory)


def _run(command: list[str], folder: Path) -> float:
    """Run to the end; gives the most memory the process has held, in MB."""
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError((folder / "stderr").read_text()[-2000:])
    return usage.ru_maxrss / 1024


def _event_points(folder: Path) -> Points:
    (chunk,) = EventReader(folder).poll(10_000_000)
    found = [
        (wall_time, step)
        for tag, series in chunk.series.items()
        if tag.startswith(CURVES)
        for wall_time, step in zip(series.wall_times, series.steps, strict=True)
    ]
    return [(step, wall_time) for wall_time, step in sorted(found)]


def _measurement(row: Row, points: Points, memory: float) -> Measurement:
    """The speed over all phases, each as fast as it is after its first steps."""
    total, warm_up, steps = 0.0, 0.0, 0
    for phase in row.phases:
        per_step, lost = _pace(phase, points)
        total += per_step * phase.weight
        steps += phase.weight
        warm_up += lost
    return Measurement(steps / total, warm_up, memory)


def _pace(phase: Phase, points: Points) -> tuple[float, float]:
    """Seconds per step once the phase is under way, and the seconds its first steps took beyond that."""
    warm_step, warm_time = _last_point(points, phase.start + phase.skipped)
    end_step, end_time = _last_point(points, phase.end)
    per_step = (end_time - warm_time) / (end_step - warm_step)
    first_step, first_time = _last_point(points, phase.start)
    return per_step, max(0.0, warm_time - first_time - per_step * (warm_step - first_step))


def _last_point(points: Points, step: int) -> tuple[int, float]:
    """The last point up to `step`, or the first of all."""
    return max((point for point in points if point[0] <= step), default=points[0], key=lambda point: point[1])
