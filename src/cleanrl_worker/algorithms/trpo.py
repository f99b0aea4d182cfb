"""Trust region policy optimisation for vectors, with discrete or continuous actions."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import hidden_layers, init_layer
from cleanrl_worker.evaluation.policies import BoxPolicy, CategoricalPolicy
from cleanrl_worker.kit.accelerate import Forward, as_tensors
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.normalise import Normaliser
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import Adam, load_weights

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass
class Args(CommonArgs):
    """Trust region policy optimisation for vectors, with discrete or continuous actions."""

    exp_name: str = "trpo"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "InvertedPendulum-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    learning_rate: NonNegative = 1e-3
    """the learning rate of Adam for the value network; `target_kl` limits the policy's steps"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 2048
    """the number of steps per environment in a rollout"""
    gamma: Fraction = 0.99
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    target_kl: NonNegative = 0.01
    """the maximum mean KL divergence between the policy before and after an update"""
    cg_max_steps: PositiveInt = 15
    """the maximum number of conjugate gradient steps"""
    cg_damping: NonNegative = 0.1
    """the number added to the diagonal of the Fisher matrix"""
    line_search_max_iter: PositiveInt = 10
    """the maximum number of step lengths to try; if none is accepted, the policy stays unchanged"""
    line_search_shrinking_factor: Fraction = 0.8
    """the factor by which each step length is shorter than the one before"""
    num_minibatches: PositiveInt = 16
    """the number of minibatches per pass over a rollout for the value network"""
    update_epochs: NonNegativeInt = 10
    """the number of passes over each rollout for the value network"""
    norm_adv: bool = True
    """normalise the advantages of each rollout"""
    log_std_init: float = 0.0
    """the initial log standard deviation of continuous actions"""


