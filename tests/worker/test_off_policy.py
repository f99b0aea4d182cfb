"""DDPG, TD3 and SAC: kernels like torch, known file names, true transitions, and a pendulum that comes up."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from cleanrl_worker.agents.continuous import HIDDEN, Actor, GaussianActor, QNetwork
from cleanrl_worker.kernels.deterministic import DeterministicKernel
from cleanrl_worker.kernels.sac import SACKernel
from cleanrl_worker.training.box_actions import BoxActions
from cleanrl_worker.training.envs import make_envs
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.replay import ReplayBuffer, Sample
from cleanrl_worker.training.seeding import seed_everything
from cleanrl_worker.training.transitions import keep_step
from mosaic.analytics.event_files import EventReader, Series

ALGORITHMS = ("ddpg", "td3", "sac")
OBS, BATCH = 5, 32
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


def module_of(algo: str) -> Any:
    return importlib.import_module(f"cleanrl_worker.algorithms.{algo}_continuous_action")


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


def make_sample(random: np.random.Generator) -> Sample:
    def floats(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    actions = random.uniform(SPACE.low, SPACE.high, (BATCH, 3)).astype(np.float32)
    dones = (random.random(BATCH) < 0.3).astype(np.float32)
    return Sample(floats(BATCH, OBS), floats(BATCH, OBS), actions, floats(BATCH), dones)


def make_pair(algo: str, **changes: Any) -> tuple[Any, Any, Any, Any]:
    """Equal networks twice, with the torch learner for the first and the kernel for the second."""
    module = module_of(algo)
    args = module.Args(batch_size=BATCH, num_envs=4, **changes)
    extra = (args,) if algo == "sac" else ()
    seed_everything(1, deterministic=True)
    first, second = (module.Networks(OBS, BoxActions(SPACE), torch.device("cpu"), *extra) for _ in range(2))
    for name, part in vars(second).items():
        if isinstance(part, Adam) or name.endswith("_target"):
            part.load(getattr(first, name).state())
    return first, module.TorchLearner(first, args), second, module.make_learner(second, args)


def steady(nets: Any) -> None:
    """Let a third of the second layers' units be off whatever the inputs are, and a third on."""
    with torch.no_grad():
        for net in (nets.actor, *nets.critics):
            net.fc2.bias += torch.tensor([-5.0, 0.0, 5.0]).repeat(HIDDEN)[:HIDDEN]


def noise_for(algo: str, random: np.random.Generator) -> tuple[Any, ...]:
    if algo == "ddpg":
        return ()
    noise = random.normal(size=(BATCH, 3)).astype(np.float32)
    return (np.clip(0.5 * noise, -0.5, 0.5) if algo == "td3" else noise,)


def assert_like(given: Any, expected: Any, tolerance: float = 1e-3) -> None:
    """Equal up to a share of the greatest of them: a unit that just switches on moves small ones by more."""
    given, expected = np.asarray(given), np.asarray(expected)
    np.testing.assert_allclose(given, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("prepare", [lambda nets: None, steady], ids=("fresh", "steady"))
@pytest.mark.parametrize(
    ("algo", "changes"),
    [("ddpg", {}), ("td3", {}), ("sac", {}), ("sac", {"autotune": False, "alpha": 0.7})],
    ids=str,
)
def test_a_kernel_takes_the_same_steps(
    algo: str, changes: dict[str, Any], prepare: Callable[[Any], None]
) -> None:
    first, torch_learner, second, kernel = make_pair(algo, **changes)
    for nets in (first, second):
        prepare(nets)
    assert isinstance(kernel, SACKernel if algo == "sac" else DeterministicKernel)
    random = np.random.default_rng(0)
    for number in range(40):
        sample, noise = make_sample(random), noise_for(algo, random)
        expected = torch_learner.learn_critics(sample, *noise)
        assert_like(kernel.learn_critics(sample, *noise), expected)
        assert_like(second.critic_optimizer.gradient, first.critic_optimizer.gradient)
        if number % 2 == 0:
            drawn = noise if algo == "sac" else ()
            expected = torch_learner.learn_actor(sample.obs, *drawn)
            assert_like(kernel.learn_actor(sample.obs, *drawn), expected)
            assert_like(second.actor_optimizer.gradient, first.actor_optimizer.gradient)
            for nets in (first, second):
                nets.critic_target.follow(0.1)
    for name, part in vars(first).items():
        if isinstance(part, Adam):
            assert_like(getattr(second, name).weights, part.weights)
            assert float(getattr(second, name).step) == float(part.step)
        elif name.endswith("_target"):
            assert_like(getattr(second, name).weights, part.weights)
    obs = random.normal(size=(4, OBS)).astype(np.float32)
    acting = (random.normal(size=(4, 3)).astype(np.float32),) if algo == "sac" else ()
    assert_like(kernel.act(obs, *acting), torch_learner.act(obs, *acting))


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_torch_is_used_when_no_kernel_is_wanted(algo: str) -> None:
    _, torch_learner, _, learner = make_pair(algo, kernels=False)
    assert type(learner) is type(torch_learner)


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
    assert f"narrow:Narrow-v0 has {kind} actions; use ppo_continuous_action there" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"narrow.py", "__pycache__"}


def test_a_transition_at_a_time_limit_keeps_the_last_observation_and_does_not_end() -> None:
    buffer = ReplayBuffer(1000, (3,), (1,), seed=1)
    with make_envs("sac_continuous_action", "Pendulum-v1", 2) as envs:
        actions = BoxActions(envs.action_space)
        obs, next_obs = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
        envs.reset(4, out=obs)
        last: dict[int, Any] = {}
        for _ in range(200):
            chosen = actions.random(2)
            step = envs.step(actions.for_envs(chosen), out=next_obs)
            keep_step(buffer, obs, chosen, step, next_obs)
            last |= step.final_obs
            obs, next_obs = next_obs, obs
    kept = buffer.state()["tail"]
    assert not kept["dones"].any()
    np.testing.assert_array_equal(kept["next_obs"][398:], np.stack([last[0], last[1]]))
    assert (kept["next_obs"][398:] != obs).any(axis=1).all()
    np.testing.assert_array_equal(kept["next_obs"][:398], kept["obs"][2:])


def test_sac_brings_the_pendulum_up(tmp_path: Path) -> None:
    flags = ("--total-timesteps=5000", "--learning-starts=1000", "--batch-size=64", "--policy-lr=0.001")
    run = run_script(tmp_path, "sac", *flags, "--checkpoint-every=0")
    assert run.returncode == 0, run.stderr
    returns = read_scalars(tmp_path)["charts/episodic_return"].values
    assert np.mean(returns[:5]) < -900
    assert np.mean(returns[-5:]) > -500
