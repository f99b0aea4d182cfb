"""The loop of algorithms that learn from what they remember: act, remember, learn, again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.training.common import CommonArgs, Fraction, NonNegativeInt, PositiveInt
from cleanrl_worker.training.replay import ReplayBuffer
from cleanrl_worker.training.run import Run
from cleanrl_worker.training.state import Held, Stateful
from cleanrl_worker.training.stepping import times_due
from cleanrl_worker.training.transitions import keep_step

LOG_EVERY = 100
"""Environment steps between two points of the loss curves."""
PAUSE_EVERY = 10
"""Environment steps between two moments to report, checkpoint and stop, while there are no updates."""


@dataclass
class OffPolicyArgs(CommonArgs):
    """Arguments of every off-policy algorithm."""

    num_envs: PositiveInt = 1
    """how many environments are stepped together"""
    buffer_size: PositiveInt = 1_000_000
    """how many transitions the replay buffer holds"""
    gamma: Fraction = 0.99
    """the discount factor"""
    batch_size: PositiveInt = 256
    """how many transitions an update learns from"""
    learning_starts: NonNegativeInt = 25_000
    """how many environment steps are taken before the first update"""


class Actions(Protocol):
    """How actions lie in the buffer, and what environments take."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def for_envs(self, actions: Any) -> list[Any]:
        """One action for each environment."""


class OffPolicyLearner(Protocol):
    """What an algorithm is to this loop."""

    def act(self, obs: NDArray[np.float32], step: int) -> Any:
        """An action for each observation, as the buffer keeps it; `step` steps were taken before."""

    def charts(self) -> dict[str, float]:
        """What is logged beside the losses: nothing, unless an algorithm has more to say."""
        return {}

    def update(self, buffer: ReplayBuffer, step: int) -> dict[str, float]:
        """Learn if that is due after this step; gives the losses, none when nothing was learned."""


def learn(
    args: OffPolicyArgs, run: Run, learner: OffPolicyLearner, actions: Actions, **parts: Stateful
) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    envs, writer, watch = run.envs, run.writer, run.watch
    shape = (args.num_envs, *envs.observation_space.shape)
    obs = np.zeros((args.num_envs, math.prod(shape[1:])), dtype=np.float32)
    envs.reset(args.seed, out=obs.reshape(shape))
    buffer = ReplayBuffer(
        args.buffer_size, obs.shape[1:], actions.shape, args.seed, action_dtype=actions.dtype
    )
    loop = Held(global_step=0, obs=obs, losses={})
    run.resume(loop, buffer=buffer, **parts)
    global_step, obs, losses = (loop.values[name] for name in ("global_step", "obs", "losses"))
    next_obs = np.empty_like(obs)

    while global_step + args.num_envs <= args.total_timesteps:
        watch.enter("act")
        chosen = learner.act(obs, global_step)
        watch.enter("env")
        step = envs.step(actions.for_envs(chosen), out=next_obs.reshape(shape))
        keep_step(buffer, obs, chosen, step, next_obs)
        obs, next_obs = next_obs, obs
        if step.episodes:
            writer.add_episodes(step.episodes, global_step + args.num_envs)
        writer.flush_when_due()

        watch.enter("update")
        fresh: dict[str, float] = {}
        for number in range(global_step + 1, global_step + args.num_envs + 1):
            if number > args.learning_starts:
                fresh = learner.update(buffer, number) or fresh
            if number % LOG_EVERY == 0:
                for name, value in learner.charts().items():
                    writer.add_scalar(f"charts/{name}", value, number)
                run.add_losses(fresh or losses, number)
        losses = fresh or losses
        global_step += args.num_envs
        last = global_step + args.num_envs > args.total_timesteps
        if fresh or last or times_due(global_step, args.num_envs, PAUSE_EVERY):
            watch.enter("log")
            run.between_updates(global_step, loop, global_step=global_step, obs=obs, losses=losses)
