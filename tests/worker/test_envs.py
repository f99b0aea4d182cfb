"""Environments give arrays whatever they show, are refused where they do not fit, and come back exactly."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.kit.quickening import QuickDiscrete, look_around
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.kit.vector_env import VectorEnv, make_envs
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.errors import UserError

SHOWN: dict[str, spaces.Space[Any]] = {
    "Vector": spaces.Box(-1.0, 1.0, (3, 2), np.float64),
    "Number": spaces.Discrete(5, start=2),
    "Switches": spaces.MultiBinary(3),
    "Numbers": spaces.MultiDiscrete([2, 3]),
    "Parts": spaces.Dict({"b": spaces.Box(0.0, 1.0, (2,)), "a": spaces.Tuple([spaces.Discrete(3)])}),
    "Cells": spaces.Box(0, 255, (5, 6, 3), np.uint8),
    "Camera": spaces.Box(0, 255, (84, 84, 3), np.uint8),
    "CameraAndSpeed": spaces.Dict(
        {"camera": spaces.Box(0, 255, (64, 64), np.uint8), "speed": spaces.Box(0.0, 1.0, (1,))}
    ),
    "Words": spaces.Dict({"said": spaces.Text(5), "at": spaces.Box(0.0, 1.0, (2,))}),
    "Many": spaces.Sequence(spaces.Box(0.0, 1.0, (2,))),
}
SHAPES = {
    "Vector": (6,),
    "Number": (5,),
    "Switches": (3,),
    "Numbers": (5,),
    "Parts": (5,),
    "Cells": (5, 6, 3),
}
REFUSED = {"Camera": "image", "CameraAndSpeed": "dict", "Words": "text", "Many": "sequence"}


class Showing(gymnasium.Env[Any, Any]):
    """Shows random samples of a space and takes any action of another."""

    def __init__(self, shown: str, action_space: spaces.Space[Any] | None = None) -> None:
        self.observation_space = SHOWN[shown]
        self.action_space = action_space or spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._sample(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        return self._sample(), float(np.sum(action)), bool(self.np_random.random() < 0.1), False, {}

    def _sample(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()


class Dice(gymnasium.Env[Any, Any]):
    """Shows random numbers of a generator of some kind, and ends at random."""

    observation_space, action_space = spaces.Box(0.0, 1.0, (2,), np.float64), spaces.Discrete(2)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.kind == "unseeded":
            self.dice: Any = random.SystemRandom()
        elif seed is not None:
            self.np_random: Any = (
                np.random.RandomState(seed) if self.kind == "legacy" else random.Random(seed)
            )
        if self.kind != "unseeded":
            self.dice = self.np_random
        return self._show(), {}

    def step(self, action: Any) -> Any:
        return self._show(), self.dice.random(), bool(self.dice.random() < 0.1), False, {}

    def _show(self) -> Any:
        return np.array([self.dice.random(), self.dice.gauss(0, 1) if self.kind == "python" else 0.5])


DICE = ("legacy", "python", "unseeded")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for kind in DICE:
        gymnasium.register(f"Dice-{kind}-v0", Dice, kwargs={"kind": kind})
    for shown in SHOWN:
        gymnasium.register(f"Showing{shown}-v0", Showing, kwargs={"shown": shown})
    gymnasium.register(
        "Choices-v0",
        Showing,
        kwargs={"shown": "Parts", "action_space": spaces.MultiDiscrete([[3, 2], [2, 4]])},
    )
    yield
    for kind in DICE:
        del gymnasium.registry[f"Dice-{kind}-v0"]
    for shown in SHOWN:
        del gymnasium.registry[f"Showing{shown}-v0"]
    del gymnasium.registry["Choices-v0"]


@pytest.mark.parametrize("shown", SHAPES)
def test_every_algorithm_gets_an_array(shown: str) -> None:
    with make_envs("dqn", f"Showing{shown}-v0", 2) as envs:
        assert envs.observation_space.shape == SHAPES[shown]
        obs = np.full((2, *SHAPES[shown]), np.nan, dtype=np.float32)
        envs.reset(1, out=obs)
        first = SHOWN[shown]
        first.seed(int(np.random.default_rng(1).integers(2**31)))
        expected = first.sample()
        if not isinstance(first, spaces.Box):
            expected = spaces.flatten(first, expected)
        expected = np.reshape(expected, SHAPES[shown])
        np.testing.assert_array_equal(obs[0], np.asarray(expected, dtype=np.float32))
        finished = 0
        for _ in range(50):
            step = envs.step([0, 1], out=obs)
            finished += len(step.final_obs)
            assert all(last.shape == SHAPES[shown] for last in step.final_obs.values())
        assert finished and np.isfinite(obs).all()


@pytest.mark.parametrize(("shown", "kind"), REFUSED.items())
def test_what_no_algorithm_can_take_is_refused_in_one_sentence(shown: str, kind: str) -> None:
    advice = "use ppo_atari" if kind == "image" else "choose another environment"
    meant = " (with an image in them)" if kind == "dict" else ""
    with pytest.raises(UserError) as refusal:
        make_envs("ppo", f"Showing{shown}-v0", 1)
    said = f"ppo takes vector or grid observations, but Showing{shown}-v0 has {kind} observations{meant}"
    assert str(refusal.value) == f"{said}; {advice}."


def test_a_grid_world_shows_its_picture_and_keeps_its_mission_for_display() -> None:
    with make_envs("ppo", "BabyAI-GoToRedBall-v0", 1) as envs:
        obs = np.zeros((1, 7, 7, 3), dtype=np.uint8)
        envs.reset(3, out=obs)
        env = gymnasium.make("BabyAI-GoToRedBall-v0")
        shown, _ = env.reset(seed=3)
        assert (obs[0] == shown["image"]).all()
        env.close()


def told_by_dry_run(algo: str, env_id: str, folder: Path, **env_kwargs: Any) -> str | None:
    config = {"run_id": "check", "algo": algo, "env_id": env_id, "total_timesteps": 20_000}
    try:
        CATALOG.check({**config, "extras": {"env_kwargs": env_kwargs}}, None, folder)
    except UserError as error:
        return str(error)
    return None


def told_by_training(algo: str, env_id: str, **env_kwargs: Any) -> str | None:
    try:
        make_envs(algo, env_id, 1, json.dumps(env_kwargs)).close()
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "env_id",
    ["CartPole-v1", "Pendulum-v1", "Taxi-v4", "Blackjack-v1", "MiniGrid-Empty-5x5-v0", "ALE/Pong-v5"],
)
def test_the_check_before_a_run_says_what_training_says(tmp_path: Path, env_id: str) -> None:
    for algo in DEFAULT_ALGO_REGISTRY:
        schema = load_schema(algo)
        # A check asks for a teacher first, where one is needed.
        if schema is not None and schema.parameter("teacher_policy") is None:
            assert told_by_dry_run(algo, env_id, tmp_path) == told_by_training(algo, env_id)


OWN = """
import gymnasium
from gymnasium import spaces

