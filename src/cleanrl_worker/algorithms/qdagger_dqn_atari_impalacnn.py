"""QDagger: deep Q-learning for images that begins with what a trained policy, its teacher, would do.

A run has three phases. The teacher plays and fills the replay buffer; the student learns from that, without
a step of its own, values and what the teacher prefers; then it plays itself. The better it becomes beside
its teacher, the less it is drawn to it. The student's network is the residual one of IMPALA.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from cleanrl_worker.agents.impala import FEATURES, ImpalaCNN
from cleanrl_worker.evaluation.policies import GreedyPolicy
from cleanrl_worker.evaluation.teachers import open_teacher
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("loss", "td_loss", "distill_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Deep Q-learning for discrete actions and images, starting from a trained policy as its teacher."""

    exp_name: str = "qdagger_dqn_atari_impalacnn"
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


class ImpalaQNetwork(nn.Module):
    """A value for each action on the `ImpalaCNN` of pictures."""

    def __init__(self, shape: Sequence[int], num_actions: int) -> None:
        super().__init__()
        self.network = ImpalaCNN(shape)
        self.network.append(nn.Linear(FEATURES, num_actions))

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation."""
        values: Tensor = self.network(obs)
        return values


class Batch(NamedTuple):
    """Transitions in rows, with the teacher's score of each action and how much it counts."""

    obs: Any
    next_obs: Any
    actions: Any
    rewards: Any
    dones: Any
    teacher_scores: Any
    distill_coeff: Any


def qdagger_loss(
    network: ImpalaQNetwork, target: ImpalaQNetwork, args: Args, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        best_next = target(batch.next_obs).max(dim=1).values
        targets = batch.rewards + args.gamma * (1.0 - batch.dones) * best_next
        teacher = (batch.teacher_scores / args.temperature).log_softmax(dim=1)
    all_values = network(batch.obs)
    values = all_values.gather(1, batch.actions.unsqueeze(1)).squeeze(1)
    td_loss = (values - targets).square().mean()
    student = (all_values / args.temperature).log_softmax(dim=1)
    # How far the student's preferences are from the teacher's: the KL divergence, the mean over the batch.
    distill_loss = (teacher.exp() * (teacher - student)).sum(dim=1).mean()
    loss = td_loss + (batch.distill_coeff * distill_loss).squeeze()
    return loss, torch.stack([loss, td_loss, distill_loss, values.mean()])


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
    keep_freed_memory()
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = ImpalaQNetwork(envs.observation_space.shape, num_actions)
    network = run.keep("network", network.to(run.device))
    optimizer = run.keep("optimizer", Adam(network))
    target = run.keep("target", Target(network, optimizer))
    teacher = open_teacher(run.spec.name, args, envs)
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int64"))
    held = run.keep("teacher", Held(alone=False))
    losses = run.keep("losses", Held())
    values_of = Forward(network, run.device)
    loss = functools.partial(qdagger_loss, network, target.net, args)
    gradient = run.keep("loss", Gradient(loss, network, optimizer))

    def learn(coefficient: float) -> None:
        sample = replay.sample(args.batch_size)
        scores = teacher.scores(sample.obs)
        logged = gradient(Batch(*sample, scores, np.array([coefficient], np.float32)))
        optimizer.step(args.learning_rate)
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
                        learn(coefficient)
                    if step % args.target_network_frequency == 0:
                        target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon, distill_coeff=coefficient)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = ImpalaQNetwork(spaces.observation_space.shape, int(spaces.action_space.n))
    return GreedyPolicy(load_weights(network, weights), spaces.action_space, args.end_e, images=True)


SPEC = AlgorithmSpec(
    name="qdagger_dqn_atari_impalacnn",
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
