"""Twin delayed DDPG in JAX, for continuous actions and vector observations."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cleanrl_worker.agents.jax_continuous import Actor, QNetwork, act, actor_policy, make_actor
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.box_actions import NumpyBoxActions
from cleanrl_worker.kit.jax_backend import Target, Tree, apply
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec, split_model
from cleanrl_worker.kit.state import Held

LOGGED = ("qf1_values", "qf2_values", "qf1_loss", "qf2_loss")
QF = ("qf1", "qf2")
"""The Q networks, by name."""
MODEL = {"0": "actor", "1": "critics.qf1", "2": "critics.qf2"}
"""As Flax writes a list."""


@dataclass
class Args(CommonArgs):
    """Twin delayed DDPG in JAX, for continuous actions and vector observations."""

    exp_name: str = "td3_continuous_action_jax"
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
    policy_noise: NonNegative = 0.2
    """target policy smoothing: the noise on the target policy's actions, as a fraction of half their range"""
    noise_clip: NonNegative = 0.5
    """the maximum noise of target policy smoothing, as a fraction of half the action's range"""
    exploration_noise: NonNegative = 0.1
    """the exploration noise on actions, as a fraction of half the action's range"""
    learning_starts: NonNegativeInt = 25_000
    """the number of random environment steps before the first update"""
    policy_frequency: PositiveInt = 2
    """updates of the Q networks per update of the policy and the targets"""


class Smoothing(NamedTuple):
    """Target policy smoothing: the noise on the target policy's actions, as shares of half their range."""

    noise: float
    clip: float


def critic_loss(
    critics: Any,
    actor: Actor,
    gamma: float,
    smoothing: Smoothing,
    target_actor: Any,
    target_critics: Any,
    batch: Sample,
    key: Any,
) -> tuple[jax.Array, jax.Array]:
    """The loss of both Q networks, and what is logged of it in the order of `LOGGED`."""
    noise = smoothing.noise * jax.random.normal(key, batch.actions.shape)
    noise = jnp.clip(noise, -smoothing.clip, smoothing.clip) * actor.action_scale
    next_actions = apply(actor, target_actor, batch.next_obs) + noise
    next_actions = jnp.clip(next_actions, jnp.array(actor.low), jnp.array(actor.high))
    first, second = (apply(QNetwork(), target_critics[name], batch.next_obs, next_actions) for name in QF)
    targets = batch.rewards + (1.0 - batch.dones) * gamma * jnp.minimum(first, second)
    values = [apply(QNetwork(), critics[name], batch.obs, batch.actions) for name in QF]
    losses = [jnp.square(value - targets).mean() for value in values]
    return losses[0] + losses[1], jnp.stack([value.mean() for value in values] + losses)


def actor_loss(params: Any, actor: Actor, critic_params: Any, batch: Sample) -> Any:
    """The loss of the policy: it goes up the first Q network."""
    return -apply(QNetwork(), critic_params, batch.obs, apply(actor, params, batch.obs)).mean()


@functools.partial(jax.jit, static_argnums=0)
def learn_values(
    actor: Actor,
    gamma: float,
    learning_rate: float,
    smoothing: Smoothing,
    critics: Any,
    moments: Any,
    targets: tuple[Any, Any],
    batch: Sample,
    key: Any,
) -> tuple[Any, Any, jax.Array]:
    """The Q networks and their moments after one step of Adam on a minibatch, and what is logged."""
    gradient = jax.grad(critic_loss, has_aux=True)
    slopes, logged = gradient(critics, actor, gamma, smoothing, *targets, batch, key)
    moves, moments = optax.adam(learning_rate).update(slopes, moments)
    return optax.apply_updates(critics, moves), moments, logged


@functools.partial(jax.jit, static_argnums=0)
def learn_policy(
    actor: Actor,
    learning_rate: float,
    tau: float,
    params: Any,
    moments: Any,
    critics: Any,
    targets: tuple[Any, Any],
    batch: Sample,
) -> tuple[Any, Any, tuple[Any, Any], jax.Array]:
    """The policy and its moments after one step of Adam, the targets after they followed, and the loss."""
    loss, slopes = jax.value_and_grad(actor_loss)(params, actor, critics["qf1"], batch)
    moves, moments = optax.adam(learning_rate).update(slopes, moments)
    params = optax.apply_updates(params, moves)
    return params, moments, optax.incremental_update((params, critics), targets, tau), loss


def train(run: Run[Args]) -> None:
    """Step all environments once, then update once for each of them, until the budget is used."""
    args, envs, backend = run.args, run.envs, run.backend
    space = NumpyBoxActions(envs.action_space)
    actor, adam = make_actor(space), optax.adam(args.learning_rate)
    replay = run.keep("replay", Replay(run, args.buffer_size, space.shape, space.dtype))
    obs, no_actions = replay.obs, np.zeros((args.num_envs, space.size), np.float32)
    policy = run.keep("actor", Tree(jax.jit(actor.init)(backend.key(), obs)))
    init = jax.jit(QNetwork().init)
    critics = run.keep("critics", Tree({name: init(backend.key(), obs, no_actions) for name in QF}))
    policy_moments = run.keep("actor_optimizer", Tree(jax.jit(adam.init)(policy.value)))
    critic_moments = run.keep("critic_optimizer", Tree(jax.jit(adam.init)(critics.value)))
    target_policy = run.keep("target_actor", Target(policy))
    target_critics = run.keep("target_critics", Target(critics))
    losses = run.keep("losses", Held())
    smoothing = Smoothing(args.policy_noise, args.noise_clip)

    for update in run.updates(every=args.num_envs):
        if update.first_step < args.learning_starts:
            actions = space.random(args.num_envs)
        else:
            known = np.asarray(act(actor, policy.value, replay.obs))
            actions = space.with_noise(known, args.exploration_noise)
        replay.step(space.for_envs(actions), actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                batch = replay.sample(args.batch_size)
                targets = target_policy.value, target_critics.value
                critics.value, critic_moments.value, logged = learn_values(
                    actor,
                    args.gamma,
                    args.learning_rate,
                    smoothing,
                    critics.value,
                    critic_moments.value,
                    targets,
                    batch,
                    backend.key(),
                )
                losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                losses.values["qf_loss"] = (losses.values["qf1_loss"] + losses.values["qf2_loss"]) / 2.0
                if step % args.policy_frequency == 0:
                    policy.value, policy_moments.value, targets, loss = learn_policy(
                        actor,
                        args.learning_rate,
                        args.tau,
                        policy.value,
                        policy_moments.value,
                        critics.value,
                        targets,
                        batch,
                    )
                    target_policy.value, target_critics.value = targets
                    losses.values["actor_loss"] = float(loss)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    split_model(MODEL, weights)
    return actor_policy(weights["0"], weights["1"], spaces, args.exploration_noise)


SPEC = AlgorithmSpec(
    name="td3_continuous_action_jax",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("box",),
    observation_spaces=("vector", "grid"),
    model=MODEL,
    backend="jax",
    requires=("jax",),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
