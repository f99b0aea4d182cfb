"""`mosaic train … --curriculum`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mosaic.cli import main, values
from mosaic.contract import words

FIVE, SIX = "MiniGrid-DoorKey-5x5-v0", "MiniGrid-DoorKey-6x6-v0"
TASKS = {"curriculum": "DomainRandomization", "tasks": [FIVE, SIX]}


@pytest.fixture
def worker_config(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`mosaic train ppo … --dry-run --json`: gives what the worker would get."""
    monkeypatch.setenv("MOSAIC_VAR", str(tmp_path / "var"))

    def run(*argv: str) -> Any:
        code = main(["train", "ppo", *argv, "--dry-run", "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out)["metadata"]["worker"]["config"]

    return run


def test_a_file_the_list_itself_and_a_preset_name_a_curriculum(worker_config: Any, tmp_path: Path) -> None:
    stages = [{"env_id": FIVE, "steps": 500}, {"env_id": SIX}]
    expected = [{"env_id": FIVE, "condition": "steps>=500"}, {"env_id": SIX}]
    path = tmp_path / "stages.json"
    path.write_text(json.dumps(stages))
    for given in (str(path), json.dumps(stages)):
        config = worker_config("--curriculum", given)
        assert config["env_id"] == SIX
        assert config["extras"]["curriculum_schedule"] == expected
    config = worker_config(FIVE, "--curriculum", "BABYAI_DOORKEY_CURRICULUM")
    assert config["env_id"] == FIVE
    assert len(config["extras"]["curriculum_schedule"]) == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere.json", "nowhere.json cannot be read: No such file or directory"),
        ("[{", "is not JSON"),
        ("BABYAI_GOTO", "There is no curriculum 'BABYAI_GOTO'"),
    ],
)
def test_what_is_no_curriculum_is_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    message: str,
) -> None:
    monkeypatch.setenv("MOSAIC_VAR", str(tmp_path / "var"))
    assert main(["train", "ppo", "--curriculum", given, "--dry-run"]) == 2
    assert message in capsys.readouterr().err


def test_a_stage_in_words() -> None:
    assert words.stage({"stage": 2, "stages": 3, "env_id": SIX}) == f"2 of 3: {SIX}"
    assert words.stage(None) == ""


def test_tasks_are_a_file_or_the_object_itself(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(TASKS))
    assert values.curriculum(str(path)) == values.curriculum(json.dumps(TASKS)) == TASKS


def test_drawn_tasks_are_told_or_the_command_that_brings_what_they_need(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_VAR", str(tmp_path / "var"))
    code = main(["train", "ppo", "--curriculum", json.dumps(TASKS), "--dry-run"])
    out, err = capsys.readouterr()
    if find_spec("syllabus") is None:
        assert code == 2 and "mosaic extras install curriculum" in err
    else:
        assert code == 0 and "DomainRandomization of Syllabus-RL" in out and f"{SIX}" in out
