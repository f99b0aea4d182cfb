"""QDagger in JAX: deep Q-learning for images that begins with what a trained policy, its teacher, would do.

As `qdagger_dqn_atari_impalacnn`: the teacher fills the replay buffer, the student learns from that offline,
then it plays itself. The teacher may be of any algorithm here, in JAX or in torch.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cleanrl_worker.agents.jax_impala import ImpalaQNetwork
from cleanrl_worker.evaluation.jax_policies import GreedyPolicy
from cleanrl_worker.evaluation.teachers import open_teacher
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.jax_backend import Target, Tree, load_tree, shapes_of
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("loss", "td_loss", "distill_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Deep Q-learning in JAX for discrete actions and images, starting from a trained teacher."""

    exp_name: str = "qdagger_dqn_atari_jax_impalacnn"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/Breakout-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 10_000_000
    """the budget: steps of the teacher, offline steps and the student's own steps together"""
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
    """steps between two updates of the target network"""
    batch_size: PositiveInt = 32
    """the number of transitions per update"""
    start_e: Fraction = 1.0
    """the exploration rate at the start of the teacher's steps and of the student's schedule"""
    end_e: Fraction = 0.01
    """the exploration rate at the end of its schedule"""
    exploration_fraction: Fraction = 0.1
    """the fraction of the run over which the student's exploration rate falls, including the offline steps"""
    learning_starts: NonNegativeInt = 80_000
    """the number of offline and own steps after which the student learns from its own"""
    train_frequency: PositiveInt = 4
    """the student's own steps between two updates; each offline step is an update"""
    teacher_policy: str = ""
    """the teacher (required): a model file, a full checkpoint, or a run by its id or folder"""
    teacher_eval_episodes: PositiveInt = 10
    """the number of episodes that the teacher plays first, to determine the return that the student should
    reach"""
    teacher_steps: PositiveInt = 500_000
    """the number of environment steps that the teacher plays to fill the replay buffer"""
    offline_steps: NonNegativeInt = 500_000
    """the number of updates from that buffer before the student's first own step"""
    temperature: Annotated[float, Bounds(minimum=1e-6)] = 1.0
    """the temperature by which the scores of teacher and student are divided; higher values soften the
    comparison"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


class Batch(NamedTuple):
    """Transitions in rows, with the teacher's score of each action and how much it counts."""

    obs: Any
    next_obs: Any
    actions: Any
    rewards: Any
    dones: Any
    teacher_scores: Any
    distill_coeff: Any


@functools.partial(jax.jit, static_argnums=0)
def action_values(network: ImpalaQNetwork, params: Any, obs: Any) -> Any:
    """What a network gives for observations, compiled once for each number of them."""
    return network.apply(params, obs)


def qdagger_loss(
    params: Any,
    network: ImpalaQNetwork,
    gamma: float,
    temperature: float,
    target_params: Any,
    batch: Batch,
) -> tuple[jax.Array, jax.Array]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    best_next = action_values(network, target_params, batch.next_obs).max(axis=1)
    targets = batch.rewards + gamma * (1.0 - batch.dones) * best_next
    all_values = action_values(network, params, batch.obs)
    values = jnp.take_along_axis(all_values, batch.actions[:, None], axis=1)[:, 0]
    td_loss = jnp.square(values - targets).mean()
    teacher = jax.nn.log_softmax(batch.teacher_scores / temperature)
    student = jax.nn.log_softmax(all_values / temperature)
    # How far the student's preferences are from the teacher's: the KL divergence, the mean over the batch.
    distill_loss = (jnp.exp(teacher) * (teacher - student)).sum(axis=1).mean()
    loss = td_loss + batch.distill_coeff * distill_loss
    return loss, jnp.stack([loss, td_loss, distill_loss, values.mean()])


