"""Proximal policy optimisation in JAX whose whole rollout is one compiled function.

Network, loss and update are those of `ppo_atari_envpool_xla_jax`. The compiled loop hands the actions of each
step to the environments of the run and takes up what they show: an ordered call from compiled code.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import io_callback
from numpy.typing import NDArray

from cleanrl_worker.agents.jax_nature import NatureAgent
from cleanrl_worker.algorithms import ppo_atari_envpool_xla_jax
from cleanrl_worker.algorithms.ppo_atari_envpool_xla_jax import Learner, draw
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.rollout import Rollout
from cleanrl_worker.kit.run import Run, Update, run_algorithm


@dataclass
class Args(ppo_atari_envpool_xla_jax.Args):
    """Proximal policy optimisation in JAX with compiled rollouts, for Atari games with EnvPool."""

    exp_name: str = "ppo_atari_envpool_xla_jax_scan"
    """the name of the experiment, part of the name of the results folder"""


class Steps:
    """Steps the environments when compiled code asks for it.

    What is raised in such a call would come out of JAX as an error of its own, without its type: it waits
    here until the compiled function has returned, and no step is taken any more.
    """

    def __init__(self, rollout: Rollout, actions: DiscreteActions) -> None:
        self._rollout = rollout
        self._actions = actions
        self._each: Iterator[NDArray[Any]] = iter(())
        self._error: BaseException | None = None

    def begin(self, update: Update) -> NDArray[Any]:
        """What the first step of an update is taken on."""
        self._each = self._rollout.collect(update)
        return next(self._each)

    def take(self, actions: Any, log_probs: Any, values: Any) -> Any:
        """Take one step; gives what comes after it."""
        rollout, chosen = self._rollout, np.asarray(actions)
        if self._error is None:
            try:
                rollout.step(
                    self._actions.for_envs(chosen),
                    actions=chosen,
                    log_probs=np.asarray(log_probs),
                    values=np.asarray(values),
                )
                return next(self._each, rollout.all_obs[-1])
            except BaseException as error:
                self._error = error
        return rollout.all_obs[-1]

    def check(self) -> None:
        """Raise what was raised in a step."""
        if self._error is not None:
            raise self._error


@functools.partial(jax.jit, static_argnums=(0, 1))
def roll(agent: NatureAgent, take: Callable[..., Any], params: Any, keys: Any, obs: Any) -> jax.Array:
    """Take a step of all environments for each key; gives what the last of them shows."""

    def one(obs: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        shape = jax.ShapeDtypeStruct(obs.shape, obs.dtype)
        return io_callback(take, shape, *draw(agent, params, key, obs), ordered=True), None

    last: jax.Array = jax.lax.scan(one, obs, keys)[0]
    return last


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args = run.args
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    learner = Learner(run, rollout)
    steps = Steps(rollout, learner.actions)
    # One object for the whole run: each other one would be compiled anew.
    take = steps.take

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        keys = np.stack([run.backend.key() for _ in range(update.steps)])
        roll(learner.agent, take, learner.params.value, keys, steps.begin(update)).block_until_ready()
        steps.check()
        run.log(update.last_step, learner.learn(learning_rate), learning_rate=learning_rate)


SPEC = dataclasses.replace(
    ppo_atari_envpool_xla_jax.SPEC, name="ppo_atari_envpool_xla_jax_scan", args=Args, train=train
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
