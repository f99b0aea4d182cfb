"""The kernel of grid worlds computes what the network in torch computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cleanrl_worker.accelerated import grids
from cleanrl_worker.accelerated.grids import KnownViews, Sums, Surroundings
from cleanrl_worker.accelerated.ppo import PPOKernel, fits
from cleanrl_worker.agents.minigrid import VIEW, MinigridAgent
from cleanrl_worker.algorithms.ppo import Args, Batch, load_policy, ppo_loss
from cleanrl_worker.kit.accelerate import Gradient, take
from cleanrl_worker.kit.torch_backend import Adam
from cleanrl_worker.kit.vector_env import make_envs

Floats = NDArray[np.float32]
Seen = tuple[Floats, tuple[int, ...]]
"""Observations as flat rows, and the shape of each."""
Pair = tuple[MinigridAgent, Adam]


def play(env_id: str, steps: int, kwargs: str = "{}") -> Seen:
    """What four environments show while random actions are taken."""
    random = np.random.default_rng(1)
    with make_envs("ppo", env_id, 4, kwargs) as envs:
        shape = envs.observation_space.shape
        obs = np.zeros((steps, 4, *shape), np.float32)
        envs.reset(1, out=obs[0])
        for t in range(1, steps):
            envs.step(random.integers(0, 7, 4).tolist(), out=obs[t])
    return obs.reshape(steps * 4, -1), shape


def draw(kinds: int, views: int, rows: int, shape: tuple[int, ...]) -> Seen:
    """Rows of a few views, whose cells are of a few kinds; one is all zero, as the padding of the layers."""
    random = np.random.default_rng(kinds)
    cells = random.integers(0, 11, (kinds, shape[2]))
    cells[0] = 0
    different = cells[random.integers(0, kinds, (views, shape[0] * shape[1]))].reshape(views, -1)
    return different[random.integers(0, views, rows)].astype(np.float32), shape


def make_batch(obs: Floats, nvec: tuple[int, ...]) -> Batch:
    random = np.random.default_rng(len(obs))
    size = len(obs)

    def floats() -> Any:
        return random.normal(size=size).astype(np.float32)

    actions = np.stack([random.integers(0, choices, size) for choices in nvec], axis=1)
    # Old probabilities and values far from the new ones, so that both clippings bite.
    log_probs, rows = -np.abs(floats()) - len(nvec), np.arange(size)
    return Batch(obs, actions, log_probs, floats(), floats(), 0.3 * floats(), rows)


def make_pair(nvec: tuple[int, ...], shape: Sequence[int]) -> tuple[Pair, Pair]:
    """The same agent twice, with an optimizer for each. Biases are far from zero, as after training."""
    torch.manual_seed(1)
    first, second = MinigridAgent(nvec, shape), MinigridAgent(nvec, shape)
    with torch.no_grad():
        for name, parameter in first.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.3, 0.3)
    second.load_state_dict(first.state_dict())
    return (first, Adam(first, eps=1e-5)), (second, Adam(second, eps=1e-5))


def gradient_errors(given: MinigridAgent, expected: MinigridAgent) -> list[float]:
    """How far each parameter's gradient is off, as a share of its norm."""
    errors = []
    for one, other in zip(given.parameters(), expected.parameters(), strict=True):
        assert one.grad is not None and other.grad is not None
        errors.append(float((one.grad - other.grad).norm() / (other.grad.norm() + 1e-9)))
    return errors


