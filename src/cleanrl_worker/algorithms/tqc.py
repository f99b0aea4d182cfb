"""Truncated quantile critics, for continuous actions and vector observations: SAC without the optimists."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.continuous import HIDDEN, GaussianActor
from cleanrl_worker.algorithms.qr_dqn import quantile_huber_loss
from cleanrl_worker.algorithms.sac_continuous_action import Batch, Temperature, load_policy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.box_actions import BoxActions
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory

LOGGED = ("qf_values", "qf_loss")


@dataclass
class Args(CommonArgs):
    """Truncated quantile critics, for continuous actions and vector observations."""

    exp_name: str = "tqc"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """the budget: environment steps over all environments together"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together, with one update per step of each"""
    n_critics: PositiveInt = 2
    """the number of critics"""
    n_quantiles: PositiveInt = 25
    """the number of quantiles of the return per critic"""
    top_quantiles_to_drop: NonNegativeInt = 2
    """the number of highest quantiles dropped from the targets, per critic"""
    kappa: Annotated[float, Bounds(minimum=1e-6)] = 1.0
    """the error up to which the quantile Huber loss is quadratic"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 0.005
    """the fraction by which the target networks move towards the networks at each update"""
    batch_size: PositiveInt = 256
    """the number of transitions per update"""
    learning_starts: NonNegativeInt = 5_000
    """the number of random environment steps before the first update"""
    policy_lr: NonNegative = 3e-4
    """the learning rate of the policy"""
    q_lr: NonNegative = 1e-3
    """the learning rate of the critics, and of alpha if it is tuned"""
    policy_frequency: PositiveInt = 1
    """updates of the critics per update of the policy"""
    target_network_frequency: PositiveInt = 1
    """updates of the critics per update of their targets"""
    alpha: Annotated[float, Bounds(minimum=1e-10)] = 0.2
    """the weight of the entropy if it is not tuned"""
    autotune: bool = True
    """tune the weight of the entropy to reach a target entropy, minus the number of action dimensions"""


class QuantileCritic(nn.Module):
    """Quantiles of the discounted return after an action."""

    def __init__(self, obs_size: int, action_size: int, num_quantiles: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_size + action_size, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, HIDDEN)
        self.fc3 = nn.Linear(HIDDEN, num_quantiles)

    def forward(self, obs: Tensor, actions: Tensor) -> Tensor:
        hidden = torch.relu(self.fc1(torch.cat([obs, actions], dim=1)))
        quantiles: Tensor = self.fc3(torch.relu(self.fc2(hidden)))
        return quantiles


def critic_loss(
    critics: nn.ModuleList,
    actor: GaussianActor,
    target_critics: nn.ModuleList,
    temperature: Temperature,
    args: Args,
    batch: Batch,
) -> tuple[Tensor, Tensor]:
    """The loss of all critics, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        next_actions, log_probs = actor.draw(batch.next_obs, batch.noise)
        pooled = torch.cat([target(batch.next_obs, next_actions) for target in target_critics], dim=1)
        kept = pooled.shape[1] - args.n_critics * args.top_quantiles_to_drop
        lowest = pooled.sort(dim=1).values[:, :kept]
        soft_values = lowest - (temperature.log_alpha.exp() * log_probs)[:, None]
        going_on = args.gamma * (1.0 - batch.dones)
        targets = batch.rewards[:, None] + going_on[:, None] * soft_values
    quantiles = torch.cat([critic(batch.obs, batch.actions) for critic in critics], dim=1)
    fractions = (torch.arange(args.n_quantiles, device=quantiles.device) + 0.5) / args.n_quantiles
    loss = quantile_huber_loss(quantiles, targets, fractions.repeat(args.n_critics), args.kappa)
    loss = loss / quantiles.shape[1]
    return loss, torch.stack([quantiles.mean(), loss])


def actor_loss(
    actor: GaussianActor, critics: nn.ModuleList, temperature: Temperature, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of the policy; it is logged with the mean log probability of the actions."""
    actions, log_probs = actor.draw(batch.obs, batch.noise)
    values = torch.cat([critic(batch.obs, actions) for critic in critics], dim=1).mean(dim=1)
    loss = (temperature.log_alpha.exp().detach() * log_probs - values).mean()
    return loss, torch.stack([loss, log_probs.mean()])


def train(run: Run[Args]) -> None:
    """Step all environments once, then update once for each of them, until the budget is used."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    space, obs_size = BoxActions(envs.action_space), math.prod(envs.observation_space.shape)
    actor = run.keep("actor", GaussianActor(obs_size, *space.bounds).to(run.device))
    each = (QuantileCritic(obs_size, space.size, args.n_quantiles) for _ in range(args.n_critics))
    critics = run.keep("critics", nn.ModuleList(each).to(run.device))
    temperature = run.keep("alpha", Temperature(1.0 if args.autotune else args.alpha).to(run.device))
    actor_optimizer = run.keep("actor_optimizer", Adam(actor))
    critic_optimizer = run.keep("critic_optimizer", Adam(critics))
    alpha_optimizer = run.keep("alpha_optimizer", Adam(temperature))
    target_critics = run.keep("target_critics", Target(critics, critic_optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, space.shape, space.dtype))
    losses = run.keep("losses", Held())

    act = Forward(actor.act, run.device)
    written = functools.partial(critic_loss, critics, actor, target_critics.net, temperature, args)
    critic_gradient = run.keep("critic_loss", Gradient(written, critics, critic_optimizer))
    written = functools.partial(actor_loss, actor, critics, temperature)
    actor_gradient = run.keep("actor_loss", Gradient(written, actor, actor_optimizer))

    for update in run.updates(every=args.num_envs):
        if update.first_step < args.learning_starts:
            actions = space.random(args.num_envs)
        else:
            actions = act(replay.obs, space.noise(args.num_envs))
        replay.step(space.for_envs(actions), actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                sample = replay.sample(args.batch_size)
                batch = Batch(*sample, space.noise(args.batch_size))
                logged = dict(zip(LOGGED, critic_gradient(batch).tolist(), strict=True))
                critic_optimizer.step(args.q_lr)
                if step % args.policy_frequency == 0:
                    alpha = math.exp(temperature.log_alpha.item())
                    batch = Batch(*sample, space.noise(args.batch_size))
                    policy_loss, log_prob = actor_gradient(batch).tolist()
                    actor_optimizer.step(args.policy_lr)
                    alpha_loss = -alpha * (log_prob - space.size)
                    if args.autotune:
                        # Alpha times a constant: the loss is its own slope along the logarithm of alpha.
                        alpha_optimizer.gradient.fill_(alpha_loss)
                        alpha_optimizer.step(args.q_lr)
                    logged |= {"actor_loss": policy_loss, "alpha": alpha, "alpha_loss": alpha_loss}
                if step % args.target_network_frequency == 0:
                    target_critics.follow(args.tau)
                losses.values.update(logged)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values)


SPEC = AlgorithmSpec(
    name="tqc",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("box",),
    observation_spaces=("vector", "grid"),
    model="actor",
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
