"""DDPG, TD3 and SAC: known file names, true transitions, and a pendulum that comes up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from cleanrl_worker.agents.continuous import Actor, GaussianActor, QNetwork
from cleanrl_worker.kit.box_actions import BoxActions
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.vector_env import make_envs
from mosaic.analytics.event_files import EventReader, Series

ALGORITHMS = ("ddpg", "td3", "sac")
OBS = 5
SPACE = Box(np.array([-2.0, 0.0, -1.0], np.float32), np.array([2.0, 5.0, -0.5], np.float32))

# Actions of two dimensions with bounds and a shape of their own; every episode is cut off after three steps.
NARROW_ENV = """
import gymnasium, numpy

class Narrow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2, 2), numpy.float64)
    low, high = numpy.float32([[-1.0], [10.0]]), numpy.float32([[1.0], [30.0]])
    action_space = gymnasium.spaces.Box(low, high)
    made = 0

    def __init__(self, bounded=True, whole=False):
        if not bounded:
            self.action_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (2, 1))
        if whole:
            self.action_space = gymnasium.spaces.Box(0, 3, (2, 1), numpy.int64)
        Narrow.made += 1
        self.number = Narrow.made

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.zeros((2, 2)), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        with open(f"actions-{self.number}", "a") as file:
            print(*action.ravel(), file=file)
        return numpy.full((2, 2), 0.5), 1.0, False, False, {}

