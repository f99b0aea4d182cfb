"""Proximal policy optimisation where the environment allows only some of the actions at each step."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cleanrl_worker.algorithms.ppo import Agent, load_policy, make_agent
from cleanrl_worker.kit.accelerate import Forward, Gradient, take
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import Adam

LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")
FORBIDDEN = -1e8
"""The logit of what is not allowed: its probability is 0, and its share of the entropy stays a number."""


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation for discrete actions with action masks."""

    exp_name: str = "ppo_masked"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "mosaic/Dial-v0"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    env_backend: Literal["auto", "python"] = "auto"
    """the environment backend; only Python environments provide action masks"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 4
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 128
    """the number of steps per environment in a rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 4
    """the number of minibatches per pass over a rollout"""
    update_epochs: PositiveInt = 4
    """the number of passes over each rollout"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.2
    """the clip range: how far the probability ratio may move from 1"""
    clip_vloss: bool = True
    """clip the value loss in the same way"""
    ent_coef: NonNegative = 0.01
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the maximum norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early if the mean KL divergence of an epoch exceeds this; none: never"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss. `actions` has a column for each choice."""

    obs: Any
    allowed: Any
    """A flag for each logit."""
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any


def ppo_loss(agent: Agent, args: Args, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logits, values = agent(batch.obs)
    # No gradient reaches the logits of what was not allowed.
    logits = logits.masked_fill(~batch.allowed, FORBIDDEN)
    # Choices made at once are independent: their log probabilities and entropies add up.
    each = [part.log_softmax(dim=1) for part in logits.split(agent.nvec, dim=1)]
    entropy = torch.stack([-(part.exp() * part).sum(1).mean() for part in each]).sum()
    chosen = [part.gather(1, batch.actions[:, column, None]) for column, part in enumerate(each)]
    log_ratio = torch.cat(chosen, dim=1).sum(1) - batch.log_probs
    ratio = log_ratio.exp()

    advantages = batch.advantages
    if args.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = ratio.clamp(1.0 - args.clip_coef, 1.0 + args.clip_coef)
    policy_loss = -torch.minimum(advantages * ratio, advantages * clipped_ratio).mean()

    error = (values - batch.returns).square()
    if args.clip_vloss:
        clipped_values = batch.values + (values - batch.values).clamp(-args.clip_coef, args.clip_coef)
        error = torch.maximum(error, (clipped_values - batch.returns).square())
    value_loss = 0.5 * error.mean()

    with torch.no_grad():
        old_approx_kl = -log_ratio.mean()
        approx_kl = (ratio - 1.0).mean() + old_approx_kl
        clipfrac = (ratio != clipped_ratio).float().mean()
        logged = torch.stack([value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac])
    return policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss, logged


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args, envs = run.args, run.envs
    assert envs.masks is not None
    actions = DiscreteActions(envs.action_space)
    agent = run.keep("agent", make_agent(envs.observation_space, actions.nvec).to(run.device))
    optimizer = run.keep("optimizer", Adam(agent, eps=1e-5))
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    logits_of, values_of = Forward(agent.logits, run.device), Forward(agent.value, run.device)
    gradient = run.keep("loss", Gradient(functools.partial(ppo_loss, agent, args), agent, optimizer))

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        shape = (update.steps, args.num_envs, sum(actions.nvec))
        noise = -torch.empty(shape).exponential_().log_().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            allowed = envs.masks.copy()
            logits = np.where(allowed, logits_of(obs), np.float32(FORBIDDEN))
            chosen = actions.best(np.where(allowed, logits + noise[t], -np.inf))
            rollout.step(actions.for_envs(chosen), logits=logits, actions=chosen, allowed=allowed)

        values, advantages = gae(rollout, values_of, args.gamma, args.gae_lambda)
        batch = Batch(
            obs=flat(rollout.obs),
            allowed=flat(rollout["allowed"]),
            actions=flat(rollout["actions"]),
            log_probs=actions.log_probs(flat(rollout["logits"]), flat(rollout["actions"])),
            advantages=advantages.reshape(-1),
            returns=(advantages + values).reshape(-1),
            values=values.reshape(-1),
        )
        for _ in range(args.update_epochs):
            logged = []
            for rows in run.minibatches(len(batch.obs), args.num_minibatches):
                logged.append(gradient(take(batch, rows)))
                optimizer.step(learning_rate, args.max_grad_norm)
            losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
            if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
                break
        explained = explained_variance(batch.values, batch.returns)
        if explained is not None:
            losses["explained_variance"] = explained
        run.log(update.last_step, losses, learning_rate=learning_rate)


SPEC = AlgorithmSpec(
    name="ppo_masked",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete"),
    observation_spaces=("vector", "grid"),
    flat_observations=False,
    masks=True,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
