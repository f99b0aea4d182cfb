"""Environment state without pickle: how an episode began and the actions since, played again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from cleanrl_worker.kit.state import State


class EpisodeTape:
    """One environment's present episode."""

    def __init__(self) -> None:
        self.actions: list[Any] = []
        self._marks: list[int] = []
        self.number = -1
        """How many episodes came before this one."""
        self.steps_before = 0
        """How many steps those had together."""
        self._seed: int | None = None
        self._random: State | None = None
        self._total: float | None = None

    def begin(self, seed: int | None = None, random: State | None = None) -> None:
        """A new episode begins from a seed, or from the state that the generator has now."""
        self._seed, self._random = seed, random
        self.number += 1
        self.steps_before += len(self.actions)
        self.actions.clear()
        self._marks.clear()

    def mark(self) -> None:
        """The environment is reset here without a new game, as after a lost life."""
        self._marks.append(len(self.actions))

    def state(self, total: float) -> State:
        """The episode, with the reward of its actions together."""
        return {
            "total": total,
            "seed": self._seed,
            "random": self._random,
            "actions": np.array(self.actions),
            "marks": list(self._marks),
            "number": self.number,
            "steps_before": self.steps_before,
        }

    def load(self, state: State) -> None:
        self._seed, self._random = state["seed"], state["random"]
        # Checkpoints from before it was kept have none.
        self._total = state.get("total")
        actions = state["actions"]
        # Single choices were plain numbers when they were taken, and an environment may tell the difference.
        whole = actions.ndim == 1 and np.issubdtype(actions.dtype, np.integer)
        self.actions = actions.tolist() if whole else list(actions)
        self._marks = [int(mark) for mark in state.get("marks", ())]
        # A checkpoint from before episodes were counted starts counting here.
        self.number, self.steps_before = state.get("number", 0), state.get("steps_before", 0)

    def replay(self, env: gymnasium.Env[Any, Any], count: Callable[[], float] | None = None) -> float | None:
        """Bring `env` to where the episode was; gives the reward so far, as `count` has it if given.

        None when it brought another reward or an end: not everything that is random in it comes from its
        seed. What it shows does not count, which may be drawn from a generator that is restored later.
        """
        if self._random is None:
            env.reset(seed=self._seed)
        else:
            set_random_state(env, self._random)
            env.reset()
        total, marks = 0.0, set(self._marks)
        for number, action in enumerate(self.actions, 1):
            _, reward, terminated, truncated, _ = env.step(action)
            if number in marks:
                env.reset()
            elif terminated or truncated:
                return None
            total += float(reward)
        total = total if count is None else count()
        return total if self._total in (None, total) else None


def random_state(env: gymnasium.Env[Any, Any]) -> State | None:
    """The state of the environment's own generator; None when it is not one of numpy's.

    Atari games draw from a generator of their emulator, which only a seed sets.
    """
    if hasattr(env.unwrapped, "ale"):
        return None
    generator = getattr(env.unwrapped, "np_random", None)
    if isinstance(generator, np.random.Generator):
        return dict(generator.bit_generator.state)
    # The older kind, which DM Control has.
    return generator.get_state(legacy=False) if isinstance(generator, np.random.RandomState) else None


def set_random_state(env: gymnasium.Env[Any, Any], state: State) -> None:
    bits = getattr(np.random, state["bit_generator"])()
    if "has_gauss" in state:
        legacy = np.random.RandomState(bits)
        legacy.set_state(state)
        env.unwrapped.np_random = legacy  # type: ignore[assignment]
    else:
        bits.state = state
        env.unwrapped.np_random = np.random.Generator(bits)
