"""`mosaic gc` against a real daemon: it tells, asks, removes, and leaves live runs alone."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.client import Client
from mosaic.contract.paths import VarPaths
from support.runs import end, long_config, script_config, wait_for_status

if TYPE_CHECKING:
    from conftest import RunMosaic

ALL = ("gc", "--older-than", "0")


def parsed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stderr == ""
    return json.loads(done.stdout)


def goes(run_mosaic: RunMosaic, *options: str) -> set[str]:
    plan = parsed(run_mosaic(*ALL, *options, "--dry-run", "--json"))
    assert plan["removed"] is False
    return {run["run_id"] for run in plan["runs"]}


def test_old_runs_and_leftovers_go_by_rule(client: Client, run_mosaic: RunMosaic) -> None:
    paths = VarPaths(client.paths.root)
    plain = client.submit(script_config("steps.py", tags=["paper"]))
    broken = client.submit(script_config("steps.py", params={"exit_code": 5}))
    plain, broken = (client.wait(run.run_id, timeout=60) for run in (plain, broken))
    live = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    dangling = paths.tensorboard / "01M7GDQ48Q692K09GV9V0QZ0E1"
    dangling.symlink_to(paths.runs / "gone")
    ours = Path(live.run_dir) / ".analytics.json.abcd1234"
    ours.write_text("{")
    os.utime(ours, (time.time() - 1e6,) * 2)

    assert goes(run_mosaic) == {plain.run_id, broken.run_id}
    assert goes(run_mosaic, "--outcome", "failed,cancelled") == {broken.run_id}
    assert goes(run_mosaic, "--tag", "paper") == {plain.run_id}
    assert goes(run_mosaic, "--not-tag", "paper") == {broken.run_id}
    assert goes(run_mosaic, "--keep", "2") == set()
    assert goes(run_mosaic, "--older-than", "30d") == set()

    unsure = run_mosaic(*ALL, check=False)
    assert (unsure.returncode, unsure.stderr.count("\n")) == (2, 1)
    assert "add --yes" in unsure.stderr
    for part in (plain.run_id[:10], "completed", "failed", "runs that ended", "TensorBoard", "in all"):
        assert part in unsure.stdout
    assert Path(plain.run_dir).exists()

    done = parsed(run_mosaic(*ALL, "--yes", "--json"))
    assert done["removed"] is True
    assert done["freed_bytes"] == done["bytes"] > 0
    assert not Path(plain.run_dir).exists()
    assert not dangling.is_symlink()
    assert ours.exists()
    assert [run.run_id for run in client.runs()] == [live.run_id]

    # What the removed runs told stays for one more round.
    logs = parsed(run_mosaic(*ALL, "--yes", "--json"))["leftovers"]
    assert {Path(item["path"]).name for item in logs} == {plain.run_id, broken.run_id}
    assert {path.name for path in (paths.logs / "trainer").iterdir()} == {live.run_id}
    assert "Nothing to remove" in run_mosaic(*ALL).stdout
    assert client.get(live.run_id).status == "EXEC"
    end(client, live)
