"""Proximal policy optimisation that plays all players of a game at once, against and with itself.

Loop, loss and network are those of `ppo_atari`. Each player is a row of the rollout, and one policy acts for
all of them: two players of eight games are sixteen environments to it. What a player sees is the picture of
the game and, in channels of their own, which player it is.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from cleanrl_worker.agents.nature import NatureAgent
from cleanrl_worker.algorithms import ppo_atari
from cleanrl_worker.evaluation.policies import CategoricalPolicy
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.run import run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec, Misfit
from cleanrl_worker.kit.torch_backend import load_weights
from cleanrl_worker.wrappers.seats import SeatPictures


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation by self-play, for multiplayer games with images as observations."""

    exp_name: str = "ppo_pettingzoo_ma_atari"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "pettingzoo/pong_v3"
    """the multiplayer game"""
    total_timesteps: PositiveInt = 20_000_000
    """the budget: steps over all players of all games together"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 16
    """the number of players in all games together: 16 means 8 games of two"""
    num_steps: PositiveInt = 128
    """the number of steps per player in a rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 4
    """the number of minibatches per pass over a rollout"""
    update_epochs: PositiveInt = 4
    """the number of passes over each rollout"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.1
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
    """end an update early if the mean KL divergence of an epoch exceeds this; none: never"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    clip_rewards: bool = True
    """clip rewards to -1 to 1 for learning; returns are those of the game"""


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file, for all players of a game together."""
    shape = spaces.observation_space.shape
    if len(shape) != 4:
        raise Misfit("it plays multiplayer games")
    num_actions = int(spaces.action_space.nvec[0])
    agent = load_weights(NatureAgent(shape[1:], num_actions), weights)

    def logits(obs: Tensor) -> Tensor:
        return agent.logits(obs.flatten(0, 1)).view(len(obs), -1)

    def value(obs: Tensor) -> Tensor:
        # What a game is worth is told as its return is: by the mean over its players.
        return torch.mean(agent.value(obs.flatten(0, 1)).view(obs.shape[:2]), dim=1)

    return CategoricalPolicy(logits, value, spaces.action_space, images=True)


SPEC = AlgorithmSpec(
    name="ppo_pettingzoo_ma_atari",
    args=Args,
    train=ppo_atari.train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: SeatPictures(env, args.frame_stack),
    several_players=True,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
