"""Q-learning from pictures: losses against float64 written from the papers, and what the buffer holds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_worker.agents.noisy import NoisyLinear, RainbowNetwork
from cleanrl_worker.agents.q_networks import DistributionalQNetwork, NatureQNetwork
from cleanrl_worker.algorithms import c51_atari, dqn_atari, rainbow_atari
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.accelerate import as_tensors
from cleanrl_worker.kit.prioritised import PrioritisedSample
from cleanrl_worker.kit.replay import FrameBuffer, Replay, Sample
from cleanrl_worker.kit.run import Run, train
from cleanrl_worker.kit.stopping import StopSignals
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.errors import UserError
from support.nature import (
    assert_slopes,
    convolved,
    features,
    gradient_of,
    linear,
    softmax,
    spread,
    weights_of,
)

SHAPE, ACTIONS, ROWS = (36, 36, 4), 3, 6


def sample(seed: int = 1) -> Sample:
    dice = np.random.default_rng(seed)
    return Sample(
        obs=dice.integers(0, 256, (ROWS, *SHAPE), np.uint8),
        next_obs=dice.integers(0, 256, (ROWS, *SHAPE), np.uint8),
        actions=dice.integers(0, ACTIONS, ROWS),
        rewards=dice.standard_normal(ROWS).astype(np.float32),
        dones=np.array([0, 1, 0, 0, 1, 0], np.float32),
    )


def test_the_loss_of_dqn_is_that_of_its_formula() -> None:
    torch.manual_seed(1)
    network, target = NatureQNetwork(SHAPE, ACTIONS), NatureQNetwork(SHAPE, ACTIONS)
    args, batch = dqn_atari.Args(gamma=0.9), sample()
    old = weights_of(target)

    def values(weights: Any, obs: Any) -> Any:
        return linear(weights, "network.9", features(weights, obs))

    def loss(weights: Any) -> float:
        targets = batch.rewards + 0.9 * (1.0 - batch.dones) * values(old, batch.next_obs).max(axis=1)
        chosen = values(weights, batch.obs)[np.arange(ROWS), batch.actions]
        return float(((chosen - targets) ** 2).mean())

    logged = gradient_of(network, dqn_atari.dqn_loss(network, target, args, as_tensors(batch, "cpu")))
    now = weights_of(network)
    mean = values(now, batch.obs)[np.arange(ROWS), batch.actions].mean()
    np.testing.assert_allclose(logged, [loss(now), mean], rtol=1e-4, atol=1e-6)
    assert_slopes(network, loss)


def test_the_loss_of_c51_is_that_of_its_formula() -> None:
    torch.manual_seed(1)
    network, target = (DistributionalQNetwork(SHAPE, ACTIONS, 7, -1.0, 2.0) for _ in range(2))
    args, batch = c51_atari.Args(gamma=0.9, n_atoms=7, v_min=-1.0, v_max=2.0), sample()
    old, atoms, each = weights_of(target), np.linspace(-1.0, 2.0, 7), np.arange(ROWS)

    def chances(weights: Any, obs: Any) -> Any:
        return softmax(linear(weights, "network.9", features(weights, obs)).reshape(ROWS, ACTIONS, 7))

    def loss(weights: Any) -> float:
        following = chances(old, batch.next_obs)
        best = (following @ atoms).argmax(axis=1)
        discounts = 0.9 * (1.0 - batch.dones)
        wanted = spread(following[each, best], batch.rewards, discounts, atoms)
        return float(-(wanted * np.log(chances(weights, batch.obs)[each, batch.actions])).sum(axis=1).mean())

    logged = gradient_of(network, c51_atari.c51_loss(network, target, args, as_tensors(batch, "cpu")))
    now = weights_of(network)
    mean = (chances(now, batch.obs)[each, batch.actions] @ atoms).mean()
    np.testing.assert_allclose(logged, [loss(now), mean], rtol=1e-4, atol=1e-6)
    assert_slopes(network, loss)


def as_numbers(noise: Any) -> list[tuple[Any, Any]]:
    """The one row of noise of each layer, in float64."""
    return [(into[0].double().numpy(), out[0].double().numpy()) for into, out in noise]


def noisy(weights: Any, name: str, seen: Any, noise: tuple[Any, Any]) -> Any:
    """A layer whose weights are formed one by one from means, noise of inputs and noise of outputs."""
    into, out = noise
    matrix = weights[f"{name}.weight_mu"] + weights[f"{name}.weight_sigma"] * np.outer(out, into)
    return seen @ matrix.T + weights[f"{name}.bias_mu"] + weights[f"{name}.bias_sigma"] * out


def test_noise_of_a_layer_is_factorised_and_another_for_each_row() -> None:
    torch.manual_seed(3)
    layer, seen = NoisyLinear(5, 4), torch.randn(6, 5)
    noise = layer.draw(6)
    assert [tuple(part.shape) for part in noise] == [(6, 5), (6, 4)]
    found, weights = layer(seen, noise).detach().numpy(), weights_of(layer)
    named = {f"a.{name}": value for name, value in weights.items()}
    for row in range(6):
        own = [part[row].double().numpy() for part in noise]
        wanted = noisy(named, "a", seen[row].double().numpy(), (own[0], own[1]))
        np.testing.assert_allclose(found[row], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        layer(seen).detach(), seen.numpy() @ weights["weight_mu"].T + weights["bias_mu"], rtol=1e-5
    )
    # Signed roots of normal numbers: their squares are normal numbers' sizes.
    many = layer.draw(20_000)[0]
    assert float(many.mean()) == pytest.approx(0.0, abs=0.02)
    assert float(many.square().mean()) == pytest.approx(np.sqrt(2 / np.pi), abs=0.02)


def test_the_loss_of_rainbow_is_that_of_its_formula() -> None:
    torch.manual_seed(1)
    network, target = (RainbowNetwork(SHAPE, ACTIONS, 7, -1.0, 2.0) for _ in range(2))
    args, plain = rainbow_atari.Args(n_atoms=7, v_min=-1.0, v_max=2.0), sample()
    dice = np.random.default_rng(2)
    discounts, weights = (dice.random((2, ROWS)) * 0.5 + 0.5).astype(np.float32)
    batch = PrioritisedSample(*plain, discounts, weights, np.arange(ROWS))
    old, atoms, each = weights_of(target), np.linspace(-1.0, 2.0, 7), np.arange(ROWS)

    def chances(weights: Any, obs: Any, noise: Any) -> Any:
        seen = convolved(weights, obs)
        parts = []
        for number, head in enumerate(("value_head", "advantage_head")):
            hidden = np.maximum(noisy(weights, f"{head}.0", seen, noise[2 * number]), 0.0)
            out = noisy(weights, f"{head}.2", hidden, noise[2 * number + 1])
            parts.append(out.reshape(ROWS, -1, 7))
        return softmax(parts[0] + parts[1] - parts[1].mean(axis=1, keepdims=True))

    torch.manual_seed(9)
    choosing, judging, learning = (as_numbers(net.draw_noise()) for net in (network, target, network))
    # Only what is learned has a slope: the next action is chosen by the network as it is.
    best = (chances(weights_of(network), batch.next_obs, choosing) @ atoms).argmax(axis=1)
    following = chances(old, batch.next_obs, judging)[each, best]
    wanted = spread(following, batch.rewards, batch.discounts * (1.0 - batch.dones), atoms)

    def losses(weights: Any) -> Any:
        return -(wanted * np.log(chances(weights, batch.obs, learning)[each, batch.actions])).sum(axis=1)

    def loss(weights: Any) -> float:
        return float((batch.weights * losses(weights)).mean())

    torch.manual_seed(9)
    logged = gradient_of(network, rainbow_atari.rainbow_loss(network, target, args, as_tensors(batch, "cpu")))
    now = weights_of(network)
    mean = (chances(now, batch.obs, learning)[each, batch.actions] @ atoms).mean()
    np.testing.assert_allclose(logged, [loss(now), mean, *losses(now)], rtol=1e-4, atol=1e-6)
    assert_slopes(network, loss)


def test_a_policy_of_rainbow_plays_without_noise_or_with_noise_of_its_own() -> None:
    torch.manual_seed(1)
    spaces: Any = SimpleNamespace(
        observation_space=gymnasium.spaces.Box(0, 255, SHAPE, np.uint8),
        action_space=gymnasium.spaces.Discrete(ACTIONS, start=5),
    )
    args = rainbow_atari.Args(n_atoms=7, v_min=-1.0, v_max=2.0)
    network = rainbow_atari.make_network(spaces, args)
    content = {"model_weights": network.state_dict(), "args": {"n_atoms": 7, "v_min": -1.0, "v_max": 2.0}}
    policy = rainbow_atari.load_policy(content, spaces, rainbow_atari.Args())
    obs = np.random.default_rng(1).integers(0, 256, (1, *SHAPE), np.uint8).repeat(64, axis=0)
    best = int(network(torch.from_numpy(obs[:1])).argmax())
    assert policy.act(obs) == [best + 5] * 64
    before = torch.get_rng_state()
    policy.seed(4)
    noisy_actions = policy.act(obs, deterministic=False)
    assert len(set(noisy_actions)) > 1
    policy.seed(4)
    assert policy.act(obs, deterministic=False) == noisy_actions
    assert torch.equal(torch.get_rng_state(), before)


def their_layers(outputs: int) -> nn.Sequential:
    """The network of other people's scripts, in torch's default layout and with pictures' frames first."""
    convolutions = [nn.Conv2d(4, 32, 8, stride=4), nn.Conv2d(32, 64, 4, stride=2), nn.Conv2d(64, 64, 3)]
    layers = [part for layer in convolutions for part in (layer, nn.ReLU())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, outputs))


