"""Q-learning in its three forms: right targets, files with the known names."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cleanrl_worker.accelerated.c51 import project
from cleanrl_worker.agents.q_networks import DistributionalQNetwork, NormedQNetwork
from cleanrl_worker.algorithms import c51, dqn, dqn_jax, iqn, pqn, qr_dqn
from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.rollout import gae
from cleanrl_worker.kit.state import decode
from cleanrl_worker.kit.torch_backend import RAdam
from mosaic.analytics.event_files import EventReader, Series

# Every episode is cut off after five steps that give 1 each, so each action is worth 1 / (1 - gamma).
CUT_OFF_ENV = """
import gymnasium, numpy

class Endless(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2, 1), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.ones((2, 1), numpy.float32), {}

    def step(self, action):
        assert action in (3, 4)
        return numpy.ones((2, 1), numpy.float32), 1.0, False, False, {}

gymnasium.register("EndlessMatrix-v0", Endless, max_episode_steps=5)
"""


def test_radam_takes_the_steps_of_torchs() -> None:
    torch.manual_seed(2)
    ours, theirs = NormedQNetwork(3, 2), NormedQNetwork(3, 2)
    theirs.load_state_dict(ours.state_dict())
    radam, reference = RAdam(ours), torch.optim.RAdam(theirs.parameters(), lr=0.01)
    for _ in range(20):
        obs = torch.randn(8, 3)
        radam.update(ours(obs).square().mean(), learning_rate=0.01, max_grad_norm=0.5)
        reference.zero_grad()
        torch.autograd.backward(theirs(obs).square().mean())
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        reference.step()
    for name, weight in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], weight, rtol=1e-4, atol=1e-6)


def test_projection_shares_probability_between_neighbours() -> None:
    args = c51.Args(n_atoms=5, v_min=-2.0, v_max=2.0, gamma=0.5)
    atoms = np.linspace(-2, 2, 5).astype(np.float32)
    probs = np.array([[0, 0, 0, 0, 1], [0.2] * 5, [0, 0, 0, 1, 0], [0, 1, 0, 0, 0]], np.float32)
    rewards = np.array([0.25, 0.5, 5.0, -1.5], np.float32)
    dones = np.array([0, 1, 0, 0], np.float32)
    projected = project(probs, rewards, dones, atoms, args)
    # 0.25 + 0.5 * 2 lies between 1 and 2; a terminal step is worth its reward; the rest is cut at the ends.
    expected = [[0, 0, 0, 0.75, 0.25], [0, 0, 0.5, 0.5, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    np.testing.assert_allclose(projected, np.array(expected), atol=1e-6)


def test_lambda_returns_stop_at_an_end_and_go_on_past_a_time_limit() -> None:
    # The best value of an observation is its number. The first environment ends, the second is cut off at 50.
    rollout: Any = SimpleNamespace(
        all_obs=np.array([[10, 20], [11, 21], [12, 22], [13, 23]], np.float32)[:, :, None],
        rewards=np.array([[1, 1], [2, 2], [3, 3]], np.float32),
        dones=np.array([[0, 0], [1, 1], [0, 0]], np.float32),
        final_obs=[(1, 1, np.array([50], np.float32))],
    )
    best, gains = gae(rollout, lambda obs: obs[:, 0], gamma=0.5, gae_lambda=0.5)
    last: list[Any] = [3 + 0.5 * 13, 3 + 0.5 * 23]
    middle = [2.0, 2 + 0.5 * 50]
    first = [1 + 0.5 * (0.5 * middle[0] + 0.5 * 11), 1 + 0.5 * (0.5 * middle[1] + 0.5 * 21)]
    np.testing.assert_allclose(best + gains, [first, middle, last], rtol=1e-6)


def test_exploration_asks_for_values_only_when_it_needs_them() -> None:
    asked: list[int] = []

    def values(obs: Any) -> Any:
        asked.append(len(obs))
        return np.tile(np.array([0, 5, 1], np.float32), (len(obs), 1))

    random.seed(0)
    obs = np.zeros((4, 2), np.float32)
    drawn = [action for _ in range(200) for action in epsilon_greedy(values, obs, 1.0, 3)]
    assert not asked
    assert all(200 < drawn.count(action) < 333 for action in range(3))
    assert epsilon_greedy(values, obs, 0.0, 3) == [1, 1, 1, 1]
    mixed = [action for _ in range(500) for action in epsilon_greedy(values, obs, 0.3, 3)]
    assert 0.75 < mixed.count(1) / 2000 < 0.85


def test_schedules_count_environment_steps() -> None:
    assert [linear_schedule(1.0, 0.05, 100, step) for step in (0, 50, 100, 900)] == [1.0, 0.525, 0.05, 0.05]
    assert linear_schedule(1.0, 0.1, 0, 0) == pytest.approx(0.1)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Series]]:
    """Trains in a folder of `tmp_path`, and gives the curves."""

    def train(algo: Any, folder: str, *flags: str) -> dict[str, Series]:
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        assert algo.main(flags) == 0
        (chunk,) = EventReader(tmp_path / folder / "runs").poll(1_000_000)
        return chunk.series

    return train


def model_of(folder: Path) -> Any:
    (path,) = folder.glob("runs/*/*.cleanrl_model")
    return torch.load(path, weights_only=True)


QUICK = ("--learning-starts=200", "--learning-rate=0.003", "--target-network-frequency=50")
ALGOS = [
    (dqn, QUICK),
    (dqn_jax, QUICK),
    (c51, (*QUICK, "--v-max=20")),
    (qr_dqn, QUICK),
    (iqn, QUICK),
    (pqn, ("--learning-rate=0.003", "--num-steps=32")),
]
EACH = pytest.mark.parametrize(
    ("algo", "flags"), ALGOS, ids=("dqn", "dqn_jax", "c51", "qr_dqn", "iqn", "pqn")
)
Trains = Callable[..., dict[str, Series]]


@EACH
def test_value_of_an_endless_task_survives_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Trains, algo: Any, flags: tuple[str, ...]
) -> None:
    (tmp_path / "endless_matrix.py").write_text(CUT_OFF_ENV)
    monkeypatch.syspath_prepend(tmp_path)
    task = (
        "--env-id=endless_matrix:EndlessMatrix-v0",
        "--total-timesteps=8000",
        "--gamma=0.9",
        "--num-envs=2",
    )
    scalars = run(algo, "run", *task, *flags)
    # Were a time limit an end, it would be about 2.5, what is left of an episode on average.
    assert scalars["losses/q_values"].values[-1] == pytest.approx(10.0, abs=1.0)
    assert set(scalars["charts/episodic_return"].values) == {5.0}


@EACH
def test_one_seed_gives_one_result_with_every_curve(run: Trains, algo: Any, flags: tuple[str, ...]) -> None:
    curves = []
    for name in ("first", "second"):
        scalars = run(algo, name, "--total-timesteps=3001", *flags)
        timeless = {tag for tag in scalars if tag != "charts/SPS" and not tag.startswith("time/")}
        curves.append({tag: (list(scalars[tag].steps), list(scalars[tag].values)) for tag in timeless})
    assert curves[0] == curves[1]
    loss = "losses/loss" if algo in (c51, qr_dqn, iqn) else "losses/td_loss"
    assert {loss, "losses/q_values", "charts/epsilon", "charts/SPS"} <= scalars.keys()
    assert scalars["charts/epsilon"].values[-1] == pytest.approx(0.05)
    assert 1000 < sum(scalars["charts/episodic_length"].values) <= 3001


def test_model_files_have_the_known_names(tmp_path: Path, run: Trains) -> None:
    for algo, name in ((dqn, "dqn"), (c51, "c51"), (pqn, "pqn")):
        run(algo, name, "--total-timesteps=64")
    weights = model_of(tmp_path / "dqn")
    assert {name: tuple(weights[name].shape) for name in weights if "weight" in name} == {
        "network.0.weight": (120, 4),
        "network.2.weight": (84, 120),
        "network.4.weight": (2, 84),
    }
    saved = model_of(tmp_path / "c51")
    assert saved.keys() == {"model_weights", "args"}
    assert (saved["args"]["n_atoms"], saved["args"]["v_min"]) == (101, -100)
    assert saved["model_weights"]["network.4.weight"].shape == (2 * 101, 84)
    network = DistributionalQNetwork(4, 2, 101, -100, 100)
    network.load_state_dict(saved["model_weights"])
    np.testing.assert_array_equal(network.atoms.numpy(), np.linspace(-100, 100, 101, dtype=np.float32))
    NormedQNetwork(4, 2).load_state_dict(model_of(tmp_path / "pqn"))


@pytest.mark.parametrize("num_envs", [1, 4, 32])
def test_updates_keep_their_rate_with_several_environments(
    tmp_path: Path, run: Trains, num_envs: int
) -> None:
    flags = (f"--num-envs={num_envs}", "--learning-starts=320", "--checkpoint-every=640")
    run(dqn, "run", "--total-timesteps=640", *flags)
    content = decode(list_checkpoints(tmp_path / "run" / "checkpoints")[-1])
    assert content["parts"]["replay"]["total"] == 640
    assert content["parts"]["optimizer"]["steps"] == pytest.approx(32, abs=3)


def test_dqn_learns_cartpole(run: Trains) -> None:
    flags = ("--exploration-fraction=0.3", "--learning-rate=0.001", "--train-frequency=4", "--seed=3")
    scalars = run(dqn, "run", "--total-timesteps=30000", "--learning-starts=1000", *flags)
    returns = scalars["charts/episodic_return"].values
    assert np.mean(returns[:50]) < 40
    assert np.mean(returns[-20:]) > 100


def test_arguments_that_do_not_go_together_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert c51.main(["--v-min=5", "--v-max=5"]) == 2
    assert "v_min is 5.0, which is not less than v_max" in capsys.readouterr().err
    assert dqn.main(["--total-timesteps=2", "--num-envs=3"]) == 2
    assert "less than one step of 3 environments" in capsys.readouterr().err
