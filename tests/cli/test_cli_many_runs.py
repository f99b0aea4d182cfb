"""The command line where there are more runs than one message or one screen can take."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from many_runs import fill

from conftest import RunMosaic
from mosaic.client import Client
from mosaic.contract.paths import VarPaths

MANY = 1_200
OUTCOMES = ("completed", "failed", "cancelled", "timed out")


def test_every_command_bears_very_many_runs(var: Path, run_mosaic: RunMosaic) -> None:
    fill(VarPaths(var), MANY, folders=5)
    shown = run_mosaic("runs").stdout.splitlines()
    assert len(shown) == 22
    assert shown[-1] == "These are the newest 20 of 1,200; --all lists all."
    everything = run_mosaic("runs", "--all").stdout.splitlines()
    assert len(everything) == MANY + 1
    assert len({line.split()[0] for line in everything}) == MANY + 1
    listed = json.loads(run_mosaic("runs", "--limit", "1100", "--json").stdout)
    assert len({run["run_id"] for run in listed}) == 1100
    assert listed[0]["algo"] and listed[0]["headline"]["mean_return"]
    found = json.loads(run_mosaic("runs", "--filter", "tag=paper return>250", "--all", "--json").stdout)
    assert 0 < len(found) < 50
    assert all("paper" in run["tags"] and run["headline"]["mean_return"] > 250 for run in found)
    for width, columns in (
        (20, ["id", "state"]),
        (40, ["id", "name", "state", "done"]),
        (100, ["id", "name", "algo", "environment", "seed", "state", "done", "mean", "return", "age"]),
    ):
        lines = run_mosaic("runs", "--limit", "30", env={"COLUMNS": str(width)}).stdout.splitlines()
        assert lines[0].split() == columns
        assert max(map(len, lines[:31])) <= width
        assert all(any(word in line for word in OUTCOMES) for line in lines[1:31])
    failed = run_mosaic("runs", "--state", "failed", "--limit", "3").stdout.splitlines()
    assert all("failed" in line for line in failed[1:4]) and " of " in failed[-1]
    newest = listed[0]["run_id"]
    assert newest in run_mosaic("show", "last").stdout
    assert run_mosaic("cancel", "--all").stdout == "There is no waiting or live run.\n"
    assert "There is no live or waiting run" in run_mosaic("queue").stdout
    assert run_mosaic("rm", newest, "--yes").stdout.startswith("Removed 1 run")
    plan = json.loads(run_mosaic("gc", "--dry-run", "--json", "--keep", "800").stdout)
    assert {run["run_id"] for run in plan["runs"]} == {
        run["run_id"] for run in json.loads(run_mosaic("runs", "--all", "--json").stdout)[800:]
    }
    gone = json.loads(run_mosaic("gc", "--yes", "--json", "--keep", "1150").stdout)
    assert (len(gone["runs"]), gone["removed"]) == (MANY - 1 - 1150, True)
    assert (
        run_mosaic("runs", "--limit", "1")
        .stdout.splitlines()[-1]
        .startswith("These are the newest 1 of 1,150")
    )


def test_configs_of_30_mb_that_an_earlier_release_stored_break_nothing(
    var: Path, run_mosaic: RunMosaic
) -> None:
    full = VarPaths(var)
    fill(full, 20, folders=5)
    with sqlite3.connect(full.database) as database:
        huge = "json_set(config, '$.metadata.ui.big', hex(zeroblob(15000000)))"
        database.execute(f"UPDATE runs SET config = {huge} WHERE position > ?", [17])
    database.close()
    assert len(run_mosaic("runs", "--limit", "10").stdout.splitlines()) == 12
    assert run_mosaic("cancel", "--all").stdout == "There is no waiting or live run.\n"
    assert json.loads(run_mosaic("gc", "--dry-run", "--json", "--older-than", "0").stdout)["bytes"] > 0
    with Client.connect(full.root) as client:
        assert sum(len(json.dumps(run.config)) for run in client.runs(limit=10)) > 85_000_000
