"""Scripts that we did not write run unmodified, also in an interpreter that has nothing of ours."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mosaic.client import Client, train_config
from mosaic.contract.process import ProcessIdentity
from mosaic.fastlane.grid import LiveGrid
from support.runs import SCRIPTS, end, script_config, wait_for_status

OLD = ("gymnasium==0.29.1", "numpy==1.26.4", "tensorboardX==2.6.2.2", "protobuf<6")


@pytest.fixture(scope="session")
def old_python() -> Path:
    """An interpreter with an older gymnasium and none of our packages, made once beside our own."""
    folder = Path(sys.prefix) / "old-gymnasium"
    python, done = folder / "bin" / "python", folder / "done"
    with (Path(sys.prefix) / "old-gymnasium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", *OLD], check=True, capture_output=True)
            done.touch()
    return python


def test_a_tyro_script_with_torchs_writer_has_live_metrics(client: Client) -> None:
    config = script_config("tyro_script.py", steps=100, params={"learning_rate": 0.5})
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    returns = client.metrics(run.run_id).series("charts/episodic_return")
    assert list(returns.steps) == list(range(0, 101, 10))
    assert returns.values[-1] == 50.0
    assert run.headline["last_return"] == 50.0
    assert run.headline["progress"] == 1.0


def test_a_script_that_only_defines_main_is_called(client: Client) -> None:
    run = client.wait(client.submit(script_config("defines_main.py", steps=5)).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    ran = (Path(run.run_dir) / "ran.txt").read_text()
    assert ran == "--env-id=None-v0 --total-timesteps=5 --seed=1"


def test_a_dotted_module_of_the_users_folder_runs(client: Client, tmp_path: Path) -> None:
    package = tmp_path / "lab"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "study.py").write_text("import sys; print('studied', __name__, sys.argv[1])")
    config = train_config("lab.study", "None-v0", total_timesteps=1, folder=tmp_path)
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    assert b"".join(client.logs(run.run_id)) == b"studied __main__ --env-id=None-v0\n"


def test_an_exception_becomes_the_cause_of_the_failure(client: Client) -> None:
    run = client.wait(client.submit(script_config("crashes.py")).run_id, timeout=60)
    assert run.outcome == "failed"
    assert run.reason == "ValueError: the reward is not a number (exit code 1)"
    assert b"Traceback" in b"".join(client.logs(run.run_id, stream="stderr"))


def test_a_script_that_removes_its_runs_folder_is_told_of(client: Client) -> None:
    run = client.wait(client.submit(script_config("removes_its_folder.py")).run_id, timeout=60)
    assert run.outcome == "failed"
    assert f"{run.run_id} was removed before the run had ended" in str(run.reason)


def test_another_interpreter_runs_with_nothing_of_ours(client: Client, old_python: Path) -> None:
    script = str(SCRIPTS / "old_gymnasium.py")
    config = train_config(script, "CartPole-v1", total_timesteps=500, python=str(old_python))
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    assert b"gymnasium 0.29.1" in b"".join(client.logs(run.run_id))
    assert len(client.metrics(run.run_id).series("charts/episodic_return").values) > 5
    assert run.headline["episodes"] > 5


def test_the_environments_of_another_interpreter_are_watched(client: Client, old_python: Path) -> None:
    config = script_config("plays.py", steps=1_000_000, params={"pause": 0.001}, python=str(old_python))
    run = client.submit(config)
    with LiveGrid(run.run_id) as grid:
        deadline = time.monotonic() + 60
        while grid.picture() is None:
            assert time.monotonic() < deadline, grid.status()
            grid.look()
            time.sleep(0.01)
        assert grid.picture().shape == (40, 60, 3)
    end(client, run)


def test_an_interpreter_that_is_none_fails_the_run_with_that_cause(client: Client, tmp_path: Path) -> None:
    config = script_config("steps.py", python=str(tmp_path / "no-python"))
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "failed"
    assert "no-python cannot be started: No such file or directory" in str(run.reason)


def test_nothing_of_a_clinging_script_is_left_after_cancel(
    var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_GRACE_SECONDS", "1")
    with Client.connect(var) as client:
        run = wait_for_status(client, client.submit(script_config("clings.py")).run_id, "EXEC")
        told = b""
        for chunk in client.logs(run.run_id, follow=True):
            told += chunk
            if b"daemon=" in told and b"script=" in told:
                break
        pids = [int(pid) for pid in re.findall(rb"(?:daemon|script)=(\d+)", told)]
        left = [ProcessIdentity.of(pid) for pid in pids]
        assert len(left) == 2
        end(client, run)
        assert not any(identity.alive() for identity in left if identity)
