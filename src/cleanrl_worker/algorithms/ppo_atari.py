"""Proximal policy optimisation for pictures and discrete actions, as in games of Atari."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.nature import NatureAgent
from cleanrl_worker.evaluation.policies import CategoricalPolicy
from cleanrl_worker.kit.accelerate import Floats, Gradient, take
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae_of_values
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import Adam, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation for discrete actions, with images as observations."""

    exp_name: str = "ppo_atari"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/Breakout-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 10_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 8
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
    clip_coef: NonNegative = 0.1
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
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss. `actions` has a column for each choice."""

    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any


def ppo_loss(agent: NatureAgent, args: Args, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logits, values = agent(batch.obs)
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


@torch.no_grad()
def look(agent: NatureAgent, obs: NDArray[Any], device: Any) -> tuple[Floats, Floats]:
    """Logits and values of observations."""
    logits, values = agent(torch.from_numpy(obs).to(device))
    return np.asarray(logits.cpu()), np.asarray(values.cpu())


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    actions = DiscreteActions(envs.action_space)
    agent = run.keep("agent", NatureAgent(envs.observation_space.shape, actions.nvec).to(run.device))
    optimizer = run.keep("optimizer", Adam(agent, eps=1e-5))
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    loss = functools.partial(ppo_loss, agent, args)
    gradient = run.keep("loss", Gradient(loss, agent, optimizer))

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        shape = (update.steps, args.num_envs, sum(actions.nvec))
        noise = -torch.empty(shape).exponential_().log_().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            logits, seen = look(agent, obs, run.device)
            chosen = actions.best(logits + noise[t])
            rollout.step(actions.for_envs(chosen), logits=logits, actions=chosen, values=seen)

        last_values = look(agent, rollout.all_obs[-1], run.device)[1]
        final = [obs for _, _, obs in rollout.final_obs]
        final_values = look(agent, np.stack(final), run.device)[1] if final else None
        values = np.concatenate((rollout["values"], last_values[None]))
        advantages = gae_of_values(rollout, values, final_values, args.gamma, args.gae_lambda)
        batch = Batch(
            obs=flat(rollout.obs),
            actions=flat(rollout["actions"]),
            log_probs=actions.log_probs(flat(rollout["logits"]), flat(rollout["actions"])),
            advantages=advantages.reshape(-1),
            returns=(advantages + values[:-1]).reshape(-1),
            values=values[:-1].reshape(-1),
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


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    nvec = DiscreteActions(spaces.action_space).nvec
    agent = load_weights(NatureAgent(spaces.observation_space.shape, nvec), weights)
    return CategoricalPolicy(agent.logits, agent.value, spaces.action_space, images=True)


SPEC = AlgorithmSpec(
    name="ppo_atari",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete", "multi_binary"),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, args.frame_stack),
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, args.frame_stack),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