@pytest.mark.parametrize(
    ("see", "nvec", "changes"),
    [
        (lambda: play("BabyAI-GoToLocal-v0", 48), (7,), {}),
        (lambda: play("MiniGrid-DoorKey-8x8-v0", 32), (7,), {"clip_vloss": False, "norm_adv": False}),
        (lambda: play("MiniGrid-FourRooms-v0", 12, '{"agent_view_size": 9}'), (7,), {"ent_coef": 0.3}),
        (lambda: draw(4, 40, 100, (5, 4, 3)), (3, 2), {"max_grad_norm": 0.01}),
        (lambda: draw(200, 40, 40, VIEW), (7,), {}),
        (lambda: draw(3, 1, 30, VIEW), (7,), {}),
        (lambda: draw(6, 20, 40, (1, 2, 3)), (7,), {}),
    ],
    ids=["BabyAI", "DoorKey", "wide view", "oblong", "all differ", "all the same", "two cells"],
)
def test_the_kernel_takes_the_same_steps_as_torch(
    see: Callable[[], Seen], nvec: tuple[int, ...], changes: dict[str, Any]
) -> None:
    args, (obs, shape) = Args(**changes), see()
    (plain, first), (quick, second) = make_pair(nvec, shape)
    kernel = PPOKernel(quick, args)
    loss = functools.partial(ppo_loss, plain, args)
    reference: Gradient[Batch] = Gradient(loss, plain, first)
    random = np.random.default_rng(0)
    errors = []
    for rollout in (obs, obs[::-1].copy()):
        with torch.no_grad():
            logits, values = plain(torch.from_numpy(rollout))
        np.testing.assert_allclose(kernel.logits(rollout), logits, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kernel.values(rollout), values, rtol=1e-4, atol=1e-5)
        batch = make_batch(rollout, nvec)
        kernel.prepare(rollout)
        for size in (len(obs) // 2, len(obs) // 3, len(obs), 2):
            rows = random.permutation(len(obs))[:size]
            expected = reference(take(batch, rows))
            np.testing.assert_allclose(kernel.gradient(take(batch, rows)), expected, rtol=2e-4, atol=1e-5)
            errors.append(gradient_errors(quick, plain))
            first.step(1e-4, args.max_grad_norm)
            # Steps that differ in the last bits would drift apart.
            second.weights.copy_(first.weights)
    # Rounding may turn a unit on that is just off in the other, in one minibatch or two.
    assert np.max(errors) < 0.02
    names = [name for name, _ in plain.named_parameters()]
    assert {name: off for name, off in zip(names, np.median(errors, axis=0), strict=True) if off > 1e-5} == {}


def test_a_minibatch_has_each_of_its_surroundings_once() -> None:
    obs, shape = play("BabyAI-GoToRedBallNoDists-v0", 128)
    rows = np.random.default_rng(0).permutation(len(obs))[:128]
    part, places = Surroundings(obs, shape).take(rows)
    views = np.unique(obs[rows], axis=0)
    assert len(np.unique(places)) == len(views) < 128
    # Beyond the edge is 11: no cell of a view has that kind.
    padded = np.full((len(views), 11, 11, 3), 11.0, np.float32)
    padded[:, 2:-2, 2:-2] = views.reshape(-1, *shape)
    for margin, found in ((1, part.second.count), (2, part.third.count)):
        size = 2 * margin + 1
        inner = padded[:, 2 - margin : 9 + margin, 2 - margin : 9 + margin]
        windows = np.lib.stride_tricks.sliding_window_view(inner, (size, size), axis=(1, 2))
        # One more stands for what is beyond the edge itself.
        assert found == len(np.unique(windows.reshape(-1, 3 * size * size), axis=0)) + 1
    assert part.third.count < len(views) * 49 // 2


@pytest.mark.parametrize("count", [1, 30, 9000])
def test_sums_and_their_gradients_are_those_of_torch(count: int) -> None:
    # 9,000 numbers have more rows than two bytes can count.
    numbers = np.random.default_rng(0).integers(0, count, (500, grids.NEAR))
    table = torch.randn(count * grids.NEAR, 4, requires_grad=True)
    sums, grad = Sums(numbers, count), torch.randn(500, 4)
    rows = torch.from_numpy(numbers * grids.NEAR + np.arange(grids.NEAR))
    expected = table[rows].sum(1)
    torch.autograd.backward(expected, grad)
    with torch.no_grad():
        torch.testing.assert_close(sums.add(table), expected)
        assert table.grad is not None
        torch.testing.assert_close(sums.spread(grad), table.grad)


def test_what_was_known_is_forgotten_when_the_weights_change() -> None:
    (agent, optimizer), _ = make_pair((7,), VIEW)
    kernel = PPOKernel(agent, Args())
    obs, _ = draw(5, 6, 12, VIEW)
    before = kernel.logits(obs)
    kernel.prepare(obs)
    kernel.gradient(make_batch(obs, (7,)))
    optimizer.step(learning_rate=0.01)
    after = kernel.logits(obs)
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(after, agent.logits(torch.from_numpy(obs)).detach(), atol=1e-5)


def test_views_are_computed_once_and_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MOST_KNOWN", 3)
    monkeypatch.setattr(grids, "CELLS_AT_ONCE", 100)
    agent = MinigridAgent(7)
    known, compute = KnownViews(agent), KnownViews._compute
    computed: list[int] = []

    def count(self: KnownViews, views: Floats) -> Floats:
        computed.append(len(views))
        return compute(self, views)

    monkeypatch.setattr(KnownViews, "_compute", count)
    obs, _ = draw(5, 8, 40, VIEW)
    different = len(np.unique(obs, axis=0))
    expected = agent.logits(torch.from_numpy(obs)).detach().numpy()
    np.testing.assert_allclose(known.logits(obs), expected, atol=1e-6)
    # No more than two views of 49 cells are computed together.
    assert sum(computed) == different > 3 and max(computed) == 2
    np.testing.assert_allclose(known.logits(obs[:4]), expected[:4], atol=1e-6)
    assert len(known._known) <= 4


def test_a_policy_of_a_file_acts_as_the_network() -> None:
    obs, _ = play("BabyAI-GoToLocal-v0", 20)
    agent = MinigridAgent(7)
    with make_envs("ppo", "BabyAI-GoToLocal-v0", 1) as envs:
        spaces = SimpleNamespace(observation_space=envs.observation_space, action_space=envs.action_space)
    policies = [load_policy(agent.state_dict(), spaces, Args(kernels=kernels)) for kernels in (True, False)]
    given, expected = ([*vars(policy.judge(obs)).values()] for policy in policies)
    for one, other in zip(given, expected, strict=True):
        assert one is other is None or np.allclose(one, other, atol=1e-5)
    assert given[0] is not None and given[2] is not None
    assert len(policies[0].act(obs)) == len(obs)


def test_the_kernel_is_for_the_cpu_and_can_be_turned_off() -> None:
    agent = MinigridAgent(7)
    Adam(agent, eps=1e-5)
    assert isinstance(PPOKernel.for_agent(agent, Args()), PPOKernel)
    assert PPOKernel.for_agent(agent, Args(kernels=False)) is None
    assert not fits(MinigridAgent(7).to("meta"))
