"""Phasic policy gradient: the policy learns as in PPO, and now and then its network learns values too.

For the games of Procgen, which EnvPool steps.
"""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.impala import PhasicAgent
from cleanrl_worker.evaluation.policies import CategoricalPolicy
from cleanrl_worker.kit.accelerate import Floats, Gradient, take
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.normalise import RewardScaler
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, StoredRollouts, explained_variance, flat, gae_of_values
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import Adam, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.procgen import level_options

AUX_LOGGED = ("aux/kl_loss", "aux/aux_value_loss", "aux/real_value_loss")
LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclass
class Args(CommonArgs):
    """Phasic policy gradient for discrete actions and images, as in Procgen."""

    exp_name: str = "ppg_procgen"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "StarpilotEasy-v0"
    """the environment; the name of a Procgen game alone, such as `starpilot`, means its easy mode"""
    total_timesteps: PositiveInt = 25_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 64
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 256
    """the number of steps per environment in a rollout"""
    anneal_lr: bool = False
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.999
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 8
    """the number of minibatches per pass over a rollout"""
    adv_norm_fullbatch: bool = True
    """normalise the advantages of each rollout"""
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
    """end a policy phase's update early if the mean KL divergence of an epoch exceeds this; none: never"""
    n_iteration: PositiveInt = 32
    """the number of rollouts in a policy phase; the auxiliary phase learns from all of them"""
    e_policy: PositiveInt = 1
    """the number of passes over each rollout for the policy in the policy phase"""
    v_value: PositiveInt = 1
    """the number of passes over each rollout for the value in the policy phase"""
    e_auxiliary: PositiveInt = 6
    """the number of passes over the rollouts in the auxiliary phase"""
    beta_clone: NonNegative = 1.0
    """how strongly the auxiliary phase keeps the policy where it was"""
    num_aux_rollouts: PositiveInt = 4
    """the number of sequences in an auxiliary minibatch, each from one environment and rollout"""
    num_levels: NonNegativeInt = 0
    """the number of training levels of a Procgen game; 0: all levels"""
    start_level: NonNegativeInt = 0
    """the first of the training levels"""
    eval_levels: Literal["all", "training"] = "all"
    """the levels that evaluations play: all, or those of the training"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss. `actions` has a column for each choice."""

    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any


class AuxBatch(NamedTuple):
    """Steps of the auxiliary phase, with the logits that the policy had when the phase began."""

    obs: Any
    returns: Any
    logits: Any


