"""A replay buffer whose checkpoints write only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.state import State, decode, encode
from mosaic.contract.atomic import write_atomic

if TYPE_CHECKING:
    from cleanrl_worker.kit.run import Run

CHUNK = 10_000
"""Transitions in one immutable file beside the checkpoints."""
_FOLDER = "replay"


class Sample(NamedTuple):
    """Transitions drawn at random: arrays, or tensors in a loss. `dones` is 1 where an episode ended by
    itself, 0 where it was cut off."""

    obs: Any
    next_obs: Any
    actions: Any
    rewards: Any
    dones: Any


class ReplayBuffer:
    """The newest `capacity` transitions, each with its own next observation, right also at a truncation."""

    def __init__(
        self,
        capacity: int,
        obs_shape: tuple[int, ...],
        action_shape: tuple[int, ...],
        seed: int,
        obs_dtype: Any = np.float32,
        action_dtype: Any = np.float32,
    ) -> None:
        self.capacity = capacity
        self._random = np.random.default_rng(seed)
        self._columns: dict[str, NDArray[Any]] = {
            "obs": np.zeros((capacity, *obs_shape), obs_dtype),
            "next_obs": np.zeros((capacity, *obs_shape), obs_dtype),
            "actions": np.zeros((capacity, *action_shape), action_dtype),
            "rewards": np.zeros(capacity, np.float32),
            "dones": np.zeros(capacity, np.float32),
        }
        self.total = 0
        """How many transitions were ever added."""
        self._stored: set[int] = set()

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def add(self, obs: Any, next_obs: Any, action: Any, reward: float, done: bool) -> None:
        """Keep one transition, in place of the oldest when the buffer is full."""
        place, columns = self.total % self.capacity, self._columns
        columns["obs"][place] = obs
        columns["next_obs"][place] = next_obs
        columns["actions"][place] = action
        columns["rewards"][place] = reward
        columns["dones"][place] = done
        self.total += 1

    def sample(self, size: int) -> Sample:
        """Transitions drawn with replacement."""
        rows = self._random.integers(0, len(self), size)
        return Sample(**{name: column.take(rows, axis=0) for name, column in self._columns.items()})

    # Checkpoints

    def store(self, folder: Path) -> None:
        """Write the full chunks that are not on disk yet."""
        (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
        for number in self._full_chunks():
            if number not in self._stored:
                rows = np.arange(number * CHUNK, (number + 1) * CHUNK) % self.capacity
                content = {name: column[rows] for name, column in self._columns.items()}
                write_atomic(folder / _chunk_name(number), encode(content))
                self._stored.add(number)

    def state(self) -> State:
        """Where the buffer stands, the names of its chunks, and what is in none of them yet."""
        rows = self._tail()
        return {
            "total": self.total,
            "chunks": [_chunk_name(number) for number in self._full_chunks()],
            "random": dict(self._random.bit_generator.state),
            "tail": {name: column[rows] for name, column in self._columns.items()},
        }

    def fetch(self, folder: Path, state: State) -> None:
        """Fill the buffer from the chunks beside a checkpoint."""
        self.total = int(state["total"])
        first, _ = self._window()
        self._stored = set(self._full_chunks())
        for number in self._stored:
            content = decode(folder / _chunk_name(number))
            keep = np.arange(max(number * CHUNK, first), (number + 1) * CHUNK)
            for name, column in self._columns.items():
                column[keep % self.capacity] = content[name][keep - number * CHUNK]

    def load(self, state: State) -> None:
        """Take up the tail and the random state."""
        rows = self._tail()
        for name, column in self._columns.items():
            column[rows] = state["tail"][name]
        self._random.bit_generator.state = state["random"]

    def _window(self) -> tuple[int, int]:
        """The numbers of the transitions that the buffer holds: from, up to."""
        return max(0, self.total - self.capacity), self.total

    def _full_chunks(self) -> range:
        first, last = self._window()
        return range(first // CHUNK, last // CHUNK)

    def _tail(self) -> NDArray[np.int64]:
        """The rows that are in no full chunk yet."""
        first, last = self._window()
        rows: NDArray[np.int64] = np.arange(max(first, last // CHUNK * CHUNK), last) % self.capacity
        return rows


class Replay:
    """Steps the environments of a run and remembers every transition; `obs` is what they show now."""

    def __init__(
        self, run: Run[Any], capacity: int, action_shape: tuple[int, ...], action_dtype: Any
    ) -> None:
        envs, args = run.envs, run.args
        shape = envs.observation_space.shape
        self._run = run
        self.obs: NDArray[Any] = np.zeros((envs.num_envs, *shape), envs.obs_dtype)
        self._next = np.zeros_like(self.obs)
        self._buffer = ReplayBuffer(capacity, shape, action_shape, args.seed, envs.obs_dtype, action_dtype)
        self.sample = self._buffer.sample
        if run.is_new:
            envs.reset(args.seed, out=self.obs)

    def step(self, actions: list[Any], remembered: NDArray[Any] | Sequence[Any]) -> None:
        """Take an action in each environment; `remembered` are the actions as the buffer keeps them.

        A transition that ends its episode keeps the observation that the episode ended with.
        """
        obs, after = self.obs, self._next
        step = self._run.step(actions, after, then="update")
        for index, reward in enumerate(step.rewards):
            last = step.final_obs.get(index)
            seen = after[index] if last is None else last
            self._buffer.add(obs[index], seen, remembered[index], reward, step.terminated[index])
        self.obs, self._next = after, obs

    def state(self) -> State:
        return {**self._buffer.state(), "obs": self.obs}

    def load(self, state: State) -> None:
        self._buffer.load(state)
        self.obs[:] = state["obs"]
        for index, obs in self._run.envs.begun.items():
            self.obs[index] = obs

    def store(self, folder: Path) -> None:
        self._buffer.store(folder)

    def fetch(self, folder: Path, state: State) -> None:
        self._buffer.fetch(folder, state)


def _chunk_name(number: int) -> str:
    return f"{_FOLDER}/chunk-{number:08d}.npz"
