"""What a run with secrets leaves behind, by every way to declare them: nothing that holds one."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from mosaic.client import Client, RunRecord, eval_config, resume_config, train_config
from mosaic.contract.errors import UserError
from mosaic.contract.proto import trainer_pb2 as pb
from support.runs import SCRIPTS, end, script_config, wait_for_status

if TYPE_CHECKING:
    from conftest import RunMosaic

KEY = "sk-0a1b2c3d4e5f6g7h8i9j"
LOGIN = "me-and-my-0123-login"
SCRIPT = str(SCRIPTS / "keys.py")


def holders(folder: Path, *secrets: str) -> list[str]:
    """Every file with a secret in it: configs, logs, the database and its journal, what the daemon says."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "trainer.sqlite" for path in files)
    assert any(path.name == "trainer.log" for path in files)
    return [str(path) for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)]


def told(run: RunRecord) -> dict[str, Any]:
    """What the script of a run says that it was given."""
    found: dict[str, Any] = json.loads((Path(run.run_dir) / "told.json").read_text())
    return found


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_secret_parameter_reaches_the_script_and_stays_nowhere(client: Client) -> None:
    params = {"api_key": KEY, "pad_token": "<pad>", "fails": True}
    config = script_config("keys.py", params=params, secrets=["api_key", "SERVICE_LOGIN"])
    config["schedule"] = {"max_restarts": 1}
    run = client.submit(config, {"SERVICE_LOGIN": LOGIN})
    ended = client.wait(run.run_id, timeout=90)
    assert ended.outcome == "failed", "its traceback has the key in it"
    assert told(ended) == {"flag": digest(KEY), "variable": digest(LOGIN), "pad_token": "<pad>"}
    assert "*" * len(KEY) in str(ended.reason) and KEY not in json.dumps(ended.as_json())
    # What is left says which parameter it was.
    asked = ended.config["metadata"]["worker"]["config"]["extras"]["algo_params"]
    assert asked == {"api_key": "@env:API_KEY", "pad_token": "<pad>", "fails": True}
    provenance = json.loads((Path(ended.run_dir) / "provenance.json").read_text())
    assert "--api-key=@env:API_KEY" in provenance["command"]
    assert holders(client.paths.root, KEY, LOGIN) == []


def test_while_it_runs_a_secret_waits_in_one_file_and_is_on_no_command_line(client: Client) -> None:
    params = {"api_key": "@env:MINE", "hold": True}
    run = client.submit(script_config("keys.py", params=params), {"MINE": KEY})
    run = wait_for_status(client, run.run_id, "EXEC")
    file = client.paths.run_secrets(run.run_id)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # Other tests may say it on a command line at the same time.
    ours = psutil.Process(run.supervisor_pid), *psutil.Process(run.supervisor_pid).children(recursive=True)
    assert len(ours) > 1 and not [process for process in ours if KEY in " ".join(process.cmdline())]
    # The script itself says it aloud, as long as it lives.
    assert {*holders(client.paths.root, KEY)} - {f"{run.run_dir}/logs/cleanrl.stdout.log"} == {str(file)}
    # It speaks when it has written what it was told.
    while not (Path(run.run_dir) / "logs" / "cleanrl.stdout.log").read_bytes():
        time.sleep(0.05)
    end(client, run)
    assert told(run)["flag"] == digest(KEY)
    assert holders(client.paths.root, KEY) == []