class Own(gymnasium.Env):
    action_space = spaces.MultiBinary(2)

    def __init__(self, words=False):
        text = {"said": spaces.Text(5)} if words else {}
        self.observation_space = spaces.Dict({"at": spaces.Box(0.0, 1.0, (2,)), **text})

gymnasium.register("Own-v0", Own)
"""


@pytest.mark.parametrize("words", [False, True])
def test_the_check_asks_an_environment_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bool
) -> None:
    (tmp_path / "own_choices.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    for algo in ("ppo", "dqn"):
        said = told_by_training(algo, "own_choices:Own-v0", words=words)
        assert told_by_dry_run(algo, "own_choices:Own-v0", tmp_path, words=words) == said
        assert (said is not None) == (words or algo == "dqn")
    sys.modules.pop("own_choices", None)
    gymnasium.registry.pop("Own-v0", None)


def test_a_quick_check_of_actions_says_what_the_slow_one_says() -> None:
    for slow in (spaces.Discrete(3), spaces.Discrete(2, start=-1), spaces.Discrete(4, dtype=np.int8)):
        slow.seed(1)
        quick = QuickDiscrete(slow)
        answers: list[Any] = [-2, -1, 0, 1, 2, 3, 4, 300, 2**70, True, 1.0, "1", None]
        answers += [np.int64(1), np.uint8(3), np.array(2), np.array([1])]
        for answer in answers:
            assert quick.contains(answer) == slow.contains(answer), answer
        assert quick == slow and slow == quick
        expected = [slow.sample() for _ in range(5)]
        slow.seed(1)
        assert [QuickDiscrete(slow).sample() for _ in range(5)] == expected


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("BabyAI-GoToRedBallNoDists-v0", {}),
        ("BabyAI-BossLevel-v0", {}),
        ("MiniGrid-DoorKey-8x8-v0", {}),
        ("MiniGrid-FourRooms-v0", {"agent_view_size": 9}),
        ("MiniGrid-Empty-5x5-v0", {}),
    ],
)
def test_a_quick_look_around_sees_what_the_slow_one_sees(env_id: str, kwargs: dict[str, Any]) -> None:
    with make_envs("ppo", "MiniGrid-Empty-5x5-v0", 1) as quick:
        assert quick._envs[0].unwrapped.gen_obs.func is look_around
    env = gymnasium.make(env_id, **kwargs).unwrapped
    env.action_space.seed(1)
    for seed in range(5):
        env.reset(seed=seed)
        for _ in range(80):
            env.step(env.action_space.sample())
            slow, fast = env.gen_obs(), look_around(env)
            assert slow.keys() == fast.keys()
            assert (slow["direction"], slow["mission"]) == (fast["direction"], fast["mission"])
            assert slow["image"].dtype == fast["image"].dtype
            assert slow["image"].tobytes() == fast["image"].tobytes()


def play(envs: VectorEnv, random: np.random.Generator, steps: int) -> bytes:
    """Everything that random actions bring, as bytes."""
    shape, dtype = envs.observation_space.shape, envs.observation_space.dtype
    obs = np.zeros((envs.num_envs, *shape), dtype=dtype)
    seen = []
    envs.action_space.seed(int(random.integers(2**31)))
    for _ in range(steps):
        step = envs.step([envs.action_space.sample() for _ in range(envs.num_envs)], out=obs)
        seen.append(
            obs.tobytes() + repr((step.rewards, step.terminated, step.truncated, step.episodes)).encode()
        )
        seen += [last.tobytes() for last in step.final_obs.values()]
    return b"".join(seen)


@pytest.mark.parametrize(
    ("algo", "env_id", "steps"),
    [
        ("ppo", "CartPole-v1", 7),
        ("ppo", "CartPole-v1", 230),
        ("ppo", "MiniGrid-Empty-5x5-v0", 330),
        ("ppo", "MiniGrid-Dynamic-Obstacles-6x6-v0", 60),
        ("ppo", "BabyAI-GoToRedBall-v0", 150),
        ("ppo", "Choices-v0", 40),
        ("ppo", "Dice-legacy-v0", 40),
        ("ppo", "Dice-python-v0", 40),
        ("ppo", "Taxi-v4", 250),
        ("sac_continuous_action", "InvertedPendulum-v5", 100),
        ("sac_continuous_action", "HalfCheetah-v5", 1060),
        ("sac_continuous_action", "dm_control/cartpole-swingup-v0", 1060),
    ],
)
def test_environments_come_back_to_the_byte(tmp_path: Path, algo: str, env_id: str, steps: int) -> None:
    with make_envs(algo, env_id, 2) as envs:
        obs = np.zeros((2, *envs.observation_space.shape), dtype=envs.observation_space.dtype)
        envs.reset(11, out=obs)
        play(envs, np.random.default_rng(0), steps)
        (tmp_path / "state.npz").write_bytes(encode(envs.state()))
        expected = play(envs, np.random.default_rng(1), 120)
    with make_envs(algo, env_id, 2) as envs:
        envs.reset(99, out=obs)
        play(envs, np.random.default_rng(2), 30)
        envs.load(decode(tmp_path / "state.npz"))
        assert play(envs, np.random.default_rng(1), 120) == expected


def test_an_environment_that_does_not_repeat_itself_begins_new_episodes_and_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with make_envs("ppo", "Dice-unseeded-v0", 2) as envs:
        obs = np.zeros((2, 2))
        envs.reset(11, out=obs)
        play(envs, np.random.default_rng(0), 40)
        (tmp_path / "state.npz").write_bytes(encode(envs.state()))
        envs.load(decode(tmp_path / "state.npz"))
        assert len(play(envs, np.random.default_rng(1), 120)) > 0
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("Dice-unseeded-v0 does not repeat an episode from its seed")
