"""Q-learning from fresh rollouts with an LSTM, for pictures of which one does not tell all."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.nature import NatureLSTMQNetwork
from cleanrl_worker.evaluation.policies import RecurrentGreedyPolicy
from cleanrl_worker.kit.accelerate import Floats, Gradient, take_envs
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, gae_of_values
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import RAdam, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Q-learning from rollouts with an LSTM, for single frames of Atari games with EnvPool."""

    exp_name: str = "pqn_atari_envpool_lstm"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/Breakout-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 10_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of RAdam"""
    num_envs: PositiveInt = 8
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 128
    """the number of steps per environment in a rollout"""
    num_minibatches: PositiveInt = 4
    """the number of minibatches of whole environments per pass; at most the number of environments"""
    update_epochs: PositiveInt = 4
    """the number of passes over each rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    start_e: Fraction = 1.0
    """the exploration rate (the fraction of random actions) at the start"""
    end_e: Fraction = 0.01
    """the exploration rate at the end of its schedule"""
    exploration_fraction: Fraction = 0.1
    """the fraction of the run over which the exploration rate falls"""
    max_grad_norm: NonNegative = 0.5
    """the maximum norm of the gradient"""
    q_lambda: Fraction = 0.65
    """lambda of Q(lambda); 0: one-step returns, 1: returns to the end of the rollout"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


class Batch(NamedTuple):
    """Sequences (step, environment, …): arrays, or tensors in the loss."""

    memory: Any
    """The memory before the first step, a row for each environment."""
    starts: Any
    obs: Any
    actions: Any
    returns: Any


def pqn_loss(network: NatureLSTMQNetwork, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    all_values, _ = network(batch.obs, batch.memory, batch.starts)
    values = all_values.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
    loss = (values - batch.returns).square().mean()
    return loss, torch.stack([loss, values.mean()])


@torch.no_grad()
def look(
    network: NatureLSTMQNetwork, obs: NDArray[Any], memory: Floats, device: Any
) -> tuple[Floats, Floats]:
    """Values of the actions and the next memory for observations and the memory before them."""
    values, after = network.step(torch.from_numpy(obs).to(device), torch.from_numpy(memory).to(device))
    return np.asarray(values.cpu()), np.asarray(after.cpu())


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = NatureLSTMQNetwork(envs.observation_space.shape, num_actions)
    network = run.keep("network", network.to(run.device))
    optimizer = run.keep("optimizer", RAdam(network))
    nothing = np.zeros((args.num_envs, network.memory_size), np.float32)
    rollout = run.keep("rollout", Rollout(run, args.num_steps, initial_memory=nothing))
    gradient = run.keep("loss", Gradient(functools.partial(pqn_loss, network), network, optimizer))

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        exploring = args.exploration_fraction * args.total_timesteps
        for t, obs in enumerate(rollout.collect(update)):
            step = update.first_step + t * args.num_envs
            epsilon = linear_schedule(args.start_e, args.end_e, exploring, step)
            seen, rollout.memory[:] = look(network, obs, rollout.memory, run.device)
            actions = epsilon_greedy(np.asarray, seen, epsilon, num_actions)
            rollout.step(
                [action + first_action for action in actions], actions=actions, values=seen.max(axis=1)
            )

        # Q(lambda) mixes what was earned at each step with the best value known of where it led.
        last = look(network, rollout.all_obs[-1], rollout.memory, run.device)[0].max(axis=1)
        final_values = None
        if rollout.final_obs:
            final = np.stack([obs for _, _, obs in rollout.final_obs])
            final_values = look(network, final, np.stack(rollout.final_memory), run.device)[0].max(axis=1)
        values = np.concatenate((rollout["values"], last[None]))
        gains = gae_of_values(rollout, values, final_values, args.gamma, args.q_lambda)
        batch = Batch(
            memory=rollout.first_memory,
            starts=rollout.starts,
            obs=rollout.obs,
            actions=rollout["actions"],
            returns=values[:-1] + gains,
        )
        for _ in range(args.update_epochs):
            logged = []
            # An environment's steps stay together and in order: memory goes from each to the next.
            for indices in run.minibatches(args.num_envs, args.num_minibatches):
                logged.append(gradient(take_envs(batch, indices)))
                optimizer.step(learning_rate, args.max_grad_norm)
        losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
        run.log(update.last_step, losses, learning_rate=learning_rate, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    shape, num_actions = spaces.observation_space.shape, int(spaces.action_space.n)
    network = load_weights(NatureLSTMQNetwork(shape, num_actions), weights)
    return RecurrentGreedyPolicy(network.step, network.memory_size, spaces.action_space, args.end_e)


SPEC = AlgorithmSpec(
    name="pqn_atari_envpool_lstm",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, stack=1),
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, stack=1),
    env_backend="envpool",
    model="network",
    exact=False,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
