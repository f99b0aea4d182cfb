"""Syllabus-RL draws the tasks of a run, leaves the process as it was, and is resumed exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.algorithms import dqn, ppo
from cleanrl_worker.curriculum.schedule import Schedule, parse_schedule
from cleanrl_worker.curriculum.stage_progress import follow_stages
from cleanrl_worker.curriculum.stages import SyllabusSampler
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.kit.torch_backend import TorchBackend
from cleanrl_worker.kit.vector_env import VectorEnv, make_envs
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.store import RunMetrics
from support.walks import LENGTHS, registered_walks

pytest.importorskip("syllabus")

CURRICULA: list[dict[str, Any]] = [
    {"curriculum": "DomainRandomization"},
    {"curriculum": "BatchedDomainRandomization", "arguments": {"batch_size": 30, "warmup_batches": 2}},
    {"curriculum": "OnlineLearningProgress", "success_return": 4.0, "arguments": {"update_interval": 5}},
]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with registered_walks():
        yield


def schedule_of(given: dict[str, Any]) -> Schedule:
    schedule = parse_schedule({**given, "tasks": list(LENGTHS)})
    assert schedule is not None
    return schedule


def make(schedule: Schedule, num_envs: int) -> VectorEnv:
    np.random.seed(1)
    envs = make_envs("ppo", "none", num_envs, schedule=schedule)
    envs.reset(1, out=np.zeros((num_envs, 3), dtype=np.float32))
    return envs


def play(envs: VectorEnv, steps: int) -> list[Any]:
    """After each step: what the environments show, and the episodes that ended."""
    obs = np.zeros((envs.num_envs, 3), dtype=np.float32)
    seen = []
    for number in range(steps):
        step = envs.step([number % 3 != 0] * envs.num_envs, out=obs)
        seen.append((obs.tolist(), step.rewards, step.episodes))
    return seen


@pytest.mark.parametrize("given", CURRICULA, ids=lambda given: given["curriculum"])
def test_every_task_is_played_and_episodes_are_counted_for_their_own(given: dict[str, Any]) -> None:
    with make(schedule_of(given), 3) as envs:
        assert envs.reached_stage is None, "no task is behind another one"
        episodes = [episode for *_, ended in play(envs, 400) for episode in ended]
    lengths = list(LENGTHS.values())
    steps = [0, 0, 0]
    for episode in episodes:
        note = episode.stage
        assert note is not None and note.in_turn
        assert episode.length == lengths[note.played - 1]
        steps[note.played - 1] += episode.length
        assert note.steps == steps[note.now - 1]
    assert min(steps) > 0


def test_a_task_that_comes_again_has_another_seed() -> None:
    with make(schedule_of({"curriculum": "DomainRandomization"}), 1) as envs:
        first_looks = [obs[0] for obs, _, ended in play(envs, 400) if ended]
    for length in LENGTHS.values():
        numbers = [number for shown, _, number in first_looks if shown == length]
        assert len(numbers) > 3 and len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("given", CURRICULA, ids=lambda given: given["curriculum"])
def test_tasks_come_back_exactly_where_they_were(given: dict[str, Any], tmp_path: Path) -> None:
    schedule, randomness = schedule_of(given), TorchBackend(seed=1)
    for before in (1, 5, 23, 60, 149):
        path = tmp_path / f"{before}.npz"
        with make(schedule, 3) as envs:
            play(envs, before)
            path.write_bytes(encode({"envs": envs.state(), "randomness": randomness.state()}))
            expected = play(envs, 60)
        with make(schedule, 3) as copy:
            held = decode(path)
            copy.load(held["envs"])
            randomness.load(held["randomness"])
            assert play(copy, 60) == expected


def test_progress_is_learned_from_successes() -> None:
    schedule = schedule_of(CURRICULA[2])
    assert schedule.sampler is not None
    np.random.seed(1)
    sampler = SyllabusSampler(schedule.sampler, 3)
    for number in range(200):
        # The last task is learned meanwhile, the first one is easy, the second one is hopeless.
        for task, total in ((0, 4.0), (1, 3.9), (2, 5.0 if number > 100 else 0.0)):
            sampler.draw()
            sampler.episode_ended(0, task, total, 5)
    state = sampler.state()
    assert state["completed_episodes"] == 600
    np.testing.assert_allclose(state["task_rates"], [1.0, 0.0, 1.0])
    draws = [sampler.draw() for _ in range(600)]
    assert 0 < draws.count(1) < min(draws.count(0), draws.count(2))


def flags_of(algorithm: Any, given: dict[str, Any]) -> list[str]:
    schedule = json.dumps({**given, "tasks": list(LENGTHS)})
    flags = ["--total-timesteps=1500", "--env-id=Long-v0", f"--curriculum={schedule}", "--seed=3"]
    flags += ["--num-steps=32"] if algorithm is ppo else ["--learning-starts=100", "--batch-size=16"]
    return [*flags, "--checkpoint-every=256", "--eval-episodes=0"]


@pytest.mark.parametrize("algorithm", [ppo, dqn])
@pytest.mark.parametrize("given", CURRICULA[1:], ids=lambda given: given["curriculum"])
def test_a_resumed_run_ends_with_the_same_bytes(
    algorithm: Any, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = flags_of(algorithm, given)
    assert algorithm.main(flags) == 0
    (model,) = tmp_path.glob("runs/*/*.cleanrl_model")
    whole, told, curves = model.read_bytes(), history(tmp_path, given), curves_of(tmp_path)
    first = sorted((tmp_path / "checkpoints").glob("step-*.npz"))[0]
    assert algorithm.main([*flags, f"--resume-from={first}"]) == 0
    assert model.read_bytes() == whole
    assert (history(tmp_path, given), curves_of(tmp_path)) == (told, curves)
    assert {value for _, value in curves["curriculum/stage"]} == {1.0, 2.0, 3.0}
    assert sum(one["episodes"] for one in told) == len(curves["charts/episodic_return"])
    assert decode(tmp_path / "checkpoints" / "best.npz")["stage"] is None


def curves_of(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """All that does not depend on how fast the machine is."""
    table = RunMetrics.open(folder / "runs")
    tags = [tag for tag in table.names if tag != "charts/SPS" and not tag.startswith("time/")]
    return {tag: list(zip(table.series(tag).steps, table.series(tag).values, strict=True)) for tag in tags}


def history(folder: Path, given: dict[str, Any]) -> list[dict[str, Any]]:
    progress = follow_stages(schedule_of(given), 1500)
    progress.update(EventReader(folder / "runs").poll(1_000_000))
    return progress.history()


ALONE = """
import numpy, os, sys
before = numpy.geterr()
from cleanrl_worker.curriculum.schedule import parse_schedule
from cleanrl_worker.curriculum.stages import SyllabusSampler
sampler = SyllabusSampler(parse_schedule(sys.argv[1]).sampler, 2)
for _ in range(50):
    sampler.episode_ended(0, sampler.draw(), 1.0, 5)
assert numpy.geterr() == before
from syllabus.core import GymnasiumEvaluationWrapper
assert not os.path.exists("/dev/shm/" + GymnasiumEvaluationWrapper.env_count.shm.name.lstrip("/"))
"""


@pytest.mark.parametrize("given", CURRICULA, ids=lambda given: given["curriculum"])
def test_it_says_nothing_leaves_nothing_and_changes_no_setting(given: dict[str, Any]) -> None:
    schedule = json.dumps({**given, "tasks": ["Short-v0", "Long-v0"]})
    command = [sys.executable, "-W", "error::UserWarning", "-c", ALONE, schedule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
