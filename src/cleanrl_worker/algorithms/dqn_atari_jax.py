"""Deep Q-learning in JAX for pictures and discrete actions, as in games of Atari."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cleanrl_worker.agents.jax_nature import NatureQNetwork
from cleanrl_worker.evaluation.jax_policies import GreedyPolicy
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.jax_backend import Target, Tree, apply, load_tree, shapes_of
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Deep Q-learning in JAX for discrete actions, with images as observations."""

    exp_name: str = "dqn_atari_jax"
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


@functools.partial(jax.jit, static_argnums=0)
def action_values(network: NatureQNetwork, params: Any, obs: Any) -> Any:
    """What a network gives for observations, compiled once for each number of them."""
    return apply(network, params, obs)


def dqn_loss(
    params: Any, network: NatureQNetwork, gamma: float, target_params: Any, batch: Sample
) -> tuple[jax.Array, jax.Array]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    best_next = apply(network, target_params, batch.next_obs).max(axis=1)
    targets = batch.rewards + gamma * (1.0 - batch.dones) * best_next
    all_values = apply(network, params, batch.obs)
    values = jnp.take_along_axis(all_values, batch.actions[:, None], axis=1)[:, 0]
    loss = jnp.square(values - targets).mean()
    return loss, jnp.stack([loss, values.mean()])


@functools.partial(jax.jit, static_argnums=0)
def learn(
    network: NatureQNetwork,
    gamma: float,
    learning_rate: float,
    params: Any,
    moments: Any,
    target_params: Any,
    batch: Sample,
) -> tuple[Any, Any, jax.Array]:
    """Parameters and moments after one step of Adam on a minibatch, and what is logged."""
    slopes, logged = jax.grad(dqn_loss, has_aux=True)(params, network, gamma, target_params, batch)
    moves, moments = optax.adam(learning_rate).update(slopes, moments)
    return optax.apply_updates(params, moves), moments, logged


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = NatureQNetwork(num_actions)
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int32"))
    params = run.keep("network", Tree(jax.jit(network.init)(run.backend.key(), replay.obs)))
    moments = run.keep("optimizer", Tree(jax.jit(optax.adam(args.learning_rate).init)(params.value)))
    target = run.keep("target", Target(params))
    losses = run.keep("losses", Held())
    learn_from = functools.partial(learn, network, args.gamma, args.learning_rate)

    def values_of(obs: Any) -> Any:
        return np.asarray(action_values(network, params.value, obs))

    exploring = args.exploration_fraction * args.total_timesteps
    for update in run.updates(every=args.num_envs):
        epsilon = linear_schedule(args.start_e, args.end_e, exploring, update.first_step)
        actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    batch = replay.sample(args.batch_size)
                    params.value, moments.value, logged = learn_from(
                        params.value, moments.value, target.value, batch
                    )
                    losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = NatureQNetwork(int(spaces.action_space.n))
    params = load_tree(shapes_of(network, spaces.observation_space.shape), weights)
    values = functools.partial(action_values, network, params)
    return GreedyPolicy(values, spaces.action_space, args.end_e, images=True)


SPEC = AlgorithmSpec(
    name="dqn_atari_jax",
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
    backend="jax",
    requires=("jax",),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
