"""Proximal policy optimisation with a Transformer-XL, where one picture or vector does not tell all."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.transformer import TransformerAgent
from cleanrl_worker.evaluation.policies import RecurrentPolicy
from cleanrl_worker.kit.accelerate import Floats, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae_of_values
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import AdamW, keep_freed_memory, load_weights
from cleanrl_worker.portable.probe import describe_space
from cleanrl_worker.schemas.spaces import is_image
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation with a Transformer-XL for discrete actions, with images or vectors."""

    exp_name: str = "ppo_trxl"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "mosaic/Recall-v0"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 200_000_000
    """the budget: environment steps over all environments together"""
    init_lr: NonNegative = 2.75e-4
    """the learning rate of AdamW at the beginning"""
    final_lr: NonNegative = 1e-5
    """the learning rate at the end"""
    num_envs: PositiveInt = 32
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 512
    """the number of steps per environment in a rollout"""
    gamma: Fraction = 0.995
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 8
    """the number of minibatches per pass over a rollout"""
    update_epochs: PositiveInt = 3
    """the number of passes over each rollout"""
    norm_adv: bool = False
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.1
    """the clip range: how far the probability ratio may move from 1"""
    clip_vloss: bool = True
    """clip the value loss in the same way"""
    init_ent_coef: NonNegative = 1e-4
    """the weight of the entropy bonus at the beginning"""
    final_ent_coef: NonNegative = 1e-6
    """the weight of the entropy bonus at the end"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.25
    """the maximum norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early if the mean KL divergence of an epoch exceeds this; none: never"""
    trxl_num_layers: PositiveInt = 3
    """the number of attention layers"""
    trxl_num_heads: PositiveInt = 4
    """the number of attention heads per layer"""
    trxl_dim: PositiveInt = 384
    """the width of the layers; a multiple of the number of heads"""
    trxl_memory_length: PositiveInt = 119
    """the number of earlier steps of the episode in memory"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


def make_agent(shape: tuple[int, ...], nvec: tuple[int, ...], args: Args) -> TransformerAgent:
    """The network for observations of a shape."""
    sizes = (args.trxl_num_layers, args.trxl_num_heads, args.trxl_dim, args.trxl_memory_length)
    return TransformerAgent(shape, nvec, *sizes)


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss. `actions` has a column for each choice."""

    window: Any
    """What was remembered at each step, and how much of it there was."""
    counts: Any
    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any
    ent_coef: Any
    """One number: the weight of the entropy bonus now."""


def ppo_loss(agent: TransformerAgent, args: Args, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logits, values, _ = agent(batch.obs, batch.window, batch.counts)
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
    return policy_loss - batch.ent_coef * entropy + args.vf_coef * value_loss, logged


@torch.no_grad()
def look(
    agent: TransformerAgent, obs: NDArray[Any], memory: Floats, device: Any
) -> tuple[Floats, Floats, Floats]:
    """Logits, values and the next memory for observations and the memory before them."""
    found = agent.step(torch.from_numpy(obs).to(device), torch.from_numpy(memory).to(device))
    logits, values, after = (np.asarray(one.cpu()) for one in found)
    return logits, values, after


def windows(timeline: Floats, rows: NDArray[np.int64], length: int) -> Floats:
    """What was remembered at some steps of a rollout: of the `length` steps before each.

    `timeline` (step, environment, …) begins with what was remembered before the rollout.
    """
    steps, envs = np.divmod(rows, timeline.shape[1])
    return timeline[steps[:, None] + np.arange(length), envs[:, None]]


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    actions = DiscreteActions(envs.action_space)
    agent = make_agent(envs.observation_space.shape, actions.nvec, args)
    agent = run.keep("agent", agent.to(run.device))
    optimizer = run.keep("optimizer", AdamW(agent))
    nothing = np.zeros((args.num_envs, agent.memory_size), np.float32)
    rollout = run.keep("rollout", Rollout(run, args.num_steps, initial_memory=nothing))
    gradient = run.keep("loss", Gradient(functools.partial(ppo_loss, agent, args), agent, optimizer))
    length, item, newest = agent.length, agent.item, slice(-1 - agent.item[0] * agent.item[1], -1)

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.init_lr + (args.final_lr - args.init_lr) * update.progress
        ent_coef = args.init_ent_coef + (args.final_ent_coef - args.init_ent_coef) * update.progress
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        shape = (update.steps, args.num_envs, sum(actions.nvec))
        noise = -torch.empty(shape).exponential_().log_().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            counts = rollout.memory[:, -1].copy()
            logits, seen, rollout.memory[:] = look(agent, obs, rollout.memory, run.device)
            chosen, items = actions.best(logits + noise[t]), rollout.memory[:, newest].reshape(-1, *item)
            columns = {"logits": logits, "actions": chosen, "values": seen, "counts": counts, "items": items}
            rollout.step(actions.for_envs(chosen), **columns)

        last_values = look(agent, rollout.all_obs[-1], rollout.memory, run.device)[1]
        final_values = None
        if rollout.final_obs:
            final = np.stack([obs for _, _, obs in rollout.final_obs])
            final_values = look(agent, final, np.stack(rollout.final_memory), run.device)[1]
        values = np.concatenate((rollout["values"], last_values[None]))
        advantages = gae_of_values(rollout, values, final_values, args.gamma, args.gae_lambda)
        before = rollout.first_memory[:, :-1].reshape(-1, length, *item).swapaxes(0, 1)
        timeline = np.concatenate((before, rollout["items"]))
        logits, chosen = flat(rollout["logits"]), flat(rollout["actions"])
        log_probs = actions.log_probs(logits, chosen)
        returns = (advantages + values[:-1]).reshape(-1)
        for _ in range(args.update_epochs):
            logged = []
            for rows in run.minibatches(len(returns), args.num_minibatches):
                batch = Batch(
                    window=windows(timeline, rows, length),
                    counts=flat(rollout["counts"])[rows],
                    obs=flat(rollout.obs)[rows],
                    actions=chosen[rows],
                    log_probs=log_probs[rows],
                    advantages=advantages.reshape(-1)[rows],
                    returns=returns[rows],
                    values=values[:-1].reshape(-1)[rows],
                    ent_coef=np.array(ent_coef, np.float32),
                )
                logged.append(gradient(batch))
                optimizer.step(learning_rate, args.max_grad_norm)
            losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
            if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
                break
        explained = explained_variance(values[:-1].reshape(-1), returns)
        if explained is not None:
            losses["explained_variance"] = explained
        run.log(update.last_step, losses, learning_rate=learning_rate)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    nvec, shape = DiscreteActions(spaces.action_space).nvec, spaces.observation_space.shape
    agent = load_weights(make_agent(shape, nvec, args), weights)
    return RecurrentPolicy(agent.step, agent.memory_size, spaces.action_space, images=len(shape) == 3)


def wrap(env: Any, args: Args) -> Any:
    """Pictures are fitted, and games of Atari prepared, as for `ppo_atari_lstm`; vectors stay as they are."""
    shows_pictures = is_image(describe_space(env.observation_space))
    return wrap_atari(env, args, stack=1) if shows_pictures else env


SPEC = AlgorithmSpec(
    name="ppo_trxl",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete", "multi_binary"),
    observation_spaces=("vector", "image"),
    flat_observations=False,
    wrap=wrap,
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, stack=1),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