class Agent(nn.Module):
    """Two hidden tanh layers of 64 each for a policy and for a value.

    The policy gives logits of choices, or the means of real numbers, whose spread is a parameter then.
    """

    def __init__(self, obs_size: int, action_space: Any, log_std: float = 0.0) -> None:
        super().__init__()
        continuous = isinstance(action_space, Box)
        self.nvec = [] if continuous else list(DiscreteActions(action_space).nvec)
        size = self.outputs = math.prod(action_space.shape) if continuous else sum(self.nvec)
        self.policy = nn.Sequential(*hidden_layers(obs_size, 64), init_layer(nn.Linear(64, size), gain=0.01))
        self.value = nn.Sequential(*hidden_layers(obs_size, 64), init_layer(nn.Linear(64, 1), gain=1.0))
        self.log_std = nn.Parameter(torch.full((1, size), log_std)) if continuous else None

    def values(self, obs: Tensor) -> Tensor:
        values: Tensor = self.value(obs).squeeze(-1)
        return values

    def log_probs(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Of actions, given what the policy gives for their observations."""
        if self.log_std is not None:
            distance = (actions - outputs) * (-self.log_std).exp()
            return (-0.5 * distance.square() - self.log_std - HALF_LOG_2PI).sum(1)
        # Choices made at once are independent: their log probabilities add up.
        each = [part.log_softmax(dim=1) for part in torch.split(outputs, self.nvec, dim=1)]
        chosen = [part.gather(1, actions[:, column, None]) for column, part in enumerate(each)]
        return torch.cat(chosen, dim=1).sum(1)

    def divergence(self, outputs: Tensor, before: Tensor, spread_before: Tensor | None) -> Tensor:
        """The mean KL divergence of the policy from what it was."""
        if self.log_std is not None and spread_before is not None:
            variances = (2.0 * spread_before).exp() + (before - outputs).square()
            each = self.log_std - spread_before + 0.5 * variances * (-2.0 * self.log_std).exp() - 0.5
            return each.sum(1).mean()
        parts = zip(
            torch.split(before, self.nvec, dim=1), torch.split(outputs, self.nvec, dim=1), strict=True
        )
        logs = [(old.log_softmax(dim=1), new.log_softmax(dim=1)) for old, new in parts]
        return torch.stack([(old.exp() * (old - new)).sum(1).mean() for old, new in logs]).sum()

    def policy_parameters(self) -> list[nn.Parameter]:
        """All that the natural gradient moves."""
        return [*self.policy.parameters(), *([] if self.log_std is None else [self.log_std])]


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors. `actions` has a column for each choice or number."""

    obs: Any
    actions: Any
    advantages: Any
    returns: Any


def surrogate(agent: Agent, batch: Batch, log_probs: Tensor) -> Tensor:
    """What the policy is to raise: advantages, weighted by how much likelier their actions have become."""
    ratio = (agent.log_probs(agent.policy(batch.obs), batch.actions) - log_probs).exp()
    gained: Tensor = (ratio * batch.advantages).mean()
    return gained


def value_loss(agent: Agent, obs: Tensor, returns: Tensor) -> Tensor:
    """How far the values are from the returns."""
    return (agent.values(obs) - returns).square().mean()


def conjugate_gradient(product: Callable[[Tensor], Tensor], target: Tensor, steps: int) -> Tensor:
    """The x of which a positive matrix, given by its product with vectors, makes `target`."""
    found, residual = torch.zeros_like(target), target.clone()
    direction, size = residual.clone(), residual.dot(residual)
    for _ in range(steps):
        if size < 1e-10:
            break
        moved = product(direction)
        length = size / direction.dot(moved)
        found += length * direction
        residual -= length * moved
        before, size = size, residual.dot(residual)
        direction = residual + size / before * direction
    return found


def improve_policy(agent: Agent, args: Args, batch: Batch) -> dict[str, float]:
    """Step along the natural gradient as far as the trust region allows; gives what is logged."""
    parameters = agent.policy_parameters()
    with torch.no_grad():
        before = agent.policy(batch.obs)
        spread = None if agent.log_std is None else agent.log_std.clone()
        log_probs = agent.log_probs(before, batch.actions)
    objective = surrogate(agent, batch, log_probs)
    gradient, gained = flatten(torch.autograd.grad(objective, parameters)), float(objective.detach())
    divergence = agent.divergence(agent.policy(batch.obs), before, spread)
    slopes = flatten(torch.autograd.grad(divergence, parameters, create_graph=True))

    def fisher(vector: Tensor) -> Tensor:
        found = torch.autograd.grad(slopes.dot(vector), parameters, retain_graph=True)
        return flatten(found) + args.cg_damping * vector

    direction = conjugate_gradient(fisher, gradient, args.cg_max_steps)
    curvature = float(direction.dot(fisher(direction)))
    length = math.sqrt(2.0 * args.target_kl / curvature) if curvature > 0.0 else 0.0
    start, moved, found = flatten(parameters).detach(), 0.0, gained
    with torch.no_grad():
        for _ in range(args.line_search_max_iter if length else 0):
            assign(parameters, start + length * direction)
            moved = float(agent.divergence(agent.policy(batch.obs), before, spread))
            found = float(surrogate(agent, batch, log_probs))
            if moved <= args.target_kl and found > gained:
                break
            length *= args.line_search_shrinking_factor
        else:
            assign(parameters, start)
            length, moved, found = 0.0, 0.0, gained
    return {"policy_loss": -found, "kl": moved, "step_length": length}


def flatten(tensors: Any) -> Tensor:
    """Tensors as one vector."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def assign(parameters: list[nn.Parameter], vector: Tensor) -> None:
    """The other way round, into memory that stays the same."""
    parts = torch.split(vector, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part.view_as(parameter))


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args, space = run.args, run.envs.action_space
    obs_size = math.prod(run.envs.observation_space.shape)
    choices = None if isinstance(space, Box) else DiscreteActions(space)
    agent = run.keep("agent", Agent(obs_size, space, args.log_std_init).to(run.device))
    optimizer = run.keep("optimizer", Adam(agent.value))
    normaliser = run.keep("normaliser", Normaliser(obs_size, args.num_envs, args.gamma))
    rollout = run.keep("rollout", Rollout(run, args.num_steps, normaliser))
    outputs_of, values_of = Forward(agent.policy, run.device), Forward(agent.values, run.device)

    for update in run.updates(every=args.num_envs * args.num_steps):
        shape = (update.steps, args.num_envs, agent.outputs)
        if agent.log_std is None:
            # The greatest of logits plus Gumbel noise is a sample of their distribution.
            noise = -torch.empty(shape).exponential_().log_().numpy()
        else:
            noise = torch.randn(shape).numpy() * agent.log_std.detach().exp().cpu().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            drawn = outputs_of(obs) + noise[t]
            if choices is None:
                # The environment gets what it can take; the policy answers for what it drew.
                shaped = drawn.reshape(-1, *space.shape).astype(space.dtype)
                rollout.step(list(np.clip(shaped, space.low, space.high)), actions=drawn)
            else:
                chosen = choices.best(drawn)
                rollout.step(choices.for_envs(chosen), actions=chosen)

        values, advantages = gae(rollout, values_of, args.gamma, args.gae_lambda)
        returns = (advantages + values).reshape(-1)
        weights = advantages.reshape(-1)
        if args.norm_adv and len(weights) > 1:
            weights = (weights - weights.mean()) / (weights.std() + np.float32(1e-8))
        batch = as_tensors(Batch(flat(rollout.obs), flat(rollout["actions"]), weights, returns), run.device)
        losses = improve_policy(agent, args, batch)
        for _ in range(args.update_epochs):
            for rows in run.minibatches(len(returns), args.num_minibatches):
                loss = value_loss(agent, batch.obs[rows], batch.returns[rows])
                optimizer.update(loss, args.learning_rate)
                losses["value_loss"] = float(loss.detach())
        explained = explained_variance(values.reshape(-1), returns)
        if explained is not None:
            losses["explained_variance"] = explained
        run.log(update.last_step, losses, learning_rate=args.learning_rate)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file; what it observes must be normalised as in training."""
    space = spaces.action_space
    agent = load_weights(Agent(math.prod(spaces.observation_space.shape), space), weights)
    spread = agent.log_std
    if spread is None:
        return CategoricalPolicy(agent.policy, agent.values, space)
    return BoxPolicy(lambda obs, noise: agent.policy(obs) + spread.exp() * noise, space, agent.values)


SPEC = AlgorithmSpec(
    name="trpo",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=(
        *("discrete", "multi_discrete", "multi_binary"),
        *("box", "unbounded_box", "fixed_box", "integer_box"),
    ),
    observation_spaces=("vector",),
    normalises=True,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
