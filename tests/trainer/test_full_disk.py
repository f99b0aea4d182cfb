"""The disk is full: runs go on or wait, and what makes room works, also when no daemon runs yet."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import RunMosaic
from mosaic.client import Client, RunRecord, train_config
from mosaic.client.daemon import stop_daemon
from mosaic.contract.connection import DaemonAddress
from mosaic.contract.errors import StorageError
from mosaic.contract.events import LifecycleReader
from mosaic.contract.paths import VarPaths
from support.runs import end, long_config, script_config, wait_for_status

_IMPATIENT = """
    import sys
    if "mosaic.trainer" in sys.orig_argv:
        import mosaic.trainer.attached as attached
        attached.SILENCE_SECONDS = 2.0
    elif "cleanrl_worker.cli" in sys.orig_argv:
        import cleanrl_worker.supervisor.reporter as reporter
        reporter.HEARTBEAT_SECONDS = 0.5
"""


class Disk:
    """A small file system that can be filled up."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def fill(self) -> None:
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for size in (1 << 20, 4096, 1):
            try:
                while os.write(descriptor, bytes(size)):
                    pass
            except OSError:
                continue
        os.close(descriptor)

    def free(self) -> None:
        self._filler.unlink()

    @contextmanager
    def kept_full(self) -> Iterator[None]:
        """Whatever becomes free is taken at once, as by a process that writes without end."""
        done = threading.Event()

        def fill() -> None:
            while not done.wait(0.001):
                self.fill()

        thread = threading.Thread(target=fill)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@pytest.fixture
