"""A replay buffer whose checkpoints write only what is new."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.training.state import State, decode, encode
from mosaic.contract.atomic import write_atomic

CHUNK = 10_000
"""Transitions in one immutable file beside the checkpoints."""
_FOLDER = "replay"


@dataclass(frozen=True)
class Sample:
    """Transitions drawn at random. `dones` is 1 where an episode ended by itself, 0 where it was cut off."""

    obs: NDArray[Any]
    next_obs: NDArray[Any]
    actions: NDArray[Any]
    rewards: NDArray[np.float32]
    dones: NDArray[np.float32]


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


def _chunk_name(number: int) -> str:
    return f"{_FOLDER}/chunk-{number:08d}.npz"
