"""Shell scripts as runs: environment, phases, metrics, pause, cancel, failure, restart."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import RunMosaic
from mosaic.client import Client, RunHeadline, RunRecord, train_config
from mosaic.contract.process import ProcessIdentity, process_state, tree_below
from support.runs import end, wait_for_status


@pytest.fixture
def submit(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a script of this text as a run."""
    monkeypatch.delenv("MOSAIC_CUSTOM_SCRIPTS_DIR", raising=False)

    def start(text: str, env_id: str | None = None, mode: int = 0o644, **options: Any) -> RunRecord:
        path = tmp_path / "own script's.sh"
        path.write_text(text)
        path.chmod(mode)
        restarts = options.pop("max_restarts", 0)
        config = train_config(path.name, env_id, folder=tmp_path, **options)
        config["schedule"] = {"max_restarts": restarts}
        return client.submit(config)

    return start


def stdout(client: Client, run: RunRecord) -> str:
    return b"".join(client.logs(run.run_id)).decode()


def wait_for_line(client: Client, run: RunRecord, text: str) -> str:
    told = b""
    for chunk in client.logs(run.run_id, follow=True):
        told += chunk
        if text.encode() in told:
            break
    return told.decode()


def test_the_quick_script_trains_in_phases_that_show_in_the_headline(client: Client) -> None:
    config = train_config("quick_test.sh")
    assert config["metadata"]["worker"]["config"]["env_id"] == "classic"
    run = client.submit(config)
    phases = []
    for update in client.watch(run.run_id, headlines=True, timeout=120):
        if isinstance(update, RunHeadline):
            phases.append((update.headline.get("script_phase") or {}).get("number"))
        elif update.status == "TERM":
            break
    run = client.get(run.run_id)
    assert run.outcome == "completed", run.reason
    assert 1 in phases
    assert run.headline["script_phase"] == {"number": 2, "of": 2, "text": "CartPole-v1"}
    assert (run.headline["step"], run.headline["progress"]) == (16_384, 1.0)
    # The second phase begins with the weights of the first.
    assert "Starts with the weights of" in b"".join(client.logs(run.run_id, "stderr")).decode()
    files = client.artifacts(run.run_id)
    assert sum(file.kind == "model" for file in files) == 2
    assert sum(file.kind == "checkpoint" for file in files) >= 2
    folders = {Path(file.path).parts[:2] for file in files if file.kind == "events"}
    assert folders == {("runs", "phase-1"), ("runs", "phase-2")}
    manifest = json.loads((Path(run.run_dir) / "analytics.json").read_text())
    assert (manifest["status"], manifest["mode"]) == ("completed", "train")
    assert len(manifest["artifacts"]["models"]) == 2