def phase_loss(
    agent: PhasicAgent, args: Args, batch: Batch, policy: bool = True, value: bool = True
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch in the policy phase, and what is logged of it in the order of `LOGGED`.

    `policy` and `value` say what learns from it.
    """
    logits, values = agent(batch.obs)
    # Choices made at once are independent: their log probabilities and entropies add up.
    each = [part.log_softmax(dim=1) for part in logits.split(agent.nvec, dim=1)]
    entropy = torch.stack([-(part.exp() * part).sum(1).mean() for part in each]).sum()
    chosen = [part.gather(1, batch.actions[:, column, None]) for column, part in enumerate(each)]
    log_ratio = torch.cat(chosen, dim=1).sum(1) - batch.log_probs
    ratio = log_ratio.exp()
    clipped_ratio = ratio.clamp(1.0 - args.clip_coef, 1.0 + args.clip_coef)
    policy_loss = -torch.minimum(batch.advantages * ratio, batch.advantages * clipped_ratio).mean()

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
    of_policy = policy_loss - args.ent_coef * entropy
    return policy * of_policy + value * args.vf_coef * value_loss, logged


def aux_loss(agent: PhasicAgent, args: Args, batch: AuxBatch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch in the auxiliary phase, and what is logged in the order of `AUX_LOGGED`."""
    logits, values, aux_values = agent.all_outputs(batch.obs)
    kl = torch.zeros((), device=logits.device)
    sizes = list(agent.nvec)
    for new, old in zip(torch.split(logits, sizes, 1), torch.split(batch.logits, sizes, 1), strict=True):
        before = old.log_softmax(dim=1)
        kl = kl + (before.exp() * (before - new.log_softmax(dim=1))).sum(1).mean()
    aux_value_loss = 0.5 * (aux_values - batch.returns).square().mean()
    real_value_loss = 0.5 * (values - batch.returns).square().mean()
    loss = aux_value_loss + args.beta_clone * kl + real_value_loss
    return loss, torch.stack([kl, aux_value_loss, real_value_loss]).detach()


@torch.no_grad()
def look(agent: PhasicAgent, obs: NDArray[Any], device: Any) -> tuple[Floats, Floats]:
    """Logits and values of observations."""
    logits, values = agent(torch.from_numpy(obs).to(device))
    return np.asarray(logits.cpu()), np.asarray(values.cpu())


def train(run: Run[Args]) -> None:
    """Policy and auxiliary phases in turn until the step budget is used; the last rollout may be shorter."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    actions = DiscreteActions(envs.action_space)
    agent = run.keep("agent", PhasicAgent(envs.observation_space.shape, actions.nvec).to(run.device))
    optimizer = run.keep("optimizer", Adam(agent))
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    scaler = run.keep("rewards", RewardScaler(args.num_envs, args.gamma))
    stored = run.keep("stored", StoredRollouts())

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        shape = (update.steps, args.num_envs, sum(actions.nvec))
        noise = -torch.empty(shape).exponential_().log_().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            logits, seen = look(agent, obs, run.device)
            chosen = actions.best(logits + noise[t])
            rollout.step(actions.for_envs(chosen), logits=logits, actions=chosen, values=seen)
        # Games pay between 1 and some dozens: what is learned from are returns of one size.
        rollout.rewards[:] = scaler.scale(rollout.rewards, rollout.dones)

        last_values = look(agent, rollout.all_obs[-1], run.device)[1]
        final = [obs for _, _, obs in rollout.final_obs]
        final_values = look(agent, np.stack(final), run.device)[1] if final else None
        values = np.concatenate((rollout["values"], last_values[None]))
        advantages = gae_of_values(rollout, values, final_values, args.gamma, args.gae_lambda)
        returns = advantages + values[:-1]
        stored.add(obs=rollout.obs, returns=returns)
        if args.adv_norm_fullbatch and advantages.size > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
        batch = Batch(
            obs=flat(rollout.obs),
            actions=flat(rollout["actions"]),
            log_probs=actions.log_probs(flat(rollout["logits"]), flat(rollout["actions"])),
            advantages=advantages.reshape(-1),
            returns=returns.reshape(-1),
            values=values[:-1].reshape(-1),
        )
        losses = learn_in_policy_phase(run, agent, optimizer, batch, learning_rate)
        explained = explained_variance(batch.values, batch.returns)
        if explained is not None:
            losses["explained_variance"] = explained
        if len(stored) == args.n_iteration:
            losses |= learn_in_auxiliary_phase(run, agent, optimizer, stored, learning_rate)
            stored.clear()
        run.log(update.last_step, losses, learning_rate=learning_rate)


def learn_in_policy_phase(
    run: Run[Args], agent: PhasicAgent, optimizer: Adam, batch: Batch, learning_rate: float
) -> dict[str, float]:
    """Let policy and value learn from a rollout, each as often as it is to; gives what is logged."""
    args = run.args
    for epoch in range(max(args.e_policy, args.v_value)):
        loss = functools.partial(
            phase_loss, agent, args, policy=epoch < args.e_policy, value=epoch < args.v_value
        )
        gradient = Gradient(loss, agent, optimizer)
        logged = []
        for rows in run.minibatches(len(batch.obs), args.num_minibatches):
            logged.append(gradient(take(batch, rows)))
            optimizer.step(learning_rate, args.max_grad_norm)
        losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
        if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
            break
    return losses


def learn_in_auxiliary_phase(
    run: Run[Args], agent: PhasicAgent, optimizer: Adam, stored: StoredRollouts, learning_rate: float
) -> dict[str, float]:
    """Let the network learn values from all stored rollouts and keep its policy; gives what is logged."""
    args = run.args
    numbers = np.arange(stored.sequences)
    before = [look(agent, stored.take("obs", numbers[one : one + 1]), run.device)[0] for one in numbers]
    gradient = Gradient(functools.partial(aux_loss, agent, args), agent, optimizer)
    parts = math.ceil(stored.sequences / args.num_aux_rollouts)
    for _ in range(args.e_auxiliary):
        logged = []
        for chosen in run.minibatches(stored.sequences, parts):
            logits = np.concatenate([before[one] for one in chosen])
            batch = AuxBatch(stored.take("obs", chosen), stored.take("returns", chosen), logits)
            logged.append(gradient(batch))
            optimizer.step(learning_rate, args.max_grad_norm)
    return dict(zip(AUX_LOGGED, np.mean(logged, axis=0).tolist(), strict=True))


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    nvec = DiscreteActions(spaces.action_space).nvec
    agent = load_weights(PhasicAgent(spaces.observation_space.shape, nvec), weights)
    return CategoricalPolicy(agent.logits, agent.value, spaces.action_space, images=True)


SPEC = AlgorithmSpec(
    name="ppg_procgen",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete", "multi_binary"),
    observation_spaces=("image",),
    flat_observations=False,
    pool_options=level_options,
    env_backend="envpool",
    exact=False,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
