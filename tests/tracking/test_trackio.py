"""trackio by its real client, in a database on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from mosaic.tracking import LOCAL, read_link
from mosaic.tracking.settings import program
from support.tracked import TrackedRun

TRACK: dict[str, Any] = {"track_trackio": True}
ALL = """
import json
from trackio.sqlite_storage import SQLiteStorage as s
runs = s.get_run_records("proj")
print(json.dumps([dict(name=r["name"], logs=s.get_logs("proj", r["name"]),
                       config=s.get_run_config("proj", r["name"])) for r in runs]))
"""


def test_a_run_goes_to_a_database_on_this_machine_and_goes_on_there(tracked: TrackedRun) -> None:
    extras = {**TRACK, "trackio_project": "proj", "trackio_run_name": "mine", "trackio_group": "g"}
    tracked.run({**extras, "algo_params": {"fail_at": 17}}, code=1)
    tracked.run(extras)
    link = read_link(tracked.paths.run_dir, "trackio")
    assert link is not None, tracked.log()
    assert (link.state, link.problem, link.finished) == (LOCAL, "", True), tracked.log()
    folder = tracked.var / "trackio"
    assert link.command == f"TRACKIO_DIR={folder} {program('trackio')} show --project proj"
    done = subprocess.run(
        [sys.executable, "-c", ALL], env={"TRACKIO_DIR": str(folder)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout.splitlines()[-1])
    points = [
        (row["step"], row["charts/episodic_return"]) for row in run["logs"] if "charts/episodic_return" in row
    ]
    assert points == [(step, step * 2.0) for step in range(25)]
    assert run["name"].startswith("mine-") and run["config"]["total_timesteps"] == 25
    assert any("videos/episode-0" in row for row in run["logs"])
