"""Deep deterministic policy gradient, for continuous actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cleanrl_worker.accelerated.deterministic import DeterministicKernel
from cleanrl_worker.accelerated.layers import on_cpu
from cleanrl_worker.agents.continuous import Actor, QNetwork
from cleanrl_worker.evaluation.policies import actor_policy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.box_actions import BoxActions
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec, split_model
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target

LOGGED = ("qf1_values", "qf1_loss")
MODEL = ("actor", "critics.0")


@dataclass
class Args(CommonArgs):
    """Deep deterministic policy gradient, for continuous actions and vector observations."""

    exp_name: str = "ddpg_continuous_action"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 3e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together, with one update per step of each"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 0.005
    """the fraction by which the target networks move towards the networks at each update"""
    batch_size: PositiveInt = 256
    """the number of transitions per update"""
    exploration_noise: NonNegative = 0.1
    """the exploration noise on actions, as a fraction of half the action's range"""
    learning_starts: NonNegativeInt = 25_000
    """the number of random environment steps before the first update"""
    policy_frequency: PositiveInt = 2
    """updates of the Q network per update of the policy and the targets"""


def critic_loss(
    critics: nn.ModuleList, target_actor: Actor, target_critics: nn.ModuleList, args: Args, batch: Sample
) -> tuple[Tensor, Tensor]:
    """The loss of the Q network, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        next_values = target_critics[0](batch.next_obs, target_actor(batch.next_obs))
        targets = batch.rewards + (1.0 - batch.dones) * args.gamma * next_values
    values = critics[0](batch.obs, batch.actions)
    loss = (values - targets).square().mean()
    return loss, torch.stack([values.mean(), loss])


def actor_loss(actor: Actor, critics: nn.ModuleList, batch: Sample) -> tuple[Tensor, Tensor]:
    """The loss of the policy: it goes up the Q network."""
    loss = -critics[0](batch.obs, actor(batch.obs)).mean()
    return loss, loss.reshape(1)


def train(run: Run[Args]) -> None:
    """Step all environments once, then update once for each of them, until the budget is used."""
    args, envs = run.args, run.envs
    space, obs_size = BoxActions(envs.action_space), math.prod(envs.observation_space.shape)
    # One row of bounds, as in the model files of CleanRL's script; those of TD3 and SAC have no rows.
    low, high = (bound.unsqueeze(0) for bound in space.bounds)
    actor = run.keep("actor", Actor(obs_size, low, high).to(run.device))
    critics = nn.ModuleList([QNetwork(obs_size, space.size)]).to(run.device)
    critics = run.keep("critics", critics)
    actor_optimizer = run.keep("actor_optimizer", Adam(actor))
    critic_optimizer = run.keep("critic_optimizer", Adam(critics))
    target_actor = run.keep("target_actor", Target(actor, actor_optimizer))
    target_critics = run.keep("target_critics", Target(critics, critic_optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, space.shape, space.dtype))
    losses = run.keep("losses", Held())

    kernel, optimizers = None, (actor_optimizer, critic_optimizer)
    if args.kernels and on_cpu(actor, critics):
        kernel = DeterministicKernel(actor, critics, target_actor, target_critics, optimizers, args)
    act = Forward(actor, run.device, kernel and kernel.act)
    critic_gradient = Gradient(
        functools.partial(critic_loss, critics, target_actor.net, target_critics.net, args),
        critics,
        critic_optimizer,
        kernel and kernel.critic_gradient,
        moved=("rewards", "dones"),
        others=[target_actor.weights, target_critics.weights],
    )
    actor_gradient = Gradient(
        functools.partial(actor_loss, actor, critics),
        actor,
        actor_optimizer,
        kernel and kernel.actor_gradient,
        others=[critic_optimizer.weights],
    )
    run.keep("critic_loss", critic_gradient)
    run.keep("actor_loss", actor_gradient)

    for update in run.updates(every=args.num_envs):
        if update.first_step < args.learning_starts:
            actions = space.random(args.num_envs)
        else:
            actions = space.with_noise(act(replay.obs), args.exploration_noise)
        replay.step(space.for_envs(actions), actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                batch = replay.sample(args.batch_size)
                losses.values.update(zip(LOGGED, critic_gradient(batch).tolist(), strict=True))
                critic_optimizer.step(args.learning_rate)
                if step % args.policy_frequency == 0:
                    losses.values["actor_loss"] = float(actor_gradient(batch)[0])
                    actor_optimizer.step(args.learning_rate)
                    target_actor.follow(args.tau)
                    target_critics.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    split_model(MODEL, weights)
    return actor_policy(weights[0], weights[1], spaces, args.exploration_noise)


SPEC = AlgorithmSpec(
    name="ddpg_continuous_action",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("box",),
    observation_spaces=("vector", "grid"),
    model=MODEL,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