def test_a_script_finds_its_run_in_its_environment(client: Client, submit: Any) -> None:
    text = (
        "for name in ENV_ID TOTAL_TIMESTEPS SEED RUN_ID RUN_DIR CHECKPOINT_DIR CUSTOM_SCRIPTS_DIR; do\n"
        '    name=MOSAIC_$name; printf "%s\\n" "$name=${!name-unset}"\n'
        "done\n"
        'printf "<%s>" "$@"\n'
        'cat "$MOSAIC_CONFIG_FILE"\n'
    )
    params = {"learning_rate": "1; touch stolen", "anneal_lr": False, "clip_vloss": True}
    run = client.wait(submit(text, seed=7, params=params).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    told = stdout(client, run)
    lines = dict(line.split("=", 1) for line in told.splitlines() if line.startswith("MOSAIC_"))
    assert lines["MOSAIC_ENV_ID"] == "unset"
    assert (lines["MOSAIC_SEED"], lines["MOSAIC_RUN_ID"]) == ("7", run.run_id)
    assert lines["MOSAIC_RUN_DIR"] == run.run_dir
    assert lines["MOSAIC_CHECKPOINT_DIR"] == f"{run.run_dir}/checkpoints"
    assert (Path(lines["MOSAIC_CUSTOM_SCRIPTS_DIR"]) / "own script's.sh").is_file()
    assert "<--learning-rate=1; touch stolen><--no-anneal-lr><--clip-vloss>" in told
    assert not (Path(run.run_dir) / "stolen").exists()
    config = json.loads(told[told.index("{") :])
    assert (config["run_id"], config["extras"]["algo_params"]) == (run.run_id, params)
    assert run.headline["progress"] is None


def test_a_named_environment_reaches_the_script(client: Client, submit: Any) -> None:
    text = '# @env_family minigrid\necho "$MOSAIC_ENV_ID $MOSAIC_TOTAL_TIMESTEPS"\n'
    run = client.wait(submit(text, "Own-v0", total_timesteps=123).run_id, timeout=60)
    assert stdout(client, run) == "Own-v0 123\n"


@pytest.mark.parametrize(
    ("first_line", "mode", "shell"),
    [("", 0o644, "bash"), ("#!/bin/sh", 0o644, "sh"), ("#!/usr/bin/env bash", 0o755, "bash")],
)
def test_neither_a_first_line_nor_a_permission_is_needed(
    client: Client, submit: Any, first_line: str, mode: int, shell: str
) -> None:
    text = f'{first_line}\ntr "\\0" "\\n" </proc/$$/cmdline\nyes | head -n 1\n'
    run = client.wait(submit(text, mode=mode).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    command, *_, last, yes = stdout(client, run).splitlines()
    assert (Path(command).name, Path(last).name, yes) == (shell, "own script's.sh", "y")
    # A program that writes into a closed pipe ends quietly, as in any shell.
    assert b"".join(client.logs(run.run_id, "stderr")) == b""


def test_a_script_that_fails_in_a_phase_tells_which(client: Client, submit: Any) -> None:
    text = (
        "# @phases 3\nset -e\nmosaic phase 1 easy\n"
        'mosaic phase 2 "rooms with a door"\necho "no key" >&2\nexit 3\n'
    )
    run = client.wait(submit(text).run_id, timeout=60)
    assert (run.outcome, run.exit_code) == ("failed", 3)
    assert run.reason == "phase 2 of 3 (rooms with a door): no key (exit code 3)"
    assert run.headline["script_phase"]["number"] == 2


def test_trainings_of_python_children_are_the_runs_own(client: Client, submit: Any) -> None:
    train = (
        "from pathlib import Path; from mosaic.analytics.event_files import EventWriter; "
        "events = EventWriter(Path('runs/one')); "
        "[events.add_scalar('charts/episodic_return', 2.0 * step, step) for step in range(5)]; events.close()"
    )
    text = f'# @total_timesteps 8\npython -c "{train}"\nmkdir b && cd b\npython -c "{train}"\n'
    run = client.wait(submit(text).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    assert (run.headline["step"], run.headline["progress"], run.headline["last_return"]) == (8, 1.0, 8.0)
    table = client.metrics(run.run_id)
    assert len(table.series("charts/episodic_return").steps) >= 5


def test_python_children_can_be_watched(client: Client, submit: Any) -> None:
    text = (
        '[ -e "$CLEANRL_FASTLANE_SEGMENT" ] && echo segment\n'
        'python -c "import sitecustomize; print(sitecustomize.__file__)"\n'
    )
    run = client.wait(submit(text).run_id, timeout=60)
    segment, hook = stdout(client, run).splitlines()
    assert (segment, Path(hook).parts[-3:]) == ("segment", ("portable", "site", "sitecustomize.py"))


def test_cancel_ends_the_whole_tree_and_lets_a_training_write_its_checkpoint(
    client: Client, submit: Any
) -> None:
    text = (
        "sleep 1000 &\nsetsid sleep 1000 &\necho pids $! $$\n"
        "python -m cleanrl_worker.algorithms.ppo --total-timesteps=100000000 --checkpoint-every=1000000000\n"
        "echo never\n"
    )
    run = submit(text)
    wait_for_line(client, run, "pids")
    run = wait_for_status(client, run.run_id, "EXEC")
    assert run.training_pid is not None
    deadline = time.monotonic() + 60
    while not client.get(run.run_id).headline.get("step"):
        assert time.monotonic() < deadline, "it does not train"
        time.sleep(0.1)
    tree = [
        ProcessIdentity.of(pid)
        for pid in [run.training_pid, *(one.pid for one in tree_below(run.training_pid))]
    ]
    assert len(tree) >= 4
    end(client, run)
    run = client.get(run.run_id)
    assert run.outcome == "cancelled"
    assert not any(process is not None and process.alive() for process in tree)
    assert "never" not in stdout(client, run)
    assert list((Path(run.run_dir) / "checkpoints").glob("step-*.npz"))


def test_a_paused_script_stands_still_with_its_children(client: Client, submit: Any) -> None:
    run = submit("sleep 1000 &\necho started\nwait\n")
    wait_for_line(client, run, "started")
    run = wait_for_status(client, run.run_id, "EXEC")
    assert run.training_pid is not None
    client.pause(run.run_id)
    pids = [run.training_pid, *(one.pid for one in tree_below(run.training_pid))]
    assert len(pids) == 2
    assert {process_state(pid) for pid in pids} == {"T"}
    client.resume(run.run_id)
    assert "T" not in {process_state(pid) for pid in pids}
    end(client, run)


def test_a_killed_supervisor_leaves_no_child_and_a_restart_begins_the_phases_again(
    client: Client, submit: Any
) -> None:
    text = (
        "# @phases 2\n"
        "if [ -e again ]; then mosaic phase 1 anew; exit; fi\n"
        "touch again\nmosaic phase 2 first\nsleep 1000 &\necho pid=$!\nwait\n"
    )
    run = submit(text, max_restarts=1)
    told = wait_for_line(client, run, "pid=")
    child = ProcessIdentity.of(int(told.partition("pid=")[2].split()[0]))
    run = wait_for_status(client, run.run_id, "EXEC")
    assert child is not None and run.supervisor_pid is not None
    os.kill(run.supervisor_pid, 9)
    run = client.wait(run.run_id, timeout=90)
    assert run.outcome == "completed", run.reason
    assert not child.alive()
    assert run.headline["script_phase"] == {"number": 1, "of": 2, "text": "anew"}


def test_show_and_train_tell_the_phase(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    script = tmp_path / "two.sh"
    script.write_text('# @phases 2\nmosaic phase 2 "the last one"\n')
    done = run_mosaic("train", str(script))
    assert "two.sh, seed 1" in done.stdout
    assert "2 of 2: the last one" in done.stdout
    assert "2 of 2: the last one" in run_mosaic("show", "last").stdout


def test_a_shipped_script_goes_on_in_the_phase_that_it_was_in(client: Client) -> None:
    config = train_config("quick_test.sh", total_timesteps=120_000, params={"checkpoint_every": 2048})
    config["schedule"] = {"max_restarts": 1}
    run = client.submit(config)
    checkpoints = Path(run.run_dir) / "runs" / "phase-2" / "checkpoints"
    deadline = time.monotonic() + 120
    while not list(checkpoints.glob("step-*.npz")):
        assert time.monotonic() < deadline, "the second phase has not begun"
        time.sleep(0.02)
    supervisor = client.get(run.run_id).supervisor_pid
    assert supervisor is not None
    os.kill(supervisor, 9)
    run = client.wait(run.run_id, timeout=150)
    assert run.outcome == "completed", run.reason
    assert [entry.status for entry in run.history].count("FAULT") == 1
    told = b"".join(client.logs(run.run_id, "stderr")).decode()
    assert told.count("Starts with the weights of") == 1
    assert "and finishes its 60,000 steps." in told
    assert run.headline["step"] == 120_000