gymnasium.register("Narrow-v0", Narrow, max_episode_steps=3)
"""


def run_script(folder: Path, algo: str, *flags: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", f"cleanrl_worker.algorithms.{algo}_continuous_action", *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def results_folder(folder: Path) -> Path:
    (results,) = (folder / "runs").iterdir()
    return results


def read_scalars(folder: Path) -> dict[str, Series]:
    (chunk,) = EventReader(results_folder(folder)).poll(1_000_000)
    return chunk.series


def test_a_drawn_actions_density_is_that_of_a_squashed_normal() -> None:
    torch.manual_seed(2)
    actor = GaussianActor(OBS, *BoxActions(SPACE).bounds)
    obs, noise = torch.randn(7, OBS), torch.randn(7, 3)
    actions, log_probs = actor.draw(obs, noise)
    mean, log_std = actor(obs)
    assert (log_std >= -5.0).all() and (log_std <= 2.0).all()
    squash = [
        torch.distributions.TanhTransform(),
        torch.distributions.AffineTransform(actor.action_bias, actor.action_scale),
    ]
    normal = torch.distributions.Normal(mean, log_std.exp())
    squashed: Any = torch.distributions.TransformedDistribution(normal, squash)
    torch.testing.assert_close(log_probs, squashed.log_prob(actions).sum(1), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("kernels", ["--kernels", "--no-kernels"])
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_model_files_have_the_known_names(tmp_path: Path, algo: str, kernels: str) -> None:
    flags = ("--total-timesteps=160", "--learning-starts=50", "--batch-size=16", kernels)
    run = run_script(tmp_path, algo, *flags)
    assert run.returncode == 0, run.stderr
    name = f"{algo}_continuous_action.cleanrl_model"
    weights = torch.load(results_folder(tmp_path) / name, weights_only=True)
    low, high = torch.tensor([-2.0]), torch.tensor([2.0])
    if algo == "sac":
        GaussianActor(3, low, high).load_state_dict(weights)
        layers = {"fc1", "fc2", "fc_mean", "fc_logstd"}
    else:
        weights, *critics = weights
        assert len(critics) == (2 if algo == "td3" else 1)
        for critic in critics:
            QNetwork(3, 1).load_state_dict(critic)
        # CleanRL's DDPG stores its bounds as a row.
        bounds = (low[None], high[None]) if algo == "ddpg" else (low, high)
        Actor(3, *bounds).load_state_dict(weights)
        layers = {"fc1", "fc2", "fc_mu"}
    buffers = {"action_scale", "action_bias"}
    assert weights.keys() == {f"{layer}.{part}" for layer in layers for part in ("weight", "bias")} | buffers
    assert weights["action_scale"].flatten().tolist() == [2.0]
    assert weights["action_bias"].flatten().tolist() == [0.0]
    scalars = read_scalars(tmp_path)
    assert {"losses/qf1_values", "losses/qf1_loss", "losses/actor_loss", "time/update"} <= scalars.keys()
    assert ("losses/alpha" in scalars) == (algo == "sac")
    assert scalars["losses/actor_loss"].steps[-1] == 100


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_each_dimension_and_environment_explores_within_its_own_bounds(tmp_path: Path, algo: str) -> None:
    (tmp_path / "narrow.py").write_text(NARROW_ENV)
    flags = ("--env-id=narrow:Narrow-v0", "--num-envs=2", "--total-timesteps=121", "--learning-starts=60")
    run = run_script(tmp_path, algo, *flags, "--batch-size=8")
    assert run.returncode == 0, run.stderr
    taken = [np.loadtxt(tmp_path / f"actions-{number}") for number in (1, 2)]
    for actions in taken:
        assert actions.shape == (60, 2)
        assert (np.ptp(actions[:30], axis=0) > [1.0, 10.0]).all()
        assert (np.ptp(actions[30:], axis=0) > [0.05, 0.5]).all()
    assert (taken[0] != taken[1]).all()
    lengths = read_scalars(tmp_path)["charts/episodic_length"]
    assert len(lengths) == 40 and set(lengths.values) == {3.0}


@pytest.mark.parametrize(
    ("algo", "kwargs", "kind"),
    [("ddpg", {"bounded": False}, "unbounded_box"), ("sac", {"whole": True}, "integer_box")],
    ids=str,
)
def test_actions_without_bounds_or_of_whole_numbers_are_refused_before_anything_is_written(
    tmp_path: Path, algo: str, kwargs: dict[str, Any], kind: str
) -> None:
    (tmp_path / "narrow.py").write_text(NARROW_ENV)
    run = run_script(tmp_path, algo, "--env-id=narrow:Narrow-v0", f"--env-kwargs={json.dumps(kwargs)}")
    assert run.returncode == 2
    assert f"narrow:Narrow-v0 has {kind} actions; use ppo_continuous_action" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"narrow.py", "__pycache__"}


def test_a_transition_at_a_time_limit_keeps_the_last_observation_and_does_not_end() -> None:
    with make_envs("sac_continuous_action", "Pendulum-v1", 2) as envs:
        last: dict[int, Any] = {}

        def step(actions: list[Any], out: Any, then: str) -> Any:
            found = envs.step(actions, out)
            last.update(found.final_obs)
            return found

        args = SimpleNamespace(seed=4)
        run: Any = SimpleNamespace(envs=envs, args=args, obs_dtype=np.float32, is_new=True, step=step)
        actions, replay = BoxActions(envs.action_space), Replay(run, 1000, (1,), np.float32)
        for _ in range(200):
            chosen = actions.random(2)
            replay.step(actions.for_envs(chosen), chosen)
    kept = replay.state()["tail"]
    assert not kept["dones"].any()
    np.testing.assert_array_equal(kept["next_obs"][398:], np.stack([last[0], last[1]]))
    assert (kept["next_obs"][398:] != replay.obs).any(axis=1).all()
    np.testing.assert_array_equal(kept["next_obs"][:398], kept["obs"][2:])


def test_sac_brings_the_pendulum_up(tmp_path: Path) -> None:
    flags = ("--total-timesteps=5000", "--learning-starts=1000", "--batch-size=64", "--policy-lr=0.001")
    run = run_script(tmp_path, "sac", *flags, "--checkpoint-every=0")
    assert run.returncode == 0, run.stderr
    returns = read_scalars(tmp_path)["charts/episodic_return"].values
    assert np.mean(returns[:5]) < -900
    assert np.mean(returns[-5:]) > -500
