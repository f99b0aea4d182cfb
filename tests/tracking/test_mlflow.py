"""MLflow by its real client: a database on this machine, and a real server on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mosaic.tracking import FAILED, LOCAL, ONLINE, TrackerLink, read_link
from mosaic.tracking.settings import program
from support.tracked import TrackedRun

pytestmark = pytest.mark.long

TRACK: dict[str, Any] = {"track_mlflow": True}
RETURNS = [[step, step * 2.0] for step in range(25)]


def link_of(run: TrackedRun) -> TrackerLink:
    link = read_link(run.paths.run_dir, "mlflow")
    assert link is not None
    return link


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@contextmanager
def server(folder: Path, port: int) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    url, python = f"http://127.0.0.1:{port}", sys.executable
    store = f"sqlite:///{folder / 'server.db'}"
    command = [python, "-m", "mlflow", "server", "--backend-store-uri", store, "--port", str(port)]
    command += ["--artifacts-destination", str(folder / "artifacts"), "--workers", "1"]
    with (folder / "log").open("w") as log:
        # Without the processes for its own experiments, which outlive it.
        alone = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=alone)
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{url}/health", timeout=2).close()
                break
            except OSError:
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.3)
        yield url
    finally:
        whole = psutil.Process(process.pid)
        for one in (*whole.children(recursive=True), whole):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(timeout=30)


def told(uri: str, script: str) -> Any:
    """What MLflow says of a run, asked in a process of its own: the library leaves threads behind."""
    code = f"import json, mlflow; c = mlflow.MlflowClient({uri!r}); print(json.dumps({script}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


ALL = """[dict(
    name=r.info.run_name, status=r.info.status, params=r.data.params, tags=r.data.tags,
    returns=[(m.step, m.value) for m in c.get_metric_history(r.info.run_id, 'charts/episodic_return')],
    times=[m.timestamp for m in c.get_metric_history(r.info.run_id, 'charts/episodic_return')],
    files=sorted(f.path for d in ('model', 'videos') for f in c.list_artifacts(r.info.run_id, d)),
) for e in c.search_experiments(filter_string="name = 'exp'") for r in c.search_runs([e.experiment_id])]"""


def test_a_run_goes_to_a_database_on_this_machine_and_goes_on_there(tracked: TrackedRun) -> None:
    extras = {**TRACK, "mlflow_experiment_name": "exp", "mlflow_run_name": "mine", "mlflow_tags": ["a b"]}
    tracked.run({**extras, "notes": "why", "algo_params": {"fail_at": 17}}, code=1)
    uri = f"sqlite:///{tracked.var / 'mlflow' / 'mlflow.db'}"
    (run,) = told(uri, ALL)
    assert (run["status"], run["returns"]) == ("FAILED", RETURNS[:18])
    tracked.run({**extras, "notes": "why"})
    (run,) = told(uri, ALL)
    assert (run["name"], run["status"], run["returns"]) == ("mine", "FINISHED", RETURNS)
    assert run["times"] == sorted(run["times"])
    assert run["params"]["fail_at"] == "17" and run["tags"]["mosaic.run_id"] == tracked.config["run_id"]
    assert run["tags"]["a b"] == "true" and run["tags"]["mlflow.note.content"] == "why"
    assert run["files"] == ["model/curves.cleanrl_model", "videos/episode-0.mp4"]
    link = link_of(tracked)
    assert (link.state, link.problem, link.finished) == (LOCAL, "", True)
    assert link.command == f"{program('mlflow')} ui --backend-store-uri {uri}"


def test_a_real_server_takes_it_and_one_that_comes_late_is_waited_for(
    tracked: TrackedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:word@127.0.0.1:{port}")
    there = tmp_path / "there"
    extras = {**TRACK, "mlflow_experiment_name": "exp", "algo_params": {"until": str(there)}}
    started = tracked.start(extras)
    deadline = time.monotonic() + 60
    while not (link := read_link(tracked.paths.run_dir, "mlflow")) or link.state != FAILED:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert link.problem == (
        f"MLflow at http://127.0.0.1:{port} cannot begin the run: it cannot be reached; "
        "check the address and the network."
    )
    with server(tmp_path / "server", port) as url:
        there.touch()
        out, err = started.communicate(timeout=180)
        assert started.returncode == 0, out + err
        (run,) = told(url, ALL)
        assert (run["status"], run["returns"]) == ("FINISHED", RETURNS)
        assert run["files"] == ["model/curves.cleanrl_model", "videos/episode-0.mp4"]
        link = link_of(tracked)
        assert (link.state, link.problem, link.finished) == (ONLINE, "", True)
        with urllib.request.urlopen(link.url, timeout=10) as page:
            assert page.status == 200
    assert "word" not in (tracked.paths.run_dir / "tracking" / "mlflow.json").read_text()


def test_a_server_that_is_away_costs_a_sentence_and_no_run(tracked: TrackedRun) -> None:
    extras = {**TRACK, "mlflow_tracking_uri": f"http://127.0.0.1:{free_port()}"}
    ended = tracked.run(extras)
    assert "it cannot be reached; check the address" in ended["headline"]["trackers"]["mlflow"]
    assert ended["manifest"]["status"] == "completed"
