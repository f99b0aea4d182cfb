"""The parts of an interactive session: actions of every space, words for them, other observations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from cleanrl_worker.algorithms import ppo
from cleanrl_worker.evaluation.interactive.messages import Refusal, Request
from cleanrl_worker.evaluation.interactive.session import Session, action_meanings, read_action
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.portable.probe import import_family

MANY = MultiDiscrete(np.array([2, 3]))


@pytest.mark.parametrize(
    ("space", "given"),
    [
        (Discrete(3, start=5), 7),
        (MANY, [1, 2]),
        (MultiDiscrete(np.array([2, 2]), start=np.array([1, 0])), [2, 0]),
        (MultiBinary(3), [0, 1, 1]),
        (Box(-1.0, 1.0, (2, 2)), [[0.1, 0.2], [-1, 1]]),
        (Box(np.array([-1.0, 0.0]), np.array([1.0, 9.0]), dtype=np.float64), [0.5, 8.5]),
    ],
)
def test_an_action_of_the_space_is_taken_as_the_environment_wants_it(space: Any, given: Any) -> None:
    action = read_action(space, given)
    assert space.contains(action)
    np.testing.assert_allclose(action, given)


@pytest.mark.parametrize(
    ("space", "given"),
    [
        (Discrete(3, start=5), 2),
        (Discrete(3), 10**30),
        (MANY, [1, 3]),
        (MANY, [-1, 0]),
        (MANY, [0.5, 1]),
        (MANY, 1),
        (MANY, [1, 10**30]),
        (MultiBinary(3), [0, 1, 2]),
        (Box(np.array([-1.0, 0.0]), np.array([1.0, 9.0]), dtype=np.float64), [-0.5, -0.5]),
        (Box(-np.inf, np.inf, (1,)), [float("nan")]),
        (Box(-1.0, 1.0, (1,)), {"a": 1}),
        (Box(-1.0, 1.0, (1,)), [10**400]),
    ],
)
def test_an_action_out_of_the_space_is_refused_in_one_sentence(space: Any, given: Any) -> None:
    with pytest.raises(Refusal) as refused:
        read_action(space, given)
    assert len(str(refused.value)) < 300 and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("CartPole-v1", ["left", "right"]),
        ("Acrobot-v1", None),
        ("Pendulum-v1", None),
        ("MiniGrid-Empty-5x5-v0", ["left", "right", "forward", "pickup", "drop", "toggle", "done"]),
        ("ALE/Pong-v5", ["noop", "fire", "right", "left", "rightfire", "leftfire"]),
        ("FrozenLake-v1", ["left", "down", "right", "up"]),
    ],
)
def test_actions_have_the_words_of_their_environment(env_id: str, words: list[str] | None) -> None:
    import_family(env_id)
    env: Any = gymnasium.make(env_id)
    assert action_meanings(env) == words
    env.close()


def test_a_mission_in_words_is_part_of_the_observation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--num-envs=2", "--num-steps=64", "--eval-episodes=0", "--checkpoint-every=0"]
    assert ppo.main(["--env-id=MiniGrid-Empty-5x5-v0", "--total-timesteps=128", *flags]) == 0
    (path,) = tmp_path.glob("runs/*/ppo.cleanrl_model")
    session = Session(open_model(path), seed=1, frames=True)
    try:
        ready = session.reset(Request("reset"))
        assert ready["observation"]["mission"] == ready["mission"] == "get to the green goal square"
        assert np.shape(ready["observation"]["image"]) == (7, 7, 3)
        assert ready["frame"] and len(ready["next"]["probabilities"]) == 7
        (step,) = session.step(Request("step", action=2, frame=False))
        assert step["observation"]["direction"] == 0 and "frame" not in step
        assert step["mission"] == ready["mission"]
    finally:
        session.close()
