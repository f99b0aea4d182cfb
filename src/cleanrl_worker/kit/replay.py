"""Replay buffers whose checkpoints write only what is new; of stacked pictures each frame is kept once."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.config.footprint import check_replay, stack_axis
from cleanrl_worker.kit.state import State, decode, encode
from cleanrl_worker.kit.video import warn
from mosaic.contract.atomic import write_atomic

if TYPE_CHECKING:
    from cleanrl_worker.kit.run import Run

CHUNK = 10_000
"""Transitions in one immutable file beside the checkpoints."""
_EPISODE = 16
"""An episode that is shorter than this on average takes a second block of memory."""
FRAME_CHUNK = 2_000
"""The same with frames, of which so many take 14 MB: the newest ones are written with each checkpoint."""
_QUICK = 1
"""Frames are packed for files at zlib's fastest: those of games take a tenth of their size, or less."""
_FOLDER = "replay"


Rows = NDArray[np.int64]


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
        ends: bool = False,
    ) -> None:
        """`ends`: remember where episodes ended, in whatever way, for returns of several steps."""
        self.capacity = capacity
        self.random = np.random.default_rng(seed)
        self._columns: dict[str, NDArray[Any]] = {
            **self._observation_columns(obs_shape, obs_dtype),
            "actions": np.zeros((capacity, *action_shape), action_dtype),
            "rewards": np.zeros(capacity, np.float32),
            "dones": np.zeros(capacity, np.float32),
            **({"ends": np.zeros(capacity, np.bool_)} if ends else {}),
        }
        self._ends = self._columns.get("ends")
        self.total = 0
        """How many transitions were ever added."""
        self._forgotten = 0
        """Those before this number do not count any more."""
        self._stored: set[int] = set()

    def _observation_columns(self, shape: tuple[int, ...], dtype: Any) -> dict[str, NDArray[Any]]:
        return {name: np.zeros((self.capacity, *shape), dtype) for name in ("obs", "next_obs")}

    @property
    def _chunk(self) -> int:
        return CHUNK

    def __len__(self) -> int:
        first, last = self._window()
        return last - first

    def forget(self) -> None:
        """Be empty; what is added is numbered on."""
        self._forgotten = self.total

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: Any,
        reward: float,
        done: bool,
        index: int = 0,
        cut_off: bool = False,
    ) -> None:
        """Keep one transition of environment `index`, in place of the oldest when the buffer is full."""
        place, columns = self.total % self.capacity, self._columns
        self._keep_observations(place, obs, next_obs, index)
        columns["actions"][place] = action
        columns["rewards"][place] = reward
        columns["dones"][place] = done
        if self._ends is not None:
            self._ends[place] = done or cut_off
        self.total += 1

    def _keep_observations(self, place: int, obs: Any, next_obs: Any, index: int) -> None:
        self._columns["obs"][place] = obs
        self._columns["next_obs"][place] = next_obs

    def sample(self, size: int) -> Sample:
        """Transitions drawn with replacement."""
        rows = self.random.integers(0, len(self), size)
        if self._forgotten:
            rows = (rows + self._window()[0]) % self.capacity
        taken = {name: self._columns[name].take(rows, axis=0) for name in ("actions", "rewards", "dones")}
        return Sample(*self.observations(rows, rows), **taken)

    def observations(self, rows: Rows, last: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        """What was seen before the transitions in some rows, and after those in the rows `last`."""
        return self._columns["obs"].take(rows, axis=0), self._columns["next_obs"].take(last, axis=0)

    def look_ahead(self, rows: Rows, steps: int, envs: int, gamma: float) -> tuple[Sample, NDArray[Any]]:
        """The transitions in some rows over several steps of their environment, of which there are `envs`:
        discounted rewards and what is seen at last, and the discount of what follows.

        There are fewer steps where the episode ended, or was cut off, or has come no further yet.
        """
        assert self._ends is not None
        columns, each = self._columns, np.arange(len(rows))
        ahead = (rows[:, None] + envs * np.arange(steps)) % self.capacity
        age = (self.total - 1 - rows) % self.capacity
        later = np.arange(1, steps)
        goes_on = (age[:, None] >= envs * later) & ~self._ends[ahead[:, :-1]]
        goes_on = np.logical_and.accumulate(goes_on, axis=1)
        number = goes_on.sum(axis=1)
        last = ahead[each, number]
        discounts = np.power(gamma, np.arange(steps + 1)).astype(np.float32)
        rewards = columns["rewards"][ahead] * discounts[:-1]
        rewards[:, 1:] *= goes_on
        found = Sample(
            *self.observations(rows, last),
            actions=columns["actions"].take(rows, axis=0),
            rewards=rewards.sum(axis=1),
            dones=columns["dones"].take(last),
        )
        return found, discounts[number + 1]

    def cut_off(self, index: int, envs: int) -> None:
        """What environment `index` does next is no longer the episode that it was in."""
        if self._ends is not None and self.total >= envs:
            self._ends[(self.total - envs + index) % self.capacity] = True

    # Checkpoints

    def store(self, folder: Path) -> None:
        """Write the full chunks that are not on disk yet."""
        (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
        for number in self._full_chunks():
            if number not in self._stored:
                rows = np.arange(number * self._chunk, (number + 1) * self._chunk) % self.capacity
                write_atomic(folder / _chunk_name(number), encode(self._content(rows)))
                self._stored.add(number)

    def state(self) -> State:
        """Where the buffer stands, the names of its chunks, and what is in none of them yet."""
        return {
            "total": self.total,
            "forgotten": self._forgotten,
            "chunks": [_chunk_name(number) for number in self._full_chunks()],
            "random": dict(self.random.bit_generator.state),
            "tail": self._content(self._tail()),
        }

    def fetch(self, folder: Path, state: State) -> None:
        """Fill the buffer from the chunks beside a checkpoint."""
        self.total = int(state["total"])
        # Checkpoints from before it could forget have none.
        self._forgotten = int(state.get("forgotten", 0))
        first, _ = self._window()
        self._stored = set(self._full_chunks())
        for number in sorted(self._stored):
            start = number * self._chunk
            keep = np.arange(max(start, first), start + self._chunk)
            self._fill(keep, decode(folder / _chunk_name(number)), keep - start)

    def load(self, state: State) -> None:
        """Take up the tail and the random state."""
        first, last = self._window()
        numbers = np.arange(max(first, last // self._chunk * self._chunk), last)
        self._fill(numbers, state["tail"], np.arange(len(numbers)))
        self.random.bit_generator.state = state["random"]

    def _content(self, rows: Rows) -> State:
        """Some rows as a file holds them."""
        return {name: column[rows] for name, column in self._columns.items()}

    def _fill(self, numbers: Rows, content: State, given: Rows) -> None:
        """Put the rows `given` of such a content where the transitions of these numbers belong."""
        for name, column in self._columns.items():
            column[numbers % self.capacity] = content[name][given]

    def _window(self) -> tuple[int, int]:
        """The numbers of the transitions that the buffer holds: from, up to."""
        return max(self._forgotten, self.total - self.capacity), self.total

    def _full_chunks(self) -> range:
        first, last = self._window()
        return range(first // self._chunk, last // self._chunk)

    def _tail(self) -> Rows:
        """The rows that are in no full chunk yet."""
        first, last = self._window()
        rows: Rows = np.arange(max(first, last // self._chunk * self._chunk), last)
        return rows % self.capacity


class FrameBuffer(ReplayBuffer):
    """A replay buffer of stacked frames which keeps each frame once.

    Observations have their frames along the first axis or along the last. A transition holds the places of
    its frames. That a stack shares frames with the one before it is seen by comparing them, so any stack
    comes back as it was given: at the start of an episode, at its end, at a truncation. A place is free again
    when the last transition has gone that has its frame.
    """

    def _observation_columns(self, shape: tuple[int, ...], dtype: Any) -> dict[str, NDArray[Any]]:
        self._axis = stack_axis(shape, str(np.dtype(dtype))) or 0
        self._depth = shape[self._axis]
        frame = shape[1:] if self._axis == 0 else shape[:-1]
        # One more frame for each end of an episode; pages that nothing was written to take no memory.
        size = self.capacity + self.capacity // _EPISODE + 2 * self._depth
        self._blocks = [np.zeros((size, *frame), dtype)]
        self._size = size
        self._used = 0
        self._free: list[int] = []
        self._last_user = np.full(size, -1, np.int64)
        self._newest: dict[int, tuple[int, list[int], NDArray[Any]]] = {}
        self._newest_bytes = np.arange(1, math.prod(shape)) % self._depth == 0
        return {"frames": np.zeros((self.capacity, 2 * self._depth), np.int32)}

    @property
    def _chunk(self) -> int:
        return FRAME_CHUNK

    def _keep_observations(self, place: int, obs: Any, next_obs: Any, index: int) -> None:
        obs, next_obs = np.ascontiguousarray(obs), np.ascontiguousarray(next_obs)
        number, oldest = self.total, self.total - self.capacity
        known, places, stack = self._newest.get(index, (-1, [], None))
        if stack is None or known < oldest:
            # Nothing is known of this environment, or its frames may have gone meanwhile.
            places, stack = [], None
        before = self._places(obs, places, stack, shifted=0)
        after = self._places(next_obs, before, obs, shifted=1)
        row = self._columns["frames"][place]
        self._last_user[before] = number
        self._last_user[after] = number
        if oldest >= 0:
            gone = {frame for frame in row.tolist() if self._last_user[frame] == oldest}
            self._free.extend(sorted(gone))
        row[: self._depth], row[self._depth :] = before, after
        self._newest[index] = number, after, next_obs.copy()

    def _places(
        self, stack: NDArray[Any], places: list[int], known: NDArray[Any] | None, shifted: int
    ) -> list[int]:
        """Where the frames of a stack lie, most likely those of a known one that many frames later."""
        frames = np.moveaxis(stack, self._axis, 0)
        if known is not None and self._goes_on(stack, known, shifted):
            return [*places[shifted:], *(self._add_frame(frame) for frame in frames[self._depth - shifted :])]
        found: list[int] = []
        for at, frame in enumerate(frames):
            # Stacks begin with copies of one frame.
            same = at > 0 and np.array_equal(frame, frames[at - 1])
            found.append(found[-1] if same else self._add_frame(frame))
        return found

    def _goes_on(self, stack: NDArray[Any], known: NDArray[Any], shifted: int) -> bool:
        """Whether a stack has the frames of a known one, without as many of the oldest as it is later."""
        if not shifted:
            return np.array_equal(stack, known)
        if self._axis == 0:
            return np.array_equal(stack[:-1], known[1:])
        # A frame later is a byte later, but for the newest: long rows of bytes compare fastest.
        same = stack.reshape(-1)[:-1] == known.reshape(-1)[1:]
        same |= self._newest_bytes
        return bool(same.all())

    def _add_frame(self, frame: NDArray[Any]) -> int:
        if self._free:
            place = self._free.pop()
        else:
            place, self._used = self._used, self._used + 1
            if place == len(self._blocks) * self._size:
                self._blocks.append(np.zeros_like(self._blocks[0]))
                self._last_user = np.append(self._last_user, np.full(self._size, -1, np.int64))
        self._blocks[place // self._size][place % self._size] = frame
        return place

    def observations(self, rows: Rows, last: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        frames = self._columns["frames"]
        return self._stacks(frames[rows, : self._depth]), self._stacks(frames[last, self._depth :])

    def _stacks(self, places: NDArray[Any]) -> NDArray[Any]:
        """The observations whose frames lie at these places."""
        if self._axis == 0:
            return self._frames(places)
        found = np.empty((len(places), *self._blocks[0].shape[1:], self._depth), self._blocks[0].dtype)
        # Frame by frame, of which each is read while it is near, takes a fifth of the time of all at once.
        for at in range(self._depth):
            found[..., at] = self._frames(places[:, at])
        return found

    def _frames(self, places: NDArray[Any]) -> NDArray[Any]:
        if len(self._blocks) == 1:
            return self._blocks[0].take(places, axis=0)
        out = np.empty((*places.shape, *self._blocks[0].shape[1:]), self._blocks[0].dtype)
        for number, block in enumerate(self._blocks):
            here = places // self._size == number
            out[here] = block.take(places[here] % self._size, axis=0)
        return out

    def _content(self, rows: Rows) -> State:
        """Rows and their frames, which are packed and numbered in the order in which they are first met."""
        columns = super()._content(rows)
        places, first, own = np.unique(columns["frames"], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        numbers = rank[own].reshape(columns["frames"].shape).astype(np.int32)
        packed = zlib.compress(self._frames(places[order]).data, _QUICK)
        return {**columns, "frames": numbers, "pictures": np.frombuffer(packed, np.uint8)}

    def _fill(self, numbers: Rows, content: State, given: Rows) -> None:
        super()._fill(numbers, content, given)
        block = self._blocks[0]
        pictures = np.frombuffer(zlib.decompress(content["pictures"].data), block.dtype)
        pictures = pictures.reshape(-1, *block.shape[1:])
        # As a file numbers them, the frames of these rows get places of their own here.
        needed, own = np.unique(content["frames"][given], return_inverse=True)
        places = np.array([self._add_frame(pictures[one]) for one in needed], np.int32)
        held = places[own].reshape(len(given), 2 * self._depth)
        self._columns["frames"][numbers % self.capacity] = held
        np.maximum.at(self._last_user, held, numbers[:, None])

    def state(self) -> State:
        return {**super().state(), "newest": {str(index): one[0] for index, one in self._newest.items()}}

    def load(self, state: State) -> None:
        super().load(state)
        for index, number in state["newest"].items():
            if number >= self._window()[0]:
                places = self._columns["frames"][number % self.capacity, self._depth :]
                self._newest[int(index)] = number, places.tolist(), self._stacks(places[None])[0]


class Replay:
    """Steps the environments of a run and remembers every transition; `obs` is what they show now."""

    def __init__(
        self,
        run: Run[Any],
        capacity: int,
        action_shape: tuple[int, ...],
        action_dtype: Any,
        ends: bool = False,
    ) -> None:
        envs, args = run.envs, run.args
        shape = envs.observation_space.shape
        self._run = run
        self.obs: NDArray[Any] = np.zeros((envs.num_envs, *shape), envs.obs_dtype)
        self._next = np.zeros_like(self.obs)
        pictures = stack_axis(shape, str(np.dtype(envs.obs_dtype))) is not None
        kind = FrameBuffer if pictures else ReplayBuffer
        if pictures and (told := check_replay(min(capacity, args.total_timesteps), shape)):
            warn(told)
        self._buffer = kind(capacity, shape, action_shape, args.seed, envs.obs_dtype, action_dtype, ends)
        self.sample, self.store, self.fetch = self._buffer.sample, self._buffer.store, self._buffer.fetch
        if run.is_new:
            envs.reset(args.seed, out=self.obs)

    def step(self, actions: list[Any], remembered: NDArray[Any] | Sequence[Any]) -> None:
        """Take an action in each environment; `remembered` are the actions as the buffer keeps them.

        A transition that ends its episode keeps the observation that the episode ended with.
        """
        obs, after = self.obs, self._next
        rewards, terminated, truncated, final_obs, _ = self._run.step(actions, after, then="update")
        for index, reward in enumerate(rewards):
            seen = final_obs[index] if index in final_obs else after[index]
            self._buffer.add(
                obs[index], seen, remembered[index], reward, terminated[index], index, truncated[index]
            )
        self.obs, self._next = after, obs

    def begin_anew(self) -> None:
        """Forget all transitions, and begin new episodes from the run's seed."""
        self._buffer.forget()
        self._run.envs.reset(self._run.args.seed, out=self.obs)

    def state(self) -> State:
        return {**self._buffer.state(), "obs": self.obs}

    def load(self, state: State) -> None:
        self._buffer.load(state)
        self.obs[:] = state["obs"]
        for index, obs in self._run.envs.begun.items():
            self.obs[index] = obs
            self._buffer.cut_off(index, len(self.obs))


def _chunk_name(number: int) -> str:
    return f"{_FOLDER}/chunk-{number:08d}.npz"
