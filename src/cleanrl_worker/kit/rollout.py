"""Rollouts: what a number of steps in all environments gave, kept as it came, and the advantages in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.normalise import Normaliser
from cleanrl_worker.kit.state import State, decode, encode
from mosaic.contract.atomic import write_atomic

if TYPE_CHECKING:
    from cleanrl_worker.kit.run import Run, Update

Array = NDArray[Any]
Floats = NDArray[np.float32]
_CHUNKS = "replay"
"""The folder beside the checkpoints for what is too large for each of them."""


class Rollout:
    """The newest rollout. Arrays are (step, environment, …), `obs` has one step more.

    Observations keep the dtype and shape that the environments give them, and columns those that they are
    given. The memory is used again by the next rollout: who needs it for longer makes a copy.
    """

    def __init__(
        self,
        run: Run[Any],
        num_steps: int,
        normaliser: Normaliser | None = None,
        initial_memory: Floats | None = None,
    ) -> None:
        """`initial_memory` is what a policy with memory begins episodes with, a row for each environment."""
        envs = run.envs
        self._run = run
        self._normaliser = normaliser
        self._shape = envs.observation_space.shape
        self._obs: Array = np.zeros((num_steps + 1, envs.num_envs, *self._shape), envs.obs_dtype)
        self._raw: Array = np.zeros_like(self._obs[0])
        self._rewards: Floats = np.zeros((num_steps, envs.num_envs), np.float32)
        self._dones: Floats = np.zeros((num_steps, envs.num_envs), np.float32)
        self._starts: Floats = np.ones((num_steps + 1, envs.num_envs), np.float32)
        self._columns: dict[str, Array] = {}
        self._t = 0
        self.steps = 0
        """How many steps of each environment it has."""
        self.final_obs: list[tuple[int, int, Array]] = []
        """Step, environment and last observation of each episode that was cut off, not ended."""
        self._initial_memory = initial_memory
        self.memory: Floats = np.zeros((envs.num_envs, 0), np.float32)
        """The policy's memory before the next step. Who acts brings it up to date before calling `step`,
        which lets it begin anew where an episode has ended."""
        if initial_memory is not None:
            self.memory = initial_memory.copy()
        self.first_memory = self.memory.copy()
        """The memory before the first step of the rollout."""
        self.final_memory: list[Floats] = []
        """The memory at each of `final_obs`."""
        if run.is_new:
            first = self._raw if normaliser else self._obs[0]
            envs.reset(run.args.seed, out=first)
            if normaliser is not None:
                normaliser.observe(first, out=self._obs[0])

    def collect(self, update: Update) -> Iterator[Array]:
        """The observations of each step of an update; `step` must be called once for each of them."""
        self._obs[0], self._starts[0] = self._obs[self.steps], self._starts[self.steps]
        self.steps, self.final_obs, self.final_memory = update.steps, [], []
        self.first_memory[:] = self.memory
        self._dones[:], self._starts[1:] = 0.0, 0.0
        for self._t in range(update.steps):
            yield self._obs[self._t]
        if self._normaliser is not None:
            self._rewards[: self.steps] = self._normaliser.scale(self.rewards, self.dones)
        self._run.learning()

    def step(self, actions: Any, /, **columns: Any) -> None:
        """Take an action in each environment; `columns` are kept beside what that gives."""
        t, obs = self._t, self._obs
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = np.zeros(
                    (len(self._rewards), *np.shape(values)), np.asarray(values).dtype
                )
            self._columns[name][t] = values
        raw = obs[t + 1] if self._normaliser is None else self._raw
        step = self._run.step(actions, raw)
        self._rewards[t] = step.rewards
        for index, last in step.final_obs.items():
            self._dones[t, index] = self._starts[t + 1, index] = 1.0
            if not step.terminated[index]:
                seen = last.astype(obs.dtype)
                self.final_obs.append((t, index, self._normaliser.peek(seen) if self._normaliser else seen))
                self.final_memory.append(self.memory[index].copy())
            if self._initial_memory is not None:
                self.memory[index] = self._initial_memory[index]
        if self._normaliser is not None:
            self._normaliser.observe(raw, out=obs[t + 1])

    @property
    def obs(self) -> Array:
        """What each step was taken on."""
        return self._obs[: self.steps]

    @property
    def all_obs(self) -> Array:
        """The same, and what came after the last step."""
        return self._obs[: self.steps + 1]

    @property
    def rewards(self) -> Floats:
        return self._rewards[: self.steps]

    @property
    def dones(self) -> Floats:
        """1 where an episode ended or was cut off with this step."""
        return self._dones[: self.steps]

    @property
    def starts(self) -> Floats:
        """1 where a step is the first of an episode."""
        return self._starts[: self.steps]

    def __getitem__(self, name: str) -> Array:
        """A column that was given to `step`."""
        return self._columns[name][: self.steps]

    def state(self) -> State:
        held = {"obs": self._obs[self.steps], "starts": self._starts[self.steps]}
        return held if self._initial_memory is None else {**held, "memory": self.memory}

    def load(self, state: State) -> None:
        self._obs[0], self._starts[0] = state["obs"], state["starts"]
        if self._initial_memory is not None:
            self.memory[:] = state["memory"]
        for index, obs in self._run.envs.begun.items():
            self._obs[0][index] = self._normaliser.peek(obs) if self._normaliser else obs
            self._starts[0][index] = 1.0
            if self._initial_memory is not None:
                self.memory[index] = self._initial_memory[index]


class StoredRollouts:
    """Whole rollouts that wait to be learned from together, each in one file beside the checkpoints.

    A sequence is what one environment did in one of them; their numbers go from 0, rollout by rollout.
    """

    def __init__(self) -> None:
        self._rollouts: list[dict[str, Array]] = []
        self._first = 0
        """How many there were before those that are here."""
        self._on_disk: set[int] = set()

    def add(self, **columns: Array) -> None:
        """Keep copies of the columns of a rollout, (step, environment, …)."""
        self._rollouts.append({name: column.copy() for name, column in columns.items()})

    def clear(self) -> None:
        """Begin anew."""
        self._first += len(self._rollouts)
        self._rollouts.clear()

    def __len__(self) -> int:
        return len(self._rollouts)

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return len(self) * next(iter(self._rollouts[0].values())).shape[1] if self._rollouts else 0

    def take(self, name: str, numbers: NDArray[np.int64]) -> Array:
        """The rows of a column in some sequences, one sequence after the other."""
        each = self.sequences // len(self)
        return np.concatenate([self._rollouts[one // each][name][:, one % each] for one in numbers.tolist()])

    def _numbers(self) -> range:
        return range(self._first, self._first + len(self._rollouts))

    def store(self, folder: Path) -> None:
        """Write those that are not on disk yet."""
        (folder / _CHUNKS).mkdir(parents=True, exist_ok=True)
        for number, rollout in zip(self._numbers(), self._rollouts, strict=True):
            if number not in self._on_disk:
                write_atomic(folder / _chunk_name(number), encode(rollout))
                self._on_disk.add(number)

    def state(self) -> State:
        return {"first": self._first, "chunks": [_chunk_name(number) for number in self._numbers()]}

    def fetch(self, folder: Path, state: State) -> None:
        """Read the rollouts beside a checkpoint."""
        self._rollouts = [decode(folder / name) for name in state["chunks"]]

    def load(self, state: State) -> None:
        self._first = int(state["first"])
        self._on_disk = set(self._numbers())


def _chunk_name(number: int) -> str:
    return f"{_CHUNKS}/chunk-{number:08d}.npz"


def flat(array: Array) -> Array:
    """(step, environment, …) as rows of single steps."""
    return array.reshape(-1, *array.shape[2:])


def gae(
    rollout: Rollout, values_of: Callable[[Array], Floats], gamma: float, gae_lambda: float
) -> tuple[Floats, Floats]:
    """Values and generalised advantages of each step, (step, environment).

    A step that ends its episode has no future; one that is cut off is worth what was still to come. No sum
    runs past the end of an episode. A lambda of 0 looks one step ahead, 1 to the end of the rollout.
    """
    steps, num_envs = rollout.rewards.shape
    values = values_of(flat(rollout.all_obs)).reshape(steps + 1, num_envs)
    final = values_of(np.stack([obs for _, _, obs in rollout.final_obs])) if rollout.final_obs else None
    return values[:-1], gae_of_values(rollout, values, final, gamma, gae_lambda)


def gae_of_values(
    rollout: Rollout, values: Floats, final_values: Floats | None, gamma: float, gae_lambda: float
) -> Floats:
    """The advantages of `gae`, from values that are known: those of `all_obs` and those of `final_obs`."""
    next_values = values[1:] * (1.0 - rollout.dones)
    if rollout.final_obs:
        at, indices, _ = zip(*rollout.final_obs, strict=True)
        next_values[list(at), list(indices)] = final_values
    return advantages(rollout.rewards, rollout.dones, values[:-1], next_values, gamma, gae_lambda)


def advantages(
    rewards: Floats, dones: Floats, values: Floats, next_values: Floats, gamma: float, gae_lambda: float
) -> Floats:
    """Generalised advantages; `next_values` is 0 after a terminal step, no sum runs past an episode's end."""
    deltas = rewards + gamma * next_values - values
    decay = gamma * gae_lambda * (1.0 - dones)
    found = np.zeros_like(rewards)
    running = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        running = deltas[t] + decay[t] * running
        found[t] = running
    return found


def explained_variance(values: Floats, returns: Floats) -> float | None:
    """Which share of the returns' variance the values explain; None when the returns are all the same."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance > 0.0 else None