def test_a_killed_supervisor_leaves_no_secret_either(client: Client, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", tmp_path, *who, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    (tmp_path / "notes").write_text(f"my key is {KEY}")
    subprocess.run(["git", "-C", tmp_path, "add", "notes"], check=True)
    params = {"api_key": KEY, "hold": True}
    config = script_config("keys.py", params=params, secrets=["api_key"], folder=tmp_path)
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    log, provenance = (Path(run.run_dir) / name for name in ("logs/cleanrl.stdout.log", "provenance.json"))
    deadline = time.monotonic() + 60
    while not (provenance.exists() and KEY.encode() in log.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "my key is @env:API_KEY" in provenance.read_text()
    assert run.supervisor_pid is not None
    os.kill(run.supervisor_pid, 9)
    client.wait(run.run_id, timeout=90)
    assert holders(client.paths.root, KEY) == []


def test_a_submission_that_the_daemon_gets_from_elsewhere_is_lifted_too(client: Client) -> None:
    config = script_config("keys.py")
    asked = config["metadata"]["worker"]["config"]["extras"]
    asked["algo_params"] = {"api_key": KEY}

    def submit(payload: dict[str, Any], request_id: str) -> Any:
        request = pb.SubmitRunRequest(config_json=json.dumps(payload), request_id=request_id)
        return client._connection.call("SubmitRun", request)

    with pytest.raises(UserError, match="'api_key' looks like a key") as refused:
        submit(config, "undeclared")
    assert KEY not in str(refused.value)
    run = client.wait(submit({**config, "secrets": ["api_key"]}, "declared").run_id, timeout=90)
    assert run.outcome == "completed" and told(run)["flag"] == digest(KEY)
    again = {**run.config, "secrets": ["api_key"]}
    with pytest.raises(UserError, match="API_KEY is not set here"):
        submit(again, "again")
    assert holders(client.paths.root, KEY) == []


def test_the_command_line_declares_refuses_insists_and_asks_again(var: Path, run_mosaic: RunMosaic) -> None:
    words = ("train", SCRIPT, "None-v0", "--json", "--api-key")
    refused = run_mosaic(*words, KEY, check=False)
    assert refused.returncode == 2 and "--secret api_key" in refused.stderr and KEY not in refused.stderr
    shown = run_mosaic(*words, KEY, "--secret", "api_key", "--dry-run")
    assert json.loads(shown.stdout)["secrets"] == ["api_key"] and KEY not in shown.stdout + shown.stderr
    table = run_mosaic(*words[:3], *words[4:], KEY, "--secret", "api_key", "--dry-run")
    assert "@env:API_KEY" in table.stdout and KEY not in table.stdout
    done = json.loads(run_mosaic(*words, KEY, "--secret", "api_key").stdout)
    seen = run_mosaic("show", done["run_id"], "--json").stdout
    assert "@env:API_KEY" in seen and KEY not in seen
    again = run_mosaic("rerun", done["run_id"], "--json", check=False)
    assert again.returncode == 2 and again.stderr.count("\n") == 1
    assert "set API_KEY, or give 'api_key' again" in again.stderr
    for more in ({"env": {"API_KEY": KEY}}, {}):
        given = () if more else ("--set", f"api_key={KEY}")
        rerun = json.loads(run_mosaic("rerun", done["run_id"], "--json", *given, **more).stdout)
        assert json.loads((Path(rerun["run_dir"]) / "told.json").read_text())["flag"] == digest(KEY)
    assert holders(var, KEY) == []
    plain = json.loads(run_mosaic(*words, KEY, "--plain", "api_key").stdout)
    assert KEY in run_mosaic("show", plain["run_id"], "--json").stdout


def test_a_shell_script_gets_its_secret_as_variable_and_argument(client: Client, tmp_path: Path) -> None:
    script = tmp_path / "keys.sh"
    script.write_text('#!/bin/sh\n[ "$1" = "--login=$LOGIN" ] && printf "%s" "$LOGIN" | sha256sum > told\n')
    config = script_config(str(script), params={"login": LOGIN}, secrets=["login"], folder=tmp_path)
    run = client.wait(client.submit(config).run_id, timeout=90)
    assert run.outcome == "completed", run.reason
    assert (Path(run.run_dir) / "told").read_text().startswith(digest(LOGIN))
    assert holders(client.paths.root, LOGIN) == []


LOCKED = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv


class Locked(CartPoleEnv):
    def __init__(self, login="", render_mode=None):
        assert login == "me-and-my-0123-login"
        super().__init__(render_mode=render_mode)


gymnasium.register("Locked-v0", Locked, max_episode_steps=20)
"""


def test_an_environment_gets_its_secret_and_no_checkpoint_or_card_holds_it(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked.py").write_text(LOCKED)
    monkeypatch.chdir(tmp_path)
    params = {
        "num_steps": 16,
        "num_envs": 1,
        "num_minibatches": 1,
        "eval_episodes": 1,
        "checkpoint_every": 16,
    }
    extras = {"env_kwargs": {"login": LOGIN}}
    config = train_config(
        "ppo", "locked:Locked-v0", total_timesteps=32, params=params, extras=extras, secrets=["login"]
    )
    run = client.wait(client.submit(config).run_id, timeout=90)
    assert run.outcome == "completed", run.reason
    # Who goes on with it, or plays it, is asked for the secret.
    for again in (eval_config(run.run_dir, episodes=1), resume_config(run.run_dir, extend=16)):
        with pytest.raises(UserError, match=r"set LOGIN, or give 'env_kwargs\.login' again"):
            client.submit(again)
        done = client.wait(client.submit(again, {"LOGIN": LOGIN}).run_id, timeout=90)
        assert done.outcome == "completed", done.reason
    assert holders(client.paths.root, LOGIN) == []


def test_a_worker_by_hand_lifts_what_it_is_given(
    tmp_path: Path, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.json").write_text(
        json.dumps({**script_config("keys.py"), "run_name": "a", "secrets": ["api_key"]})
    )
    extras = json.dumps({"algo_params": {"api_key": KEY}})
    command = [sys.executable, "-m", "cleanrl_worker.cli", "--config", "run.json", "--extras", extras]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=True)
    assert KEY not in done.stdout + done.stderr
    files = [path for path in var.rglob("*") if path.is_file()]
    assert [path for path in files if path.name == "told.json"]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
