"""A schedule of stages is read as it is meant, and refused with the stage named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.curriculum.schedule import PRESETS, Counts, Schedule, parse_condition, parse_schedule
from mosaic.contract.errors import UserError
from support.runs import SCRIPTS

FIVE, SIX, EIGHT = (f"MiniGrid-DoorKey-{size}-v0" for size in ("5x5", "6x6", "8x8"))


def schedule_of(*stages: dict[str, Any]) -> Schedule:
    schedule = parse_schedule(list(stages))
    assert schedule is not None
    return schedule


@pytest.mark.parametrize(
    ("text", "counts", "met"),
    [
        ("steps>=100", Counts(99), False),
        ("steps>=100", Counts(100), True),
        ("episodes>=3", Counts(1000, 2), False),
        ("episode_return>=0.5", Counts(1000, 9, 0.5), True),
        ("episode_return>=-200", Counts(1000, 0, None), False),
        ("episode_return>=-200", Counts(1000, 1, -199.0), True),
        (" steps >= 1e3 | episodes >= 5 ", Counts(10, 5), True),
        ("steps>=10|episodes>=5&episode_return>=1", Counts(10, 0), True),
        ("steps>=10|episodes>=5&episode_return>=1", Counts(9, 5, 0.9), False),
        ("episodes>=5&episode_return>=1|steps>=10", Counts(9, 5, 1.0), True),
    ],
)
def test_conditions_mean_what_they_say_and_binds_tighter_than_or(
    text: str, counts: Counts, met: bool
) -> None:
    assert parse_condition(text).is_met(counts) is met


@pytest.mark.parametrize(
    ("text", "counts", "progress"),
    [
        ("steps>=100", Counts(25), 0.25),
        ("steps>=100|episodes>=4", Counts(25, 2), 0.5),
        ("steps>=100&episodes>=4", Counts(25, 2), 0.25),
        ("episode_return>=0.8", Counts(25, 2, 0.4), 0.5),
        ("episode_return>=-5", Counts(25, 2, -6.0), 0.0),
        ("steps>=100", Counts(250), 1.0),
    ],
)
def test_progress_is_that_of_the_nearest_choice(text: str, counts: Counts, progress: float) -> None:
    assert parse_condition(text).progress(counts) == progress


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps>5", "cannot be read at 'steps>5'"),
        ("steps>=5|", "cannot be read at ''"),
        ("", "cannot be read at ''"),
        ("step>=5", "names 'step', which is not known; did you mean 'steps'?"),
        ("steps>=many", "'many' instead of a number"),
        ("episode_return>=nan", "'nan' instead of a number"),
        ("episodes>=0", "must be a whole number of at least 1"),
        ("steps>=2.5", "must be a whole number of at least 1"),
        ("steps>=5&(episodes>=5)", "cannot be read at '(episodes>=5)'"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        schedule_of({"env_id": FIVE}, {"env_id": SIX, "condition": text}, {"env_id": EIGHT})
    assert str(caught.value).startswith(f"Stage 2 of the curriculum ({SIX}): ")
    assert message in str(caught.value)


def test_steps_are_a_condition_and_a_stage_without_one_has_the_default() -> None:
    schedule = schedule_of({"env_id": FIVE, "steps": 2e5}, {"env_id": SIX}, {"env_id": EIGHT})
    assert schedule.as_json() == [
        {"env_id": FIVE, "condition": "steps>=200000"},
        {"env_id": SIX, "condition": "steps>=100000"},
        {"env_id": EIGHT},
    ]
    assert parse_schedule(json.dumps(schedule.as_json())) == schedule
    assert parse_schedule(schedule.as_json()) == schedule
    assert (schedule.stages[-1].env_id, schedule.name(1)) == (EIGHT, f"stage 2 of 3: {SIX}")


def test_the_presets_have_four_stages_and_may_be_named() -> None:
    for name, stages in PRESETS.items():
        schedule = parse_schedule(name)
        assert schedule is not None and schedule == parse_schedule(list(stages))
        assert len(schedule.stages) == 4
    assert parse_schedule(None) is parse_schedule("") is parse_schedule([]) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("BABYAI_DOORKY_CURRICULUM", "did you mean 'BABYAI_DOORKEY_CURRICULUM'?"),
        ("[{", "The curriculum is not JSON"),
        ({"env_id": FIVE}, "it must be a list of stages"),
        ([FIVE], "Stage 1 of the curriculum is 'MiniGrid-DoorKey-5x5-v0'"),
        ([{"env_id": FIVE}, {"steps": 5}], "Stage 2 of the curriculum has no environment"),
        ([{"env_id": FIVE, "step": 5}], f"({FIVE}) has an unknown key 'step'; did you mean 'steps'?"),
        ([{"env_id": FIVE, "steps": 0}], "steps is 0, but it must be a whole number of at least 1"),
        ([{"env_id": FIVE, "steps": True}], "steps is True"),
        ([{"env_id": FIVE, "steps": 5, "condition": "episodes>=5"}], "has both steps and a condition"),
        ([{"env_id": FIVE, "condition": 5}], "the condition is 5, but it must be a text"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(given: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_schedule(given)
    assert message in str(caught.value)


def test_the_fewest_steps_of_the_stages_before_the_last_are_known() -> None:
    stages = [
        {"env_id": FIVE, "condition": "steps>=900&episode_return>=0.5|episodes>=20"},
        {"env_id": SIX},
        {"env_id": SIX, "condition": "episode_return>=0.9|steps>=5000"},
        {"env_id": EIGHT, "steps": 7000},
    ]
    schedule = parse_schedule(stages)
    assert schedule is not None and schedule.least_steps() == 20 + 100_000 + 1


def dry_run(extras: dict[str, Any], *arguments: str, algo: str = "ppo") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cleanrl_worker.cli", "--algo", algo, "--total-timesteps", "500000"]
    command += [*arguments, "--extras", json.dumps(extras), "--dry-run", "--emit-summary"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))


def test_the_dry_run_tells_the_stages_and_the_run_is_for_the_last_of_them(var: Path) -> None:
    done = dry_run({"curriculum_schedule": "BABYAI_DOORKEY_CURRICULUM"})
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["env_id"] == "MiniGrid-DoorKey-16x16-v0"
    (flag,) = (argument for argument in summary["args"] if argument.startswith("--curriculum="))
    assert parse_schedule(flag.removeprefix("--curriculum=")) == parse_schedule("BABYAI_DOORKEY_CURRICULUM")
    named = dry_run({"curriculum_schedule": "BABYAI_DOORKEY_CURRICULUM"}, "--env-id", FIVE)
    assert json.loads(named.stdout)["env_id"] == FIVE
    assert list(var.iterdir()) == []


@pytest.mark.parametrize(
    ("stages", "arguments", "message"),
    [
        ([{"env_id": FIVE}, {"env_id": "MiniGrid-DoorKey-6x5-v0"}], (), "Stage 2 of the curriculum (MiniGri"),
        (
            [{"env_id": FIVE}, {"env_id": "CartPole-v1"}],
            (),
            "Stage 2 of the curriculum (CartPole-v1): its observations are not those of the first stage, "
            f"{FIVE} (box (4) of float32 instead of box (7, 7, 3) of uint8)",
        ),
        (
            [{"env_id": "CartPole-v1"}, {"env_id": "Pendulum-v1"}],
            (),
            "Stage 2 of the curriculum (Pendulum-v1): ppo takes",
        ),
        (
            [{"env_id": FIVE, "condition": "steps=5"}, {"env_id": SIX}],
            (),
            f"Stage 1 of the curriculum ({FIVE})",
        ),
        ([{"env_id": FIVE}, {"env_id": SIX}], ("--env-id", EIGHT), "which is not a stage of the curriculum"),
        (
            "BABYAI_GOTO_CURRICULUM",
            (),
            "The stages before the last one of the curriculum take 600,000 steps, but the run has 500,000",
        ),
    ],
)
def test_the_dry_run_refuses_what_cannot_be_trained_on(
    var: Path, stages: Any, arguments: tuple[str, ...], message: str
) -> None:
    done = dry_run({"curriculum_schedule": stages}, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_only_our_algorithms_have_a_curriculum(var: Path) -> None:
    done = dry_run({"curriculum_schedule": [{"env_id": FIVE}]}, algo=str(SCRIPTS / "steps.py"))
    assert done.returncode == 2
    assert "'extras.curriculum_schedule' is for training a built-in algorithm" in done.stderr
