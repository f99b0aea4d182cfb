"""Grid worlds: the network as documented, and training on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cleanrl_worker.agents.minigrid import MinigridAgent, MinigridCNN
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms import c51, dqn, ppo, pqn
from cleanrl_worker.algorithms.ppo import make_agent
from cleanrl_worker.kit.vector_env import make_envs
from mosaic.analytics.store import RunMetrics

SHAPES = {
    "cnn.network.0.weight": (32, 3, 3, 3),
    "cnn.network.2.weight": (64, 32, 3, 3),
    "cnn.network.4.weight": (64, 64, 3, 3),
    "cnn.network.7.weight": (128, 3136),
    "actor.0.weight": (128, 128),
    "actor.2.weight": (7, 128),
    "critic.0.weight": (128, 128),
    "critic.2.weight": (1, 128),
}


def test_the_network_is_the_documented_one() -> None:
    weights = {name: tuple(value.shape) for name, value in MinigridAgent(7).state_dict().items()}
    biases = {name.replace("weight", "bias"): shape[:1] for name, shape in SHAPES.items()}
    assert weights == {**SHAPES, **biases}
    layers = [type(layer).__name__ for layer in MinigridCNN().network]
    assert layers == ["Conv2d", "ReLU", "Conv2d", "ReLU", "Conv2d", "ReLU", "Flatten", "Linear"]


def test_weights_begin_orthogonal_and_biases_at_zero() -> None:
    agent = MinigridAgent(7)
    for name, gain in (("cnn.network.4", 2**0.5), ("actor.0", 2**0.5), ("actor.2", 0.01), ("critic.2", 1.0)):
        rows = agent.get_parameter(f"{name}.weight").detach().flatten(1)
        torch.testing.assert_close(rows @ rows.T, gain**2 * torch.eye(len(rows)), rtol=1e-4, atol=1e-5)
        assert not agent.get_parameter(f"{name}.bias").any()


def test_bytes_and_flat_rows_of_floats_are_the_same_picture() -> None:
    agent = MinigridAgent(7)
    pictures = torch.randint(0, 11, (5, 7, 7, 3), dtype=torch.uint8)
    logits, values = agent(pictures)
    assert logits.shape == (5, 7) and values.shape == (5,)
    flat = pictures.reshape(5, -1).float()
    torch.testing.assert_close(agent.logits(flat), logits)
    torch.testing.assert_close(agent.value(flat), values)
    # The channels come last in an observation: the first layer sees them as planes, from 0 to 1.
    planes = pictures.permute(0, 3, 1, 2).contiguous() / 255.0
    torch.testing.assert_close(agent.cnn(pictures), agent.cnn.network(planes))


@pytest.mark.parametrize(
    ("env_id", "kwargs", "shape"),
    [
        ("MiniGrid-Empty-5x5-v0", "{}", (7, 7, 3)),
        ("BabyAI-GoToRedBallGrey-v0", "{}", (7, 7, 3)),
        ("MiniGrid-Empty-5x5-v0", '{"agent_view_size": 5}', (5, 5, 3)),
        ("CartPole-v1", "{}", None),
    ],
)
def test_the_observation_chooses_the_network(env_id: str, kwargs: str, shape: tuple[int, ...] | None) -> None:
    with make_envs("ppo", env_id, 1, kwargs) as envs:
        agent = make_agent(envs.observation_space, (7,))
        if shape is None:
            assert isinstance(agent, MLPAgent)
            return
        assert isinstance(agent, MinigridAgent)
        obs = np.zeros((1, *shape), dtype=np.uint8)
        envs.reset(1, out=obs)
        assert agent.logits(torch.from_numpy(obs)).shape == (1, 7)


def test_ppo_trains_on_a_grid_world_and_saves_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--num-steps=32", "--update-epochs=1", "--exp-name=grid", "--checkpoint-every=0"]
    assert ppo.main(["--env-id=MiniGrid-Empty-5x5-v0", "--total-timesteps=512", *flags]) == 0
    (path,) = tmp_path.glob("runs/*/grid.cleanrl_model")
    MinigridAgent(7).load_state_dict(torch.load(path, weights_only=True))
    table = RunMetrics.open(tmp_path / "runs")
    assert len(table.series("charts/episodic_return")) > 0


def test_ppo_trains_on_a_grid_world_with_a_mission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--num-steps=16", "--update-epochs=1", "--total-timesteps=64"]
    assert ppo.main(["--env-id=BabyAI-GoToRedBall-v0", *flags]) == 0


@pytest.mark.parametrize("algorithm", [dqn, c51, pqn])
def test_the_q_learners_read_a_grid_as_numbers(
    algorithm: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--env-id=MiniGrid-Empty-5x5-v0", "--total-timesteps=256", "--num-envs=2"]
    if algorithm is not pqn:
        flags += ["--learning-starts=64", "--batch-size=16"]
    assert algorithm.main(flags) == 0  # type: ignore[attr-defined]
    (path,) = tmp_path.glob("runs/*/*.cleanrl_model")
    saved = torch.load(path, weights_only=True)
    weights = saved["model_weights"] if algorithm is c51 else saved
    assert weights["network.0.weight"].shape == (120, 147)
