"""Kernels stand in for the losses that are written, and only where they compute the same."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_worker.accelerated.deterministic import DeterministicKernel
from cleanrl_worker.accelerated.ppo import PPOKernel
from cleanrl_worker.accelerated.sac import SACKernel
from cleanrl_worker.agents.continuous import HIDDEN, Actor, GaussianActor, QNetwork
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms import ddpg_continuous_action as ddpg
from cleanrl_worker.algorithms import ppo
from cleanrl_worker.algorithms import sac_continuous_action as sac
from cleanrl_worker.algorithms import td3_continuous_action as td3
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.replay import Sample
from cleanrl_worker.kit.torch_backend import Adam, Target

OBS, ACTIONS, BATCH = 5, 3, 32
ROLLOUTS = ("--total-timesteps=256", "--num-envs=2", "--num-steps=32")
STEPS = ("--total-timesteps=160", "--learning-starts=60", "--batch-size=16")
PENDULUM = "--env-id=Pendulum-v1"
RUNS: dict[str, tuple[str, ...]] = {
    "ppo": ROLLOUTS,
    "ppo_continuous_action": (*ROLLOUTS, PENDULUM),
    "rpo_continuous_action": (*ROLLOUTS, PENDULUM),
    "pqn": ROLLOUTS,
    "dqn": (*STEPS, "--train-frequency=2"),
    "c51": (*STEPS, "--train-frequency=2", "--v-max=20"),
    "ddpg_continuous_action": (*STEPS, PENDULUM),
    "td3_continuous_action": (*STEPS, PENDULUM),
    "sac_continuous_action": (*STEPS, PENDULUM),
}


class Trained:
    """What a short run left."""

    def __init__(self, folder: Path) -> None:
        self.losses: dict[str, dict[str, str]] = json.loads((folder / "provenance.json").read_bytes())[
            "losses"
        ]
        (path,) = folder.glob("runs/*/*.cleanrl_model")
        self.weights = torch.cat([one.reshape(-1) for one in _tensors(torch.load(path, weights_only=True))])


def _tensors(content: Any) -> list[torch.Tensor]:
    if isinstance(content, torch.Tensor):
        return [content]
    if isinstance(content, dict | tuple):
        parts = content.values() if isinstance(content, dict) else content
        return [tensor for part in parts for tensor in _tensors(part)]
    return []


def train(folder: Path, monkeypatch: pytest.MonkeyPatch, algo: str, *flags: str) -> Trained:
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "provenance.json").write_text("{}")
    module = importlib.import_module(f"cleanrl_worker.algorithms.{algo}")
    assert module.main([*RUNS[algo], "--eval-episodes=0", "--checkpoint-every=0", *flags]) == 0
    return Trained(folder)


@pytest.mark.parametrize("algo", RUNS)
def test_kernels_and_torch_train_alike_and_the_run_tells_which_did(
    algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = train(tmp_path / "kernel", monkeypatch, algo)
    slow = train(tmp_path / "torch", monkeypatch, algo, "--no-kernels")
    assert {loss["by"] for loss in fast.losses.values()} == {"kernel"}
    assert {loss["by"] for loss in slow.losses.values()} == {"torch"}
    assert all("kernels are off" in loss["why"] for loss in slow.losses.values())
    torch.testing.assert_close(fast.weights, slow.weights, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize(
    ("algo", "function", "written", "edited"),
    [
        ("ppo", "ppo_loss", "ratio.clamp(1.0 - args.clip_coef,", "ratio.clamp(1.0 - 0.5 * args.clip_coef,"),
        ("ppo", "ppo_loss", "1.0 + args.clip_coef)", "1.0 + 2.0 * args.clip_coef)"),
        (
            "ppo",
            "ppo_loss",
            "(values - batch.values).clamp(-args.clip_coef,",
            "(values - batch.values).clamp(-0.1,",
        ),
        ("ppo", "ppo_loss", "args.ent_coef * entropy", "0.5 * args.ent_coef * entropy"),
        ("ppo", "ppo_loss", "(values - batch.returns).square()", "(values - 0.9 * batch.returns).square()"),
        ("ppo", "ppo_loss", "torch.minimum(advantages * ratio,", "torch.maximum(advantages * ratio,"),
        (
            "ppo_continuous_action",
            "ppo_loss",
            "args.vf_coef * value_loss",
            "args.vf_coef * 1.01 * value_loss",
        ),
        ("pqn", "pqn_loss", ".square().mean()", ".abs().mean()"),
        ("dqn", "dqn_loss", "(1.0 - batch.dones)", "1.0"),
        ("c51", "project", "clamp(args.v_min, args.v_max)", "clamp(args.v_min, 0.5 * args.v_max)"),
        ("td3_continuous_action", "critic_loss", "torch.minimum(first, second)", "first"),
        ("sac_continuous_action", "actor_loss", "torch.minimum(first, second)", "first"),
    ],
)
def test_an_edit_of_a_loss_changes_what_is_trained(
    algo: str,
    function: str,
    written: str,
    edited: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = train(tmp_path / "written", monkeypatch, algo)
    module = importlib.import_module(f"cleanrl_worker.algorithms.{algo}")
    source = inspect.getsource(getattr(module, function))
    assert written in source
    space = dict(vars(module))
    exec(source.replace(written, edited, 1), space)
    monkeypatch.setattr(module, function, space[function])
    after = train(tmp_path / "edited", monkeypatch, algo)
    assert "torch" in {loss["by"] for loss in after.losses.values()}
    assert "The loss is computed by torch: the kernel" in capsys.readouterr().err
    assert not torch.equal(before.weights, after.weights)


class Row(NamedTuple):
    obs: Any


def test_weights_on_the_edge_of_a_branch_do_not_cost_the_kernel() -> None:
    module = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(module.weight)
    optimizer = Adam(module, eps=1e-5)

    def loss(batch: Row) -> tuple[torch.Tensor, torch.Tensor]:
        values = module(batch.obs)
        slopes = torch.where(values > 0.0, 2.0, 1.0)
        return (slopes * values).mean(), torch.zeros(1)

    def kernel(batch: Row) -> Any:
        values = batch.obs * optimizer.weights.numpy()
        slopes = np.where(values >= 0.0, 2.0, 1.0)
        optimizer.gradient.numpy()[:] = (slopes * batch.obs).mean()
        return np.zeros(1, np.float32)

    gradient = Gradient(loss, module, optimizer, kernel)
    gradient(Row(np.ones((8, 1), np.float32)))
    assert gradient.choice is not None and gradient.choice.by == "kernel"
    assert module.weight.tolist() == [[0.0]]


def test_a_comparison_leaves_the_runs_numbers_alone() -> None:
    torch.manual_seed(1)
    args = ppo.Args()
    agent = MLPAgent(OBS, ACTIONS)
    optimizer = Adam(agent, eps=1e-5)
    kernel = PPOKernel.for_agent(agent, args)
    assert kernel is not None
    moved = ("log_probs", "advantages", "returns", "values")
    gradient: Gradient[ppo.Batch] = Gradient(
        functools.partial(ppo.ppo_loss, agent, args), agent, optimizer, kernel.gradient, moved
    )
    weights, random = optimizer.weights.clone(), torch.get_rng_state()
    batch = make_batch()
    copy = ppo.Batch(*(column.copy() for column in batch))
    gradient(batch)
    assert gradient.choice is not None and gradient.choice.by == "kernel"
    assert torch.equal(optimizer.weights, weights) and torch.equal(torch.get_rng_state(), random)
    for one, other in zip(batch, copy, strict=True):
        np.testing.assert_array_equal(one, other)
    # What was chosen is part of a checkpoint: a run that was computed by torch stays so.
    held = gradient.state()
    again: Gradient[ppo.Batch] = Gradient(gradient._loss, agent, optimizer, kernel.gradient, moved)
    again.load({**held, "by": "torch"})
    assert again.choice is not None and again.choice.by == "torch"
    # Unless somebody has edited the page since: then it is compared anew.
    anew: Gradient[ppo.Batch] = Gradient(gradient._loss, agent, optimizer, kernel.gradient, moved)
    anew.load({**held, "code": "of another page"})
    assert anew.choice is None


def make_batch() -> ppo.Batch:
    random = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    actions = random.integers(0, ACTIONS, (BATCH, 1))
    log_probs = -np.abs(floats(BATCH)) - 0.5
    rows = np.arange(BATCH)
    return ppo.Batch(
        floats(BATCH, OBS), actions, log_probs, floats(BATCH), floats(BATCH), floats(BATCH), rows
    )


@pytest.mark.parametrize(
    "changes",
    [{}, {"clip_vloss": False}, {"norm_adv": False}, {"ent_coef": 0.3}, {"clip_coef": 0.0}],
    ids=str,
)
@pytest.mark.parametrize("nvec", [(3,), (3, 2, 4)], ids=str)
def test_the_ppo_kernel_fits_every_setting(changes: dict[str, Any], nvec: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    args, agent = ppo.Args(**changes), MLPAgent(OBS, nvec)
    optimizer, batch = Adam(agent, eps=1e-5), make_batch()
    random = np.random.default_rng(1)
    batch = batch._replace(actions=np.stack([random.integers(0, size, BATCH) for size in nvec], axis=1))
    kernel = PPOKernel.for_agent(agent, args)
    assert kernel is not None
    gradient: Gradient[ppo.Batch] = Gradient(
        functools.partial(ppo.ppo_loss, agent, args),
        agent,
        optimizer,
        kernel.gradient,
        ("log_probs", "advantages", "returns", "values"),
    )
    gradient(batch)
    assert gradient.choice is not None and gradient.choice.by == "kernel", gradient.choice


def test_networks_that_no_kernel_is_written_for_are_computed_by_torch() -> None:
    assert PPOKernel.for_agent(MLPAgent(OBS, ACTIONS, shared_trunk=True), ppo.Args()) is None
    assert PPOKernel.for_agent(MLPAgent(OBS, ACTIONS), ppo.Args(kernels=False)) is None


def test_acting_is_by_torch_where_a_kernel_gives_other_outputs() -> None:
    agent = MLPAgent(OBS, ACTIONS)
    Adam(agent, eps=1e-5)
    kernel = PPOKernel.for_agent(agent, ppo.Args())
    assert kernel is not None
    obs = np.random.default_rng(2).normal(size=(7, OBS)).astype(np.float32)
    expected = agent.logits(torch.from_numpy(obs)).detach().numpy()
    for function in (kernel.logits, lambda obs: kernel.logits(obs) + 1.0):
        forward = Forward(agent.logits, "cpu", function)
        np.testing.assert_allclose(forward(obs), expected, rtol=1e-5, atol=1e-6)


LOW, HIGH = torch.tensor([-2.0, 0.0, -1.0]), torch.tensor([2.0, 5.0, -0.5])


def make_sample() -> Sample:
    random = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    actions = random.uniform(LOW, HIGH, (BATCH, 3)).astype(np.float32)
    dones = (random.random(BATCH) < 0.3).astype(np.float32)
    return Sample(floats(BATCH, OBS), floats(BATCH, OBS), actions, floats(BATCH), dones)


@pytest.mark.parametrize("steady", [False, True], ids=("fresh", "steady"))
@pytest.mark.parametrize("algo", ["ddpg", "td3", "sac"])
def test_the_kernels_of_actors_and_critics_leave_out_only_what_adds_nothing(algo: str, steady: bool) -> None:
    """In training many units are off, or on, for a whole batch, which kernels make use of."""
    torch.manual_seed(1)
    critics = nn.ModuleList(QNetwork(OBS, 3) for _ in range(1 if algo == "ddpg" else 2))
    actor = GaussianActor(OBS, LOW, HIGH) if algo == "sac" else Actor(OBS, LOW, HIGH)
    optimizers = Adam(actor), Adam(critics)
    target_actor, target_critics = Target(actor, optimizers[0]), Target(critics, optimizers[1])
    if steady:
        with torch.no_grad():
            for net in (actor, *critics):
                # A third of the second layer's units is off whatever the inputs are, and a third on.
                net.fc2.bias += torch.tensor([-5.0, 0.0, 5.0]).repeat(HIDDEN)[:HIDDEN]  # type: ignore[operator]
    noise = np.random.default_rng(1).normal(size=(BATCH, 3)).astype(np.float32)
    sample, kernel, losses = make_sample(), Any, tuple[Any, Any]
    batch: Any
    if isinstance(actor, GaussianActor):
        args, temperature = sac.Args(batch_size=BATCH), sac.Temperature(0.3)
        kernel = SACKernel(actor, critics, temperature, target_critics, optimizers, args)  # type: ignore[assignment]
        batch = sac.Batch(*sample, noise)
        losses = (
            functools.partial(sac.critic_loss, critics, actor, target_critics.net, temperature, args),
            functools.partial(sac.actor_loss, actor, critics, temperature),
        )  # type: ignore[assignment]
    else:
        module: Any = ddpg if algo == "ddpg" else td3
        settings = module.Args(batch_size=BATCH)
        kernel = DeterministicKernel(  # type: ignore[assignment]
            actor, critics, target_actor, target_critics, optimizers, settings
        )
        batch = sample if algo == "ddpg" else td3.Batch(*sample, np.clip(0.5 * noise, -0.5, 0.5))
        losses = (
            functools.partial(module.critic_loss, critics, target_actor.net, target_critics.net, settings),
            functools.partial(module.actor_loss, actor, critics),
        )  # type: ignore[assignment]
    pairs = [(critics, optimizers[1], kernel.critic_gradient), (actor, optimizers[0], kernel.actor_gradient)]  # type: ignore[attr-defined]
    for loss, (network, optimizer, function) in zip(losses, pairs, strict=True):  # type: ignore[call-overload]
        gradient: Gradient[Any] = Gradient(loss, network, optimizer, function, moved=("rewards",))
        gradient(batch)
        assert gradient.choice is not None and gradient.choice.by == "kernel", gradient.choice