@pytest.mark.parametrize("algo", ["dqn_atari", "c51_atari"])
@pytest.mark.parametrize("told", [False, True], ids=["guessed", "told"])
def test_a_model_file_of_somebody_elses_script_plays_as_it_does_there(
    algo: str, told: bool, tmp_path: Path
) -> None:
    torch.manual_seed(2)
    net, atoms = their_layers(3 * 11 if algo == "c51_atari" else 3), torch.linspace(-4.0, 4.0, 11)
    weights: Any = {f"network.{name}": value for name, value in net.state_dict().items()}
    if algo == "c51_atari":
        args = {"env_id": "BreakoutNoFrameskip-v4", "n_atoms": 11, "v_min": -4, "v_max": 4, "end_e": 0.01}
        weights = {"model_weights": {**weights, "atoms": atoms}, "args": args}
    path = tmp_path / "theirs.cleanrl_model"
    torch.save(weights, path)
    model = open_model(path, algo if told else None, "mosaic/Catch-v0")
    assert model.spec.name == algo
    obs = np.random.default_rng(1).integers(0, 256, (32, 84, 84, 4), np.uint8)
    with model.make_envs(1) as envs:
        policy = model.load_policy(envs)
    values = net(torch.from_numpy(obs).permute(0, 3, 1, 2) / 255.0).detach()
    if algo == "c51_atari":
        values = values.view(32, 3, 11).softmax(dim=2) @ atoms
    np.testing.assert_allclose(policy.judge(obs).action_values, values, rtol=1e-4, atol=1e-5)
    assert policy.act(obs) == values.argmax(dim=1).tolist()