def disk(var: Path) -> Iterator[Disk]:
    """The test's var folder on a disk of its own."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(var)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield Disk(var)
        stop_daemon(VarPaths(var))
    finally:
        subprocess.run(["umount", "--lazy", str(var)], check=True)


@pytest.fixture
def small(disk: Disk, var: Path) -> Iterator[Client]:
    with Client.connect(var) as client:
        yield client


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"it is still not so that {what}"
        time.sleep(0.05)


def _events(run: RunRecord) -> list[str]:
    events = LifecycleReader(Path(run.run_dir) / "logs" / "events.jsonl").poll()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [str(event.event) for event in events]


@pytest.mark.parametrize("killed", [False, True])
def test_without_a_daemon_runs_are_listed_and_removed(
    disk: Disk, var: Path, run_mosaic: RunMosaic, killed: bool
) -> None:
    with Client.connect(var) as client:
        for _ in range(2):
            run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
        pid = client.health().pid
    if killed:
        os.kill(pid, 9)
    else:
        stop_daemon(VarPaths(var))
    with disk.kept_full():
        assert len(json.loads(run_mosaic("runs", "--json").stdout)) == 2
        assert run.run_id in run_mosaic("show", "last").stdout
        daemon = DaemonAddress.read(VarPaths(var).daemon_file)
        assert daemon is not None
        os.kill(daemon.pid, 9)
        run_mosaic("rm", "last", "--yes")
        run_mosaic("daemon", "stop")
        run_mosaic("gc", "--older-than", "0s", "--yes")
        assert json.loads(run_mosaic("runs", "--json").stdout) == []


def test_a_live_run_is_not_taken_for_dead_and_goes_on(
    disk: Disk, var: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(textwrap.dedent(_IMPATIENT))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    with Client.connect(var) as client:
        run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
        stdout = Path(run.run_dir) / "logs" / "cleanrl.stdout.log"
        disk.fill()
        _until(lambda: client.get(run.run_id).headline.get("phase") == "waiting for space", "it waits")
        # The daemon looks every five seconds whether a supervisor is silent.
        time.sleep(8)
        again = client.get(run.run_id)
        assert (again.status, again.supervisor_pid) == ("EXEC", run.supervisor_pid)
        assert "is nearly full" in " ".join(client.health().problems)
        size = stdout.stat().st_size
        disk.free()
        _until(lambda: stdout.stat().st_size > size + 100, "the script goes on")
        _until(lambda: client.get(run.run_id).headline["phase"] != "waiting for space", "that is told")
        end(client, run)
        lines = stdout.read_text().splitlines()
        assert lines == [f"step={number}" for number in range(len(lines))]
        assert _events(run)[-1] == "run_cancelled"


def test_a_run_can_be_cancelled(disk: Disk, small: Client) -> None:
    run = wait_for_status(small, small.submit(long_config()).run_id, "EXEC")
    disk.fill()
    small.cancel(run.run_id)
    ended = small.wait(run.run_id, timeout=60)
    assert (ended.outcome, ended.reason) == ("cancelled", "cancelled by the user")
    assert _events(run)[-1] == "run_cancelled"
    assert json.loads((Path(run.run_dir) / "analytics.json").read_text())["status"] == "cancelled"


def test_a_script_that_ends_completes(disk: Disk, small: Client) -> None:
    script = Path(small.paths.root.parent) / "ends.py"
    script.write_text("import time, pathlib\nwhile not pathlib.Path('../end').exists(): time.sleep(0.05)\n")
    run = small.submit(train_config(str(script), "None-v0", total_timesteps=1))
    wait_for_status(small, run.run_id, "EXEC")
    (Path(run.run_dir) / "../end").touch()
    disk.fill()
    ended = small.wait(run.run_id, timeout=60)
    assert (ended.outcome, ended.exit_code) == ("completed", 0)
    assert json.loads((Path(run.run_dir) / "analytics.json").read_text())["status"] == "completed"
    assert sorted(path.name for path in Path(run.run_dir).glob(".*")) == []


def test_a_run_waits_for_space_before_it_starts(disk: Disk, small: Client) -> None:
    cpus = len(os.sched_getaffinity(0))
    first = wait_for_status(small, small.submit(long_config(cpus=cpus)).run_id, "EXEC")
    second = small.submit(script_config("steps.py"))
    disk.fill()
    with pytest.raises(StorageError, match="free some space there"):
        small.submit(script_config("steps.py"))
    end(small, first)
    waits = f"waits for space on the disk of {small.paths.root}"
    _until(lambda: small.get(second.run_id).reason == waits, "it waits for space")
    disk.free()
    assert small.wait(second.run_id, timeout=60).outcome == "completed"
    assert [entry.status for entry in small.get(second.run_id).history].count("HSHK") == 1


def test_one_of_our_algorithms_waits_and_ends_as_if_nothing_had_been(disk: Disk, small: Client) -> None:
    params = {"checkpoint_every": 512, "num_envs": 2, "num_steps": 128}
    config = train_config("ppo", "CartPole-v1", total_timesteps=16384, seed=3, params=params)
    first = small.wait(small.submit(config).run_id, timeout=120)
    second = small.submit(config)
    checkpoints = Path(second.run_dir) / "checkpoints"
    _until(lambda: any(checkpoints.glob("step-*.npz")), "it has a checkpoint")
    disk.fill()
    _until(lambda: small.get(second.run_id).headline.get("phase") == "waiting for space", "it waits")
    left = [path.name for path in checkpoints.iterdir()]
    assert not [name for name in left if name.startswith(".")], "half a checkpoint is there"
    disk.free()
    ended = small.wait(second.run_id, timeout=120)
    assert (first.outcome, ended.outcome, ended.reason) == ("completed", "completed", None)
    for pattern in ("runs/*/ppo.cleanrl_model", "checkpoints/step-*16384.npz"):
        (one,), (other,) = Path(first.run_dir).glob(pattern), Path(second.run_dir).glob(pattern)
        assert one.name == other.name
        if one.suffix == ".cleanrl_model":
            assert one.read_bytes() == other.read_bytes()
    rows = [list(csv.DictReader(small.metrics(run.run_id).to_csv().splitlines())) for run in (first, ended)]
    # All but what is measured with a clock.
    tags = ("charts/episodic", "charts/learning_rate", "losses/", "eval/")
    curves = [
        [(row["name"], row["step"], row["value"]) for row in one if row["name"].startswith(tags)]
        for one in rows
    ]
    assert len(curves[0]) > 100
    assert curves[0] == curves[1]
    assert _events(ended)[-1] == "run_completed"
    assert sorted(path.name for path in Path(second.run_dir).glob(".*")) == []


def test_one_of_our_algorithms_that_waits_can_be_cancelled(disk: Disk, small: Client) -> None:
    config = train_config("ppo", "CartPole-v1", total_timesteps=10**7, params={"checkpoint_every": 512})
    run = small.submit(config)
    checkpoints = Path(run.run_dir) / "checkpoints"
    _until(lambda: any(checkpoints.glob("step-*.npz")), "it has a checkpoint")
    disk.fill()
    _until(lambda: small.get(run.run_id).headline.get("phase") == "waiting for space", "it waits")
    small.cancel(run.run_id)
    ended = small.wait(run.run_id, timeout=60)
    assert ended.outcome == "cancelled"
    assert _events(ended)[-1] == "run_cancelled"
    # Killed it was not: it has ended by itself, without the checkpoint for which there was no room.
    assert ended.exit_code == 1
    assert [path for path in checkpoints.iterdir() if path.name.startswith(".")] == []
