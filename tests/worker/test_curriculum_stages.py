"""Environments are swapped at the ends of episodes, and everything is counted exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.algorithms import dqn, ppo, td3_continuous_action
from cleanrl_worker.curriculum.schedule import Schedule, parse_schedule
from cleanrl_worker.curriculum.stage_progress import StageProgress
from cleanrl_worker.curriculum.stages import RECENT, Curriculum
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.kit.vector_env import VectorEnv, make_envs
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.store import RunMetrics
from mosaic.contract.errors import UserError
from support.walks import registered_walks


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with registered_walks():
        yield


def schedule_of(*stages: tuple[str, str | None]) -> Schedule:
    listed = [{"env_id": env_id, **({"condition": text} if text else {})} for env_id, text in stages]
    schedule = parse_schedule(listed)
    assert schedule is not None
    return schedule


def play(envs: VectorEnv, steps: int, obs: Any = None) -> list[tuple[int, int, list[int], list[Any]]]:
    """After each step: the stage, the lengths that the environments show, and the notes of ended episodes."""
    obs = np.zeros((envs.num_envs, 3), dtype=np.float32) if obs is None else obs
    seen = []
    for number in range(steps):
        step = envs.step([1] * envs.num_envs, out=obs)
        notes = [(one.length, one.stage) for one in step.episodes]
        seen.append((number, envs.stage or 0, obs[:, 0].astype(int).tolist(), notes))
    return seen


def make(schedule: Schedule, num_envs: int) -> VectorEnv:
    envs = make_envs("ppo", "none", num_envs, schedule=schedule)
    envs.reset(1, out=np.zeros((num_envs, 3), dtype=np.float32))
    return envs


def test_each_environment_changes_at_the_end_of_its_own_episode() -> None:
    schedule = schedule_of(("Short-v0", "episodes>=3"), ("Middle-v0", "steps>=12"), ("Long-v0", None))
    with make(schedule, 2) as envs:
        # The first two episodes end together after three steps, the third one ends the stage. Its neighbour
        # ends in the same step, and is in the next stage with it.
        assert play(envs, 5)[-1][1:3] == (1, [3, 3])
        (_, stage, lengths, notes), *_ = play(envs, 1)
        assert (stage, lengths) == (2, [5, 5])
        first, second = (note for _, note in notes)
        assert (first.played, first.now, first.steps) == (1, 2, 0)
        assert (second.played, second.now, second.steps) == (1, 2, 0)
        # Ten steps of two environments: 5 + 4 when the first episode ends, 10 with the second.
        assert play(envs, 5)[-1][1:3] == (2, [5, 5])
        assert play(envs, 4)[-1][1:3] == (2, [5, 5])
        assert play(envs, 1)[-1][1:3] == (3, [7, 7])


def test_what_is_left_of_an_old_stage_counts_for_neither() -> None:
    schedule = schedule_of(("Short-v0", "steps>=2"), ("Long-v0", "episodes>=2"), ("Middle-v0", None))
    with make(schedule, 2) as envs:
        obs = np.zeros((2, 3), dtype=np.float32)
        play(envs, 1, obs)
        # The second environment begins again, so that the two are no longer in step.
        envs.restart(1, 5, obs)
        assert play(envs, 2, obs)[-1][1:3] == (2, [7, 3])
        ((_, stage, lengths, ((length, note),)),) = play(envs, 1, obs)
        assert (stage, lengths, length) == (2, [7, 7], 3)
        assert (note.played, note.now, note.steps) == (1, 2, 1)


def test_steps_of_episodes_that_still_go_on_count() -> None:
    schedule = schedule_of(("Long-v0", "steps>=12"), ("Short-v0", None))
    with make(schedule, 2) as envs:
        # After 7 steps each: 7 + 6 when the first one ends.
        assert play(envs, 6)[-1][1] == 1
        ((_, stage, lengths, _notes),) = play(envs, 1)
        assert (stage, lengths) == (2, [3, 3])


def test_the_mean_return_is_that_of_the_stages_last_episodes() -> None:
    curriculum = Curriculum(schedule_of(("Short-v0", "episode_return>=0.5"), ("Long-v0", None)), 1)
    for _ in range(RECENT):
        assert curriculum.episode_ended(0, 0.0, 3, [0]).now == 1
    # Each new one takes the place of an old one: with fifty of them the mean is a half.
    stages = [curriculum.episode_ended(0, 1.0, 3, [0]).now for _ in range(RECENT // 2)]
    assert stages == [1] * (RECENT // 2 - 1) + [2]
    assert curriculum.count([0]).mean_return is None


def test_each_stage_has_its_own_time_limit() -> None:
    schedule = schedule_of(("Capped-v0", "episodes>=1"), ("Long-v0", "episodes>=1"), ("Capped-v0", None))
    with make(schedule, 1) as envs:
        ended = [length for *_, notes in play(envs, 15) for length, _ in notes]
        assert ended == [4, 7, 4]


def test_stages_come_back_exactly_where_they_were(tmp_path: Path) -> None:
    schedule = schedule_of(("Short-v0", "steps>=11"), ("Middle-v0", "episodes>=4"), ("Long-v0", None))
    for before in range(1, 25):
        with make(schedule, 3) as envs, make(schedule, 3) as copy:
            play(envs, before)
            path = tmp_path / f"{before}.npz"
            path.write_bytes(encode(envs.state()))
            copy.load(decode(path))
            here, there = (np.zeros((3, 3), dtype=np.float32) for _ in range(2))
            for _ in range(20):
                ours, theirs = envs.step([1, 0, 1], out=here), copy.step([1, 0, 1], out=there)
                np.testing.assert_array_equal(here, there)
                assert (ours.rewards, ours.episodes) == (theirs.rewards, theirs.episodes)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            "Wide-v0",
            "its actions are not those of the first stage, Short-v0 (discrete 3 instead of discrete 2)",
        ),
        ("CartPole-v1", "its observations are not those of the first stage"),
        ("Shorter-v0", "There is no environment 'Shorter-v0'; did you mean 'Short-v0'?"),
    ],
)
def test_training_refuses_a_stage_before_it_begins(second: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        make_envs("ppo", "none", 1, schedule=schedule_of(("Short-v0", None), (second, None)))
    assert str(caught.value).startswith(f"Stage 2 of the curriculum ({second}): {message}")


def tables(folder: Path) -> RunMetrics:
    return RunMetrics.open(folder / "runs")


STAGES = [
    {"env_id": "Short-v0", "condition": "steps>=500"},
    {"env_id": "Middle-v0", "condition": "episodes>=40"},
    {"env_id": "Long-v0"},
]


@pytest.mark.parametrize("algorithm", [ppo, dqn])
def test_a_run_goes_through_its_stages_and_leaves_them_in_the_event_files(
    algorithm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--total-timesteps=1500", "--env-id=Long-v0", f"--curriculum={json.dumps(STAGES)}", "--seed=3"]
    flags += ["--num-steps=32"] if algorithm is ppo else ["--learning-starts=100", "--batch-size=16"]
    assert algorithm.main(flags) == 0
    table = tables(tmp_path)
    stage = table.series("curriculum/stage")
    assert list(stage.values) == [1.0, 2.0, 3.0]
    assert stage.steps[0] == 0 and stage.steps[1] >= 500
    returns = [table.series(f"curriculum/stage_{number}_return") for number in (1, 2, 3)]
    assert sum(map(len, returns)) == len(table.series("charts/episodic_return"))
    assert set(table.series("charts/episodic_length").values) == {3.0, 5.0, 7.0}
    progress = StageProgress(parse_schedule(STAGES), 1500)  # type: ignore[arg-type]
    progress.update(EventReader(tmp_path / "runs").poll(1_000_000))
    told = progress.as_json(1500)
    assert (told["stage"], told["stages"], told["env_id"], told["progress"]) == (3, 3, "Long-v0", 1.0)
    history = progress.history()
    assert [entry["began_at"] for entry in history] == list(stage.steps)
    assert [entry["episodes"] for entry in history] == list(map(len, returns))
    assert progress.phase() == "stage 3 of 3: Long-v0"


def test_progress_takes_back_what_a_resumed_run_takes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = [
        "--total-timesteps=1500",
        "--env-id=Long-v0",
        f"--curriculum={json.dumps(STAGES)}",
        "--num-steps=32",
    ]
    assert ppo.main([*flags, "--checkpoint-every=256"]) == 0
    progress = StageProgress(parse_schedule(STAGES), 1500)  # type: ignore[arg-type]
    progress.update(EventReader(tmp_path / "runs").poll(1_000_000))
    whole = progress.history()
    first = sorted((tmp_path / "checkpoints").glob("step-*.npz"))[0]
    assert ppo.main([*flags, "--checkpoint-every=256", f"--resume-from={first}"]) == 0
    again = StageProgress(parse_schedule(STAGES), 1500)  # type: ignore[arg-type]
    again.update(EventReader(tmp_path / "runs").poll(1_000_000))
    assert again.history() == whole


def test_a_resumed_run_keeps_its_curriculum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--env-id=Long-v0", "--num-steps=32", "--checkpoint-every=256"]
    assert ppo.main([*flags, "--total-timesteps=512", f"--curriculum={json.dumps(STAGES)}"]) == 0
    resume = [*flags, "--total-timesteps=1024", "--resume-from=checkpoints"]
    assert ppo.main([*resume, f"--curriculum={json.dumps(STAGES[1:])}"]) == 2
    assert "curriculum is" in capsys.readouterr().err
    assert ppo.main([*resume, f"--curriculum={json.dumps(STAGES)}"]) == 0
    assert list(tables(tmp_path).series("curriculum/stage").values) == [1.0, 2.0, 3.0]


def test_the_best_checkpoint_is_of_the_stage_that_was_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The first stage pays more than the second one: its scores must not stand in the way.
    stages = [{"env_id": "Long-v0", "condition": "steps>=700"}, {"env_id": "Short-v0"}]
    flags = ["--env-id=Short-v0", "--num-steps=32", "--checkpoint-every=256", "--total-timesteps=1500"]
    assert ppo.main([*flags, f"--curriculum={json.dumps(stages)}"]) == 0
    best = decode(tmp_path / "checkpoints" / "best.npz")
    assert best["stage"] == 2
    assert best["score"] <= 3.0


def test_continuous_actions_have_curricula_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stages = [{"env_id": "Pendulum-v1", "condition": "episodes>=1"}, {"env_id": "Pendulum-v1"}]
    flags = ["--env-id=Pendulum-v1", "--total-timesteps=450", "--learning-starts=100", "--batch-size=16"]
    assert (
        td3_continuous_action.main([*flags, f"--curriculum={json.dumps(stages)}", "--eval-episodes=0"]) == 0
    )
    assert list(tables(tmp_path).series("curriculum/stage").values) == [1.0, 2.0]


def test_videos_go_on_through_the_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stages = [{"env_id": "CartPole-v0", "condition": "episodes>=3"}, {"env_id": "CartPole-v1"}]
    flags = ["--total-timesteps=1024", "--num-steps=64", f"--curriculum={json.dumps(stages)}", "--seed=2"]
    flags += ["--num-envs=2", "--capture-video", "--eval-episodes=0"]
    assert ppo.main(flags) == 0
    videos = {path.name.split("-step-")[0] for path in (tmp_path / "videos").iterdir()}
    assert {"episode-0", "episode-1", "episode-8"} <= videos
