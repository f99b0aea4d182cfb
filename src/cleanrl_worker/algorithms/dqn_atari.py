"""Deep Q-learning for pictures and discrete actions, as in games of Atari."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cleanrl_worker.agents.q_networks import NatureQNetwork
from cleanrl_worker.evaluation.policies import GreedyPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Deep Q-learning for discrete actions, with images as observations."""

    exp_name: str = "dqn_atari"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/Breakout-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 10_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 1e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer; each frame is stored once"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 1.0
    """the fraction by which the target network moves towards the network at each update; 1: a copy"""
    target_network_frequency: PositiveInt = 1_000
    """environment steps between two updates of the target network"""
    batch_size: PositiveInt = 32
    """the number of transitions per update"""
    start_e: Fraction = 1.0
    """the exploration rate (the fraction of random actions) at the start"""
    end_e: Fraction = 0.01
    """the exploration rate at the end of its schedule"""
    exploration_fraction: Fraction = 0.1
    """the fraction of the run over which the exploration rate falls"""
    learning_starts: NonNegativeInt = 80_000
    """the number of environment steps before the first update"""
    train_frequency: PositiveInt = 4
    """environment steps between two updates"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


def dqn_loss(
    network: NatureQNetwork, target: NatureQNetwork, args: Args, batch: Sample
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        best_next = target(batch.next_obs).max(dim=1).values
        targets = batch.rewards + args.gamma * (1.0 - batch.dones) * best_next
    values = network(batch.obs).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
    loss = (values - targets).square().mean()
    return loss, torch.stack([loss, values.mean()])


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = NatureQNetwork(envs.observation_space.shape, num_actions)
    network = run.keep("network", network.to(run.device))
    optimizer = run.keep("optimizer", Adam(network))
    target = run.keep("target", Target(network, optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int64"))
    losses = run.keep("losses", Held())
    values_of = Forward(network, run.device)
    loss = functools.partial(dqn_loss, network, target.net, args)
    gradient = run.keep("loss", Gradient(loss, network, optimizer))

    exploring = args.exploration_fraction * args.total_timesteps
    for update in run.updates(every=args.num_envs):
        epsilon = linear_schedule(args.start_e, args.end_e, exploring, update.first_step)
        actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    logged = gradient(replay.sample(args.batch_size))
                    optimizer.step(args.learning_rate)
                    losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = NatureQNetwork(spaces.observation_space.shape, int(spaces.action_space.n))
    return GreedyPolicy(load_weights(network, weights), spaces.action_space, args.end_e, images=True)


SPEC = AlgorithmSpec(
    name="dqn_atari",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, args.frame_stack),
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, args.frame_stack),
    model="network",
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