def test_arguments_that_do_not_go_together_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--env-id=mosaic/Catch-v0", "--buffer-size=16"]
    for algo in (dqn_atari, c51_atari, rainbow_atari):
        assert algo.main(flags) == 2
        assert "batch_size is 32, but the replay buffer holds only 16" in capsys.readouterr().err
    assert rainbow_atari.main(["--v-min=5", "--v-max=5"]) == 2
    assert "v_min is 5.0, which is not less than v_max" in capsys.readouterr().err


@pytest.mark.parametrize("algo", ["dqn_atari", "c51_atari", "rainbow_atari"])
def test_a_buffer_that_no_memory_holds_is_refused_before_anything_starts(algo: str) -> None:
    config = {
        "run_id": "r",
        "algo": algo,
        "env_id": "ALE/Breakout-v5",
        "seed": 1,
        "total_timesteps": 2 * 10**9,
        "extras": {"algo_params": {"buffer_size": 10**9}},
    }
    with pytest.raises(
        UserError, match=r"^The run would need about 7,1\d\d,\d{3} MB .*; lower buffer_size\.$"
    ):
        CATALOG.describe(config, None, Path.cwd(), ())


def remember(run: Run[Any]) -> None:
    """What every algorithm here does with its buffer, and a look at what it holds and draws."""
    replay = run.keep("replay", Replay(run, 1_000, (), "int64"))
    for _ in run.updates(every=2):
        replay.step([1, 2], [1, 2])
    buffer: Any = replay._buffer
    assert isinstance(buffer, FrameBuffer)
    drawn = replay.sample(500)
    assert drawn.obs.shape == (500, 84, 84, 4) and drawn.obs.dtype == np.uint8
    np.testing.assert_array_equal(drawn.obs[..., 1:], drawn.next_obs[..., :-1])
    # The block falls by four rows with each step, and has fallen in the next observation.
    tops = [(one == 255).any(axis=2).argmax(axis=1) for one in (drawn.obs[..., 3], drawn.next_obs[..., 3])]
    np.testing.assert_array_equal(tops[0] + 4, tops[1])
    np.testing.assert_array_equal(drawn.dones, tops[1] + 6 >= 80)
    # One frame for each step and one more for each episode, of nineteen steps.
    assert buffer._used <= 200 + 2 * (200 // 19 + 2)


def test_pictures_of_the_wrappers_are_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = dataclasses.replace(dqn_atari.SPEC, train=remember, model={})
    args = dqn_atari.Args(
        env_id="mosaic/Catch-v0", num_envs=2, total_timesteps=200, eval_episodes=0, save_model=False
    )
    with StopSignals() as stop:
        train(spec, args, stop)
