"""A schedule may name a curriculum of Syllabus-RL; all of this is checked without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.curriculum.schedule import Schedule, parse_schedule
from cleanrl_worker.curriculum.stage_progress import TaskProgress, follow_stages
from mosaic.analytics.event_files import EventReader, EventWriter
from mosaic.contract.errors import UserError

FIVE, SIX, EIGHT = (f"MiniGrid-DoorKey-{size}-v0" for size in ("5x5", "6x6", "8x8"))
TASKS = [FIVE, SIX, EIGHT]
INSTALLED = find_spec("syllabus") is not None
PROGRESS = {"curriculum": "OnlineLearningProgress", "tasks": TASKS, "success_return": 0.5}


def parsed(given: Any) -> Schedule:
    schedule = parse_schedule(given)
    assert schedule is not None and schedule.sampler is not None
    return schedule


def test_a_curriculum_is_the_same_as_object_and_as_text() -> None:
    schedule = parsed({"curriculum": "DomainRandomization", "tasks": TASKS})
    assert [stage.env_id for stage in schedule.stages] == TASKS
    assert (schedule.stages[-1].env_id, schedule.name(1)) == (
        EIGHT,
        f"DomainRandomization, task 2 of 3: {SIX}",
    )
    assert schedule.as_json() == {"curriculum": "DomainRandomization", "tasks": TASKS, "arguments": {}}
    assert parsed(json.dumps(schedule.as_json())) == parsed(schedule.as_json()) == schedule


def test_what_is_left_out_has_its_default_and_whole_numbers_are_whole() -> None:
    sampler = parsed(PROGRESS).sampler
    assert sampler is not None
    assert (sampler.success_return, sampler.arguments) == (0.5, {"update_interval": 100})
    sampler = parsed({**PROGRESS, "arguments": {"update_interval_steps": 1e4, "p_theta": 0.2}}).sampler
    assert sampler is not None and sampler.arguments == {"update_interval_steps": 10_000, "p_theta": 0.2}
    assert type(sampler.arguments["update_interval_steps"]) is int


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"curriculum": "DomainRandomisation"}, "did you mean 'DomainRandomization'?"),
        ({"curriculum": "Chess"}, "Syllabus-RL has no curriculum 'Chess'"),
        ({"curriculum": ["OMNI"]}, "it must be the name of one of Syllabus-RL"),
        ({"curriculum": "LearningProgress"}, "OnlineLearningProgress learns from training's own episodes"),
        ({"curriculum": "PrioritizedLevelReplay"}, "it scores tasks by the errors of a critic"),
        ({"curriculum": "SequentialCurriculum"}, "write its stages as a list"),
        ({"curriculum": "SimulatedAnnealing"}, "it draws numbers"),
        ({"curriculum": "SelfPlay"}, "it draws opponents"),
        ({"task": [FIVE]}, "has an unknown key 'task'; did you mean 'tasks'?"),
        ({"tasks": None}, "are missing: give a list of environment ids"),
        ({"tasks": [FIVE, 5]}, "give a list of environment ids"),
        ({"tasks": [FIVE]}, "needs at least two different tasks"),
        ({"tasks": [FIVE, FIVE]}, "needs at least two different tasks"),
        ({"success_return": None}, "counts successes, but 'success_return' is missing"),
        ({"success_return": "high"}, "'success_return' is 'high'"),
        ({"curriculum": "DomainRandomization"}, "does not count successes"),
        ({"arguments": [1]}, "they must be an object"),
        ({"arguments": {"uniform": 0.5}}, "did you mean 'uniform_prob'?"),
        ({"arguments": {"save_last": True}}, "has no argument 'save_last' here; there are update_interval"),
        ({"arguments": {"uniform_prob": 1.5}}, "it must be a number between 0 and 1."),
        ({"arguments": {"p_theta": 0}}, "between 0 and 1 and neither of them"),
        ({"arguments": {"normalize_success": 1}}, "it must be true or false"),
        ({"arguments": {"update_interval": 0}}, "a whole number of at least 1"),
        ({"arguments": {"update_interval": 5, "update_interval_steps": 5}}, "not both"),
        (
            {"curriculum": "BatchedDomainRandomization", "success_return": None},
            "needs the argument 'batch_size'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_schedule({**PROGRESS, **changes})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def dry_run(schedule: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    extras = json.dumps({"curriculum_schedule": schedule})
    script = (
        "import sys; from cleanrl_worker.cli import main; code = main(sys.argv[1:]);"
        "heavy = [m for m in ('torch', 'syllabus', 'ray') if m in sys.modules];"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    command = [sys.executable, "-c", script, "--algo", "ppo", "--total-timesteps", "2048", *arguments]
    command += ["--extras", extras, "--dry-run", "--emit-summary"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))


def test_the_dry_run_tells_tasks_and_what_is_missing_without_importing_anything_heavy(var: Path) -> None:
    done = dry_run(PROGRESS)
    needs = "The curriculum OnlineLearningProgress needs the optional set 'curriculum'"
    line = "" if INSTALLED else f"{needs}: run `mosaic extras install curriculum`.\n"
    assert (done.returncode, done.stderr) == (0 if INSTALLED else 2, line)
    summary = json.loads(done.stdout)
    assert summary["env_id"] == EIGHT
    assert summary["curriculum"] == {**PROGRESS, "arguments": {"update_interval": 100}}
    (flag,) = (argument for argument in summary["args"] if argument.startswith("--curriculum="))
    assert parsed(flag.removeprefix("--curriculum=")) == parsed(PROGRESS)
    commands = {one["name"]: one["install"] for one in summary["missing_extras"]}
    assert commands == ({} if INSTALLED else {"curriculum": "mosaic extras install curriculum"})
    assert list(var.iterdir()) == []


@pytest.mark.parametrize(
    ("tasks", "arguments", "message"),
    [
        ([FIVE, "CartPole-v1"], (), "Stage 2 of the curriculum (CartPole-v1): its observations are not"),
        ([FIVE, "MiniGrid-DoorKey-6x5-v0"], (), "Stage 2 of the curriculum (MiniGrid-DoorKey-6x5-v0)"),
        ([FIVE, SIX], ("--env-id", EIGHT), "which is not a stage of the curriculum"),
    ],
)
def test_the_dry_run_refuses_tasks_that_cannot_be_trained_on(
    var: Path, tasks: list[str], arguments: tuple[str, ...], message: str
) -> None:
    done = dry_run({**PROGRESS, "tasks": tasks}, *arguments)
    assert done.returncode == 2
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1


@pytest.mark.skipif(INSTALLED, reason="Syllabus-RL is installed")
def test_a_run_without_the_extra_ends_with_one_line_that_names_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cleanrl_worker.algorithms.ppo", f"--curriculum={json.dumps(PROGRESS)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].endswith("run `mosaic extras install curriculum`.")
    assert "Traceback" not in done.stderr


def test_progress_follows_tasks_that_come_again_and_again(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    # The second task was among the first, and nothing told of it before its first episode ended.
    for step, played, now, total in ((10, 2, 1, 0.5), (20, 1, 1, 0.0), (30, 1, 3, 1.0), (40, 3, 1, 0.25)):
        writer.add_scalar(f"curriculum/stage_{played}_return", total, step)
        writer.add_scalar("curriculum/stage", now, step)
        writer.add_scalar("curriculum/steps", 10 * played, step)
    writer.close()
    progress = follow_stages(parsed(PROGRESS), 100)
    assert isinstance(progress, TaskProgress)
    progress.update(EventReader(tmp_path).poll(1_000_000))
    assert progress.phase() == f"OnlineLearningProgress, task 1 of 3: {FIVE}"
    told = progress.as_json(40)
    assert (told["stage"], told["stages"], told["env_id"], told["progress"]) == (1, 3, FIVE, 0.4)
    assert (told["episodes"], told["mean_return"]) == (2, 0.5)
    history = progress.history()
    assert [one["began_at"] for one in history] == [10, 10, 30]
    assert [one["episodes"] for one in history] == [2, 1, 1]
