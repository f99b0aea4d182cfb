"""Advantage actor-critic for discrete actions, one or several at once, and vectors."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms.ppo import load_policy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import RMSProp

LOGGED = ("value_loss", "policy_loss", "entropy")


@dataclass
class Args(CommonArgs):
    """Synchronous advantage actor-critic for discrete actions, with vectors as observations."""

    exp_name: str = "a2c"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 7e-4
    """the learning rate of RMSProp"""
    num_envs: PositiveInt = 8
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 5
    """the number of steps per environment in a rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    gae_lambda: Fraction = 1.0
    """lambda of generalised advantage estimation; 1: returns to the end of the rollout"""
    norm_adv: bool = False
    """normalise the advantages of each rollout"""
    ent_coef: NonNegative = 0.0
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the maximum norm of the gradient"""
    rms_prop_eps: NonNegative = 1e-5
    """RMSProp's epsilon"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss. `actions` has a column for each choice."""

    obs: Any
    actions: Any
    advantages: Any
    returns: Any


def a2c_loss(agent: MLPAgent, args: Args, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a rollout, and what is logged of it in the order of `LOGGED`."""
    logits, values = agent(batch.obs)
    # Choices made at once are independent: their log probabilities and entropies add up.
    each = [part.log_softmax(dim=1) for part in logits.split(agent.nvec, dim=1)]
    entropy = torch.stack([-(part.exp() * part).sum(1).mean() for part in each]).sum()
    chosen = [part.gather(1, batch.actions[:, column, None]) for column, part in enumerate(each)]
    log_probs = torch.cat(chosen, dim=1).sum(1)

    advantages = batch.advantages
    if args.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    policy_loss = -(advantages * log_probs).mean()
    value_loss = (values - batch.returns).square().mean()
    loss = policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss
    return loss, torch.stack([value_loss, policy_loss, entropy])


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args, envs = run.args, run.envs
    actions = DiscreteActions(envs.action_space)
    agent = MLPAgent(math.prod(envs.observation_space.shape), actions.nvec)
    agent = run.keep("agent", agent.to(run.device))
    optimizer = run.keep("optimizer", RMSProp(agent, args.rms_prop_eps))
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    logits_of, values_of = Forward(agent.logits, run.device), Forward(agent.value, run.device)
    gradient = run.keep("loss", Gradient(functools.partial(a2c_loss, agent, args), agent, optimizer))

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        shape = (update.steps, args.num_envs, sum(actions.nvec))
        noise = -torch.empty(shape).exponential_().log_().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            chosen = actions.best(logits_of(obs) + noise[t])
            rollout.step(actions.for_envs(chosen), actions=chosen)

        values, advantages = gae(rollout, values_of, args.gamma, args.gae_lambda)
        returns = advantages + values
        logged = gradient(
            Batch(flat(rollout.obs), flat(rollout["actions"]), advantages.reshape(-1), returns.reshape(-1))
        )
        optimizer.step(learning_rate, args.max_grad_norm)
        if update.last_step // LOG_EVERY > update.first_step // LOG_EVERY:
            losses = dict(zip(LOGGED, logged.tolist(), strict=True))
            explained = explained_variance(values, returns)
            if explained is not None:
                losses["explained_variance"] = explained
            run.log(update.last_step, losses, learning_rate=learning_rate)


SPEC = AlgorithmSpec(
    name="a2c",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete", "multi_binary"),
    observation_spaces=("vector",),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
