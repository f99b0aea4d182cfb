"""Paths that are too long or in another encoding, and closed streams: a sentence, never a raw error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mosaic.cli import main
from mosaic.client import Client, train_config
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.run_config import validate_train_run_config
from support.runs import SCRIPTS, script_config

LONG = "/nowhere/" + "a" * 500
DEEP = "/nowhere/" + "/".join(["d" * 100] * 50)
OTHER = os.fsdecode(b"/nowhere/\xff\xfe-x")
PATHS = pytest.mark.parametrize("path", [LONG, DEEP, OTHER], ids=["long", "deep", "other encoding"])


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The sentence with which a command is refused."""

    def run(*words: str) -> str:
        code = main(words)
        said = capsys.readouterr().err
        assert code == 2 and said.startswith("mosaic: ") and said.count("\n") == 1, (words, said)
        assert "unexpected went wrong" not in said and "INTERNAL" not in said
        return said

    return run


@PATHS
def test_every_command_that_takes_a_path_refuses_one_that_cannot_be(
    path: str, var: Path, refused: Callable[..., str]
) -> None:
    for words in (
        ("train", f"{path}.py", "CartPole-v1"),
        ("train", f"{path}.sh"),
        ("train", "--config", path),
        ("train", "--resume", path),
        ("train", "ppo", "--curriculum", f"{path}.json"),
        ("train", "ppo", "CartPole-v1", "--python", path),
        ("train", "ppo", "CartPole-v1", "--extra", f"tensorboard_dir={path}"),
        ("train", "ppo", "CartPole-v1", "--set", f"exp_name={path}"),
        ("eval", f"{path}.cleanrl_model"),
        ("play", path),
        ("runs", "--var", path),
        ("policies", "--var", path) if path == OTHER else ("doctor", path),
    ):
        refused(*words)


def test_a_folder_in_another_encoding_holds_no_runs(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / OTHER.rpartition("/")[2]
    folder.mkdir()
    monkeypatch.setenv("MOSAIC_VAR", str(folder))
    assert "not named in UTF-8" in refused("runs")
    with pytest.raises(UserError, match="not named in UTF-8"):
        Client.connect(folder)
    with pytest.raises(UserError, match="not named in UTF-8"):
        VarPaths(folder)


def test_text_that_cannot_be_stored_is_refused_at_every_door(client: Client) -> None:
    config = script_config("steps.py")
    config["tags"] = ["a", OTHER]
    with pytest.raises(UserError, match=r"has the text .*, which is not valid Unicode"):
        validate_train_run_config(config)
    for broken in (config, {**script_config("steps.py"), "run_name": OTHER}, {OTHER: 1}):
        request = pb.SubmitRunRequest(config_json=json.dumps(broken), request_id=json.dumps(broken)[:80])
        with pytest.raises(UserError, match="not valid Unicode"):
            client._connection.call("SubmitRun", request)
    with pytest.raises(UserError, match="The variable WANDB_X is not text"):
        client.submit(script_config("steps.py"), {"WANDB_X": OTHER})
    with pytest.raises(UserError, match="The variable MINE is not text"):
        client.submit({**script_config("steps.py"), "environment": {"A": "@env:MINE"}}, {"MINE": OTHER})


def test_a_user_folder_in_another_encoding_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / OTHER.rpartition("/")[2]
    folder.mkdir()
    monkeypatch.chdir(folder)
    config = train_config("ppo", "CartPole-v1", total_timesteps=10_000)
    with pytest.raises(UserError, match="which is not valid Unicode"):
        validate_train_run_config(config)


CLOSED = pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])


def with_closed(closed: str, *words: str) -> int:
    script = f'exec "$@" {closed}'
    return subprocess.run(["sh", "-c", script, "sh", sys.executable, *words], timeout=120).returncode


@CLOSED
def test_closed_streams_stop_no_command(closed: str, var: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train = ("train", str(SCRIPTS / "steps.py"), "None-v0", "--steps", "3")
    assert with_closed(closed, "-m", "mosaic", *train) == 0
    assert with_closed(closed, "-m", "mosaic", "rm", "last") == 2
    said: Any = capfd.readouterr()
    assert "Traceback" not in said.err and "unexpected" not in said.err


def test_daemon_and_workers_take_closed_streams(var: Path) -> None:
    closed = "<&- >&- 2>&-"
    # The daemon's own files must not take the numbers of the streams.
    assert with_closed(closed, "-m", "mosaic.trainer", "--idle-seconds", "0.5") == 0
    assert VarPaths(var).database.read_bytes().startswith(b"SQLite format 3\0")
    algo = ("--algo", str(SCRIPTS / "steps.py"), "--env-id", "None-v0", "--total-timesteps", "3")
    assert with_closed(closed, "-m", "cleanrl_worker.cli", *algo) == 0
    assert with_closed(closed, "-m", "cleanrl_worker.evaluation.interactive", "--policy-path", "nothing") == 2