@functools.partial(jax.jit, static_argnums=0)
def learn(
    network: ImpalaQNetwork,
    gamma: float,
    temperature: float,
    learning_rate: float,
    params: Any,
    moments: Any,
    target_params: Any,
    batch: Batch,
) -> tuple[Any, Any, jax.Array]:
    """Parameters and moments after one step of Adam on a minibatch, and what is logged."""
    gradient = jax.grad(qdagger_loss, has_aux=True)
    slopes, logged = gradient(params, network, gamma, temperature, target_params, batch)
    moves, moments = optax.adam(learning_rate).update(slopes, moments)
    return optax.apply_updates(params, moves), moments, logged


def distill_coeff(returns: Sequence[float], teacher_return: float) -> float:
    """How much the teacher counts beside a student whose newest ten episodes earned these returns."""
    if len(returns) < 10:
        return 1.0
    if teacher_return <= 0.0:
        # A share of it says nothing: the teacher counts as long as it is the better one.
        return float(fmean(returns) < teacher_return)
    return max(1.0 - fmean(returns) / teacher_return, 0.0)


def train(run: Run[Args]) -> None:
    """Let the teacher fill the buffer, learn from it offline, then step and update in turn."""
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = ImpalaQNetwork(num_actions)
    teacher = open_teacher(run.spec.name, args, envs)
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int32"))
    params = run.keep("network", Tree(jax.jit(network.init)(run.backend.key(), replay.obs)))
    moments = run.keep("optimizer", Tree(jax.jit(optax.adam(args.learning_rate).init)(params.value)))
    target = run.keep("target", Target(params))
    held = run.keep("teacher", Held(alone=False))
    losses = run.keep("losses", Held())
    learn_from = functools.partial(learn, network, args.gamma, args.temperature, args.learning_rate)

    def values_of(obs: Any) -> Any:
        return np.asarray(action_values(network, params.value, obs))

    def update_from(coefficient: float) -> None:
        sample = replay.sample(args.batch_size)
        batch = Batch(*sample, teacher.scores(sample.obs), np.float32(coefficient))
        params.value, moments.value, logged = learn_from(params.value, moments.value, target.value, batch)
        losses.values.update(zip(LOGGED, logged.tolist(), strict=True))

    if run.is_new:
        held.values["return"] = run.play(teacher.policy, args.teacher_eval_episodes)
        run.log(0, {}, **{"teacher/avg_episodic_return": held.values["return"]})
    exploring = args.exploration_fraction * args.total_timesteps
    own_from = args.teacher_steps + args.offline_steps
    for update in run.updates(every=args.num_envs):
        epsilon = coefficient = 1.0
        if update.first_step < args.teacher_steps:
            run.played_by = "teacher"
            epsilon = linear_schedule(args.start_e, args.end_e, args.teacher_steps, update.first_step)
            actions = epsilon_greedy(teacher.scores, replay.obs, epsilon, num_actions)
            replay.step([action + first_action for action in actions], actions)
        elif update.first_step >= own_from:
            run.played_by = ""
            if not held.values["alone"]:
                held.values["alone"] = True
                replay.begin_anew()
            before = update.first_step - args.teacher_steps
            epsilon = linear_schedule(args.start_e, args.end_e, exploring, before)
            actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
            replay.step([action + first_action for action in actions], actions)
            coefficient = distill_coeff(run.newest_returns, held.values["return"])
        run.learning()

        for step in range(update.first_step + 1, update.last_step + 1):
            if update.first_step >= args.teacher_steps:
                alone = held.values["alone"]
                if not alone or step - args.teacher_steps > args.learning_starts:
                    if not alone or step % args.train_frequency == 0:
                        update_from(coefficient)
                    if step % args.target_network_frequency == 0:
                        target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon, distill_coeff=coefficient)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = ImpalaQNetwork(int(spaces.action_space.n))
    params = load_tree(shapes_of(network, spaces.observation_space.shape), weights)
    values = functools.partial(action_values, network, params)
    return GreedyPolicy(values, spaces.action_space, args.end_e, images=True)


SPEC = AlgorithmSpec(
    name="qdagger_dqn_atari_jax_impalacnn",
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
