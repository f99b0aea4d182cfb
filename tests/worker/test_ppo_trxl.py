"""The transformer of ppo_trxl beside its equations; what it learns from beside what it acted on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cleanrl_worker.agents.transformer import TransformerAgent
from cleanrl_worker.algorithms import ppo_trxl
from cleanrl_worker.kit.torch_backend import AdamW
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.errors import UserError
from support.formulas import weights_of
from support.transformer import step_of

DIM, HEADS, LAYERS, LENGTH, OBS = 8, 2, 2, 5, 3


@pytest.fixture
def agent() -> TransformerAgent:
    torch.manual_seed(1)
    made = TransformerAgent((OBS,), (4,), LAYERS, HEADS, DIM, LENGTH)
    for parameter in made.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return made


def test_it_sees_the_steps_of_its_episode_and_no_more_than_its_memory_holds(agent: TransformerAgent) -> None:
    own, weights = np.random.default_rng(1), weights_of(agent)
    memory, remembered = torch.zeros(1, agent.memory_size), []
    for obs in own.standard_normal((2 * LENGTH, OBS)).astype(np.float32):
        with torch.no_grad():
            logits, values, memory = agent.step(torch.from_numpy(obs)[None], memory)
        newest = remembered[-LENGTH:]
        expected, value, items = step_of(weights, obs.astype(float), newest, LAYERS, HEADS)
        np.testing.assert_allclose(logits[0].numpy(), expected, rtol=1e-4, atol=1e-5)
        assert float(values) == pytest.approx(value, rel=1e-4, abs=1e-5)
        remembered.append(items)
    assert float(memory[0, -1]) == LENGTH


def test_it_learns_from_what_it_remembered_when_it_acted(agent: TransformerAgent) -> None:
    own, envs, steps = np.random.default_rng(1), 2, 9
    obs = own.standard_normal((steps, envs, OBS)).astype(np.float32)
    memory = np.zeros((envs, agent.memory_size), np.float32)
    for _ in range(3):
        memory = ppo_trxl.look(agent, own.standard_normal((envs, OBS)).astype(np.float32), memory, "cpu")[2]
    first, acted, counts, items = memory.copy(), [], [], []
    for t in range(steps):
        if t == 4:
            # An episode ends in the second environment only.
            memory[1] = 0.0
        counts.append(memory[:, -1].copy())
        logits, _, memory = ppo_trxl.look(agent, obs[t], memory, "cpu")
        acted.append(logits)
        items.append(memory[:, -1 - LAYERS * DIM : -1].reshape(envs, LAYERS, DIM))
    before = first[:, :-1].reshape(envs, LENGTH, LAYERS, DIM).swapaxes(0, 1)
    rows = own.permutation(steps * envs)
    window = ppo_trxl.windows(np.concatenate((before, np.stack(items))), rows, LENGTH)
    with torch.no_grad():
        again, _, _ = agent(
            torch.from_numpy(obs.reshape(-1, OBS)[rows]),
            torch.from_numpy(window),
            torch.from_numpy(np.stack(counts).reshape(-1)[rows]),
        )
    np.testing.assert_allclose(again.numpy(), np.stack(acted).reshape(-1, 4)[rows], rtol=1e-4, atol=1e-5)


def test_no_gradient_runs_into_what_is_remembered(agent: TransformerAgent) -> None:
    _, _, items = agent(torch.randn(2, OBS), torch.zeros(2, LENGTH, LAYERS, DIM), torch.zeros(2))
    assert not items.requires_grad


def test_adamw_steps_as_torchs_own() -> None:
    torch.manual_seed(1)
    ours, theirs = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    optimizer, expected = AdamW(ours), torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(20):
        obs = torch.randn(8, 4)
        optimizer.update(ours(obs).square().mean(), 0.01)
        expected.zero_grad()
        torch.autograd.backward(theirs(obs).square().mean())
        expected.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_heads_that_do_not_share_the_width_evenly_are_refused_before_anything_starts(tmp_path: Path) -> None:
    config = {"run_id": "r", "algo": "ppo_trxl", "env_id": "CartPole-v1", "total_timesteps": 1000, "seed": 1}
    with pytest.raises(UserError, match="trxl_dim is 30, which is not a multiple of trxl_num_heads, 4"):
        CATALOG.check({**config, "extras": {"algo_params": {"trxl_dim": 30}}}, None, None)


def test_it_learns_from_pictures_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = (
        "--total-timesteps=64",
        "--num-envs=2",
        "--num-steps=16",
        "--trxl-dim=16",
        "--trxl-memory-length=6",
    )
    assert (
        ppo_trxl.main(["--env-id=mosaic/Recall-v0", *small, "--num-minibatches=2", "--eval-episodes=2"]) == 0
    )
    assert list(tmp_path.glob("runs/*/ppo_trxl.cleanrl_model"))
