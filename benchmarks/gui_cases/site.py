"""A var folder of the benchmark's own with many ended runs and one that shows its environments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mosaic.client import Client, RunRecord, train_config
from mosaic.client.daemon import stop_daemon

HERE = Path(__file__).parent
SEEDS = 4
_MOST_SECONDS = 1800.0


@contextmanager
def site(folder: Path, runs: int, points: int, slots: int) -> Iterator[RunRecord]:
    """Make the runs, and give the live one once it trains; at the end nothing of them is left running."""
    with Client.connect(folder) as client:
        try:
            _make_curves(client, runs, points)
            yield start_frames(client, slots)
        finally:
            for run in client.runs(["INIT", "HSHK", "RDY", "EXEC", "PAUSE"]):
                client.cancel(run.run_id, "the benchmark is over")
                client.wait(run.run_id, timeout=90)
            stop_daemon(client.paths)


def _make_curves(client: Client, runs: int, points: int) -> None:
    script = str(HERE / "points_script.py")
    for seed in range(1, runs + 1):
        client.submit(
            train_config(script, "None-v0", total_timesteps=points, seed=seed, run_name=f"curve-{seed}")
        )
    deadline = time.monotonic() + _MOST_SECONDS
    while live := client.runs(["INIT", "HSHK", "RDY", "EXEC"]):
        assert time.monotonic() < deadline, f"{len(live)} runs have not ended"
        time.sleep(1.0)
    failed = [run for run in client.runs() if run.outcome != "completed"]
    assert not failed, failed[0].reason


def start_frames(client: Client, slots: int, wait: bool = True) -> RunRecord:
    """A run that shows its environments; it trains by then, unless nobody waits for that."""
    config = train_config(
        str(HERE / "frames_script.py"),
        "None-v0",
        total_timesteps=10_000_000,
        params={"slots": slots},
        extras={"fastlane_grid_limit": slots},
        run_name="frames",
    )
    run = client.submit(config)
    deadline = time.monotonic() + 60
    while wait and client.get(run.run_id).status != "EXEC":
        assert time.monotonic() < deadline, "the run with frames has not started"
        time.sleep(0.1)
    return client.get(run.run_id)


def ended_runs(client: Client) -> list[str]:
    """The ids of the runs that have left a curve."""
    return [run.run_id for run in client.runs(["TERM"])]
