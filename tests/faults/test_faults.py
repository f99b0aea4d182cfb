"""What the daemon must outlive, each in a short form; `benchmarks/faults.py` has all of it in full."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fault_cases import (
    clinging_script,
    copied_folder,
    crash_points,
    cut_connection,
    daemon_kill,
    disks,
    full_disk,
    lost_database,
    many_runs,
    power_loss,
    space_wait,
    supervisor_kill,
    watchers,
)
from fault_cases.crash_scenarios import PLANS

# Every sixth point; nearly every scenario has one of them.
FEW_PLANS = PLANS[::6]


def test_runs_outlive_a_killed_daemon(tmp_path: Path) -> None:
    assert daemon_kill.run(tmp_path, workers=2, downs=[0.0, 0.5]).failures == []


@pytest.mark.parametrize("half", [0, 1])
def test_a_daemon_killed_at_a_named_point_leaves_no_double_and_no_orphan(tmp_path: Path, half: int) -> None:
    assert crash_points.run(tmp_path, FEW_PLANS[half::2]).failures == []


def test_a_queue_keeps_its_order_over_a_kill(tmp_path: Path) -> None:
    assert many_runs.run(tmp_path, runs=10, kills=1).failures == []


def test_a_killed_supervisor_leaves_no_process(tmp_path: Path) -> None:
    assert supervisor_kill.run(tmp_path, kills=4).failures == []


def test_a_stopped_watcher_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    assert watchers.run(tmp_path, watchers=10, events=6).failures == []


def test_a_cut_connection_loses_and_doubles_nothing(tmp_path: Path) -> None:
    assert cut_connection.run(tmp_path, cuts=[0.5, 0.5, 0.5]).failures == []


def test_a_full_disk_is_named_and_survived(tmp_path: Path) -> None:
    assert full_disk.run(tmp_path).failures == []


def test_files_that_cannot_grow_are_named_and_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "try_mount", lambda folder: False)
    assert full_disk.run(tmp_path).failures == []


def test_live_runs_wait_for_space_and_go_on(tmp_path: Path) -> None:
    (tmp_path / "tried").mkdir()
    if not disks.try_mount(tmp_path / "tried"):
        pytest.skip("a tmpfs cannot be mounted here")
    subprocess.run(["umount", str(tmp_path / "tried")], check=True)
    assert space_wait.run(tmp_path, seconds=4).failures == []


def test_a_power_loss_takes_no_state_change_that_was_told(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace records the writes to the database, and is not installed here")
    assert power_loss.run(tmp_path, runs=3).failures == []


def test_a_database_lost_under_live_runs_is_rebuilt(tmp_path: Path) -> None:
    assert lost_database.run(tmp_path, workers=2, rounds=6).failures == []


def test_a_folder_copied_while_in_use_is_a_folder_of_its_own(tmp_path: Path) -> None:
    assert copied_folder.run(tmp_path, workers=2, copies=2).failures == []


def test_nothing_is_left_of_a_script_that_clings(tmp_path: Path) -> None:
    assert clinging_script.run(tmp_path, cancels=2).failures == []
