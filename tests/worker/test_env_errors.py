"""What is wrong with an environment is said of it, with the step; a run whose process it ends has failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from cleanrl_worker.evaluation.interactive.messages import Refusal, Request
from cleanrl_worker.evaluation.interactive.session import Session
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.vector_env import make_envs
from mosaic.client import Client, RunRecord, eval_config, resume_config, train_config
from mosaic.contract.errors import MosaicError
from support.foreign_models import layers
from support.policies import save_cartpole, save_policy

MODULE = """
import os, sys
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Ending(CartPoleEnv):
    '''Ends its process at its n-th step, by what EXIT says.'''
    taken = 0
    def step(self, action):
        Ending.taken += 1
        if Ending.taken == int(os.environ["EXIT_AT"]):
            os._exit(0) if os.environ["EXIT"] == "os._exit" else sys.exit(0)
        return super().step(action)

gym.register("Ending-v0", Ending, max_episode_steps=50)
"""


class Faulty(gymnasium.Env[Any, Any]):
    """Does one thing wrong at its third step, or when it is reset for the second time."""

    action_space = spaces.Discrete(2)

    def __init__(self, fault: str, parts: bool = False) -> None:
        box = spaces.Box(-1.0, 1.0, (3,), np.float64)
        self.observation_space = spaces.Dict({"a": box}) if parts else box
        self._fault, self._parts = fault, parts
        self._steps = self._resets = 0

    def _shown(self, value: Any) -> Any:
        return {"a": value} if self._parts else value

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._resets += 1
        obs: Any = np.zeros(3)
        if self._resets == 2:
            if self._fault == "reset nan":
                obs = np.array([0.0, np.nan, 0.0])
            if self._fault == "reset old":
                return obs
        return self._shown(obs), {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        obs: Any = np.full(3, 0.5)
        reward: Any = 1.0
        if self._steps != 3:
            return self._shown(obs), reward, False, False, {}
        match self._fault:
            case "nan reward":
                reward = np.nan
            case "huge reward":
                reward = 1e300
            case "no reward":
                reward = None
            case "many rewards":
                reward = np.ones(2)
            case "nan":
                obs[1] = np.nan
            case "infinite":
                obs[2] = -np.inf
            case "last infinite":
                return self._shown(np.array([0.0, np.inf, 0.0])), reward, True, False, {}
            case "none":
                obs = None
            case "text":
                obs = "abc"
            case "shape":
                obs = np.zeros(4)
            case "one number":
                obs = np.float64(0.5)
            case "objects":
                obs = np.array(["a", 1, 2], dtype=object)
            case "old api":
                return obs, reward, False, {}
            case "nothing":
                return None
            case "raises":
                raise ValueError("the arm broke")
            case "exits":
                sys.exit(0)
            case "list":
                obs = [0.5, 0.5, 0.5]
            case _:
                return self._shown(obs), reward, True, False, {}
        return self._shown(obs), reward, False, False, {}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    gymnasium.register("Faulty-v0", Faulty)
    yield
    del gymnasium.registry["Faulty-v0"]


SAID = {
    "nan reward": r"the reward nan at step 6 \(environment 1 of 2\), but a reward must be a finite number\.",
    "huge reward": r"the reward 1e\+300 at step 6 \(environment 1 of 2\)",
    "no reward": r"the reward None at step 6 \(environment 1 of 2\)",
    "many rewards": r"the reward array\(\[1\., 1\.\]\) at step 6 \(environment 1 of 2\)",
    "nan": r"an observation with nan at \[1\] at step 6 \(environment 1 of 2\), but all its numbers",
    "infinite": r"an observation with -inf at \[2\] at step 6 \(environment 1 of 2\)",
    "last infinite": r"an observation with inf at \[1\] at step 6 \(environment 1 of 2\)",
    "none": r"an observation None at step 6 .*, but it must be numbers of shape \(3,\)\.",
    "text": r"an observation 'abc' at step 6",
    "shape": r"an observation of shape \(4,\) at step 6 .*, but it must be numbers of shape \(3,\)\.",
    "one number": r"an observation of shape \(\) at step 6",
    "objects": r"an observation array\(\['a', 1, 2\], dtype=object\) at step 6",
    "old api": r"4 values from step\(\) at step 6 .*, but it must give five: observation, reward,",
    "nothing": r"None from step\(\) at step 6",
    "exits": r"called sys.exit\(0\) at step 6 \(environment 1 of 2\)",
    "reset nan": r"an observation with nan at \[1\] in reset\(\) after 6 steps \(environment 1 of 2\)",
    "reset old": r"array\(\[0\., 0\., 0\.\]\) from reset\(\) in reset\(\) after 6 steps",
}


def play(fault: str, steps: int = 4, parts: bool = False) -> Any:
    kwargs = f'{{"fault": "{fault}", "parts": {str(parts).lower()}}}'
    with make_envs("dqn", "Faulty-v0", 2, kwargs) as envs:
        out = np.zeros((2, *envs.observation_space.shape), np.float32)
        envs.reset(1, out)
        return [envs.step([0, 1], out) for _ in range(steps)]


@pytest.mark.parametrize("fault", SAID)
def test_what_an_environment_gives_wrong_is_said_of_it_and_of_the_step(fault: str) -> None:
    with pytest.raises(MosaicError, match=f"^Faulty-v0 .*{SAID[fault]}"):
        play(fault)


@pytest.mark.parametrize("fault", ["none", "shape", "text", "nan"])
def test_the_same_is_said_of_an_observation_of_several_parts(fault: str) -> None:
    with pytest.raises(MosaicError, match=r"^Faulty-v0 gave an observation .* at step 6"):
        play(fault, parts=True)


def test_an_error_of_the_environments_own_stays_what_it_is_and_says_where_it_comes_from() -> None:
    with pytest.raises(ValueError, match="the arm broke") as raised:
        play("raises")
    assert raised.value.__notes__ == ["raised in step() of Faulty-v0 at step 6 (environment 1 of 2)"]


def test_a_list_of_numbers_is_an_observation() -> None:
    assert len(play("list")) == 4


def test_an_evaluation_names_the_step_of_the_episode() -> None:
    with make_envs("dqn", "Faulty-v0", 1, '{"fault": "nan"}') as envs:
        out = np.zeros((1, 3), np.float32)
        envs.restart(0, 1, out)
        with pytest.raises(MosaicError, match=r"with nan at \[1\] at step 3 of an episode, but"):
            for _ in range(4):
                envs.advance([0], [0], out)


def test_a_policy_whose_action_is_not_finite_is_to_blame_for_what_follows() -> None:
    with make_envs("ddpg_continuous_action", "Pendulum-v1", 1) as envs:
        out = np.zeros((1, 3), np.float32)
        envs.reset(1, out)
        with pytest.raises(MosaicError, match="The policy took an action that is not finite at step 1; try"):
            envs.step([np.array([np.nan], np.float32)], out)


@pytest.mark.parametrize(
    ("fault", "said"),
    [("no reward", "TypeError"), ("nan", "its observation has nan"), ("one number", r"shape \(\)")],
)
def test_an_interactive_session_refuses_the_step_and_goes_on(tmp_path: Path, fault: str, said: str) -> None:
    weights = layers("critic", 3, 64, 64, 1) | layers("actor", 3, 64, 64, 2)
    kwargs = f'{{"fault": "{fault}"}}'
    model = save_policy(tmp_path / "f.cleanrl_model", weights, "ppo", "Faulty-v0", env_kwargs=kwargs)
    session = Session(open_model(model), seed=1)
    session.reset(Request("reset"))
    with pytest.raises(Refusal, match=f"The environment cannot take this step: .*{said}"):
        for _ in range(3):
            session.step(Request("step"))
    assert session.reset(Request("reset"))["type"] == "ready"
    session.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "endings.py").write_text(MODULE)
    return tmp_path


def _run(client: Client, config: dict[str, Any], how: str, at: int) -> RunRecord:
    config["environment"] = {"EXIT": how, "EXIT_AT": str(at)}
    return client.wait(client.submit(config).run_id, timeout=120)


@pytest.mark.parametrize("how", ["sys.exit", "os._exit"])
def test_a_run_whose_environment_ends_the_process_has_failed(client: Client, folder: Path, how: str) -> None:
    config = train_config("ppo", "endings:Ending-v0", total_timesteps=1000, folder=folder)
    run = _run(client, config, how, 300)
    assert run.outcome == "failed"
    if how == "os._exit":
        assert re.search(
            r"ended with exit code 0 before it had finished: .* calls sys\.exit\(\)", str(run.reason)
        )
    else:
        assert "Ending-v0 called sys.exit(0) at step 300 (environment 4 of 4)" in str(run.reason)


def test_so_has_an_evaluation_a_curriculum_and_a_run_that_goes_on(client: Client, folder: Path) -> None:
    model = save_cartpole(folder)
    curriculum = [{"env_id": "CartPole-v1", "steps": 64}, {"env_id": "endings:Ending-v0"}]
    stages = train_config(
        "ppo",
        total_timesteps=1000,
        extras={"curriculum_schedule": curriculum},
        params={"num_steps": 16, "checkpoint_every": 64},
        folder=folder,
    )
    run = _run(client, stages, "os._exit", 150)
    asked = [
        eval_config(str(model), env_id="endings:Ending-v0", folder=folder),
        resume_config(run.run_id, folder=folder),
    ]
    for ended in (run, *(_run(client, config, "os._exit", 20) for config in asked)):
        assert (ended.outcome, ended.exit_code) == ("failed", 1), ended.history
        assert "before it had finished" in str(ended.reason)


def test_what_somebody_elses_script_ends_by_itself_is_completed(client: Client, tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text("import os; os._exit(0)")
    run = client.wait(
        client.submit(train_config(str(script), "None-v0", total_timesteps=5)).run_id, timeout=60
    )
    assert (run.outcome, run.exit_code) == ("completed", 0), run.reason
