"""Replay in which transitions of a large loss are drawn more often, with returns of several steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.replay import Replay, Rows
from cleanrl_worker.kit.state import State

if TYPE_CHECKING:
    from cleanrl_worker.kit.run import Run

Doubles = NDArray[np.float64]


class PrioritisedSample(NamedTuple):
    """Transitions of several steps: `rewards` are discounted sums, `discounts` belong to what follows
    `next_obs`. `weights` make up for being drawn more often than others; `rows` are for `learned`."""

    obs: Any
    next_obs: Any
    actions: Any
    rewards: Any
    dones: Any
    discounts: Any
    weights: Any
    rows: Any


class SumTree:
    """Numbers that are not negative, and the sums that it takes to draw one as likely as it is large.

    Node 1 is the sum of all, node n that of 2n and 2n + 1, and the numbers are the last nodes. A sum is made
    of the two below it whenever one of them changes, so that it depends on the numbers alone.
    """

    def __init__(self, size: int) -> None:
        self._first = 1 << max(size - 1, 0).bit_length()
        self._nodes: Doubles = np.zeros(2 * self._first)

    @property
    def total(self) -> float:
        return float(self._nodes[1])

    def __getitem__(self, rows: Rows | slice) -> Doubles:
        if isinstance(rows, slice):
            return self._nodes[self._first :][rows]
        return self._nodes[self._first + rows]

    def put(self, rows: Rows, numbers: Doubles | float) -> None:
        """Change some numbers."""
        nodes = rows + self._first
        self._nodes[nodes] = numbers
        while len(nodes) and nodes[0] > 1:
            nodes = nodes >> 1
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def find(self, sums: Doubles) -> Rows:
        """The rows at which the numbers, added up from the first, come to exceed these sums."""
        nodes, left = np.ones(len(sums), np.int64), sums.copy()
        while nodes[0] < self._first:
            nodes = 2 * nodes
            before = self._nodes[nodes]
            # Rounding may leave a little too much: where nothing is on the right, the left is meant.
            right = (left >= before) & (self._nodes[nodes + 1] > 0.0)
            left = np.where(right, left - before, left)
            nodes = nodes + right
        return nodes - self._first


class PrioritisedReplay(Replay):
    """A replay buffer that draws a transition as likely as its loss to the power of `alpha`.

    What is new has the greatest priority so far. Returns are those of `steps` steps within an episode.
    """

    def __init__(
        self,
        run: Run[Any],
        capacity: int,
        action_dtype: Any,
        steps: int,
        gamma: float,
        alpha: float,
        eps: float,
    ) -> None:
        super().__init__(run, capacity, (), action_dtype, ends=True)
        self._steps, self._gamma, self._alpha, self._eps = steps, gamma, alpha, eps
        self._tree = SumTree(capacity)
        self._greatest = 1.0
        self._entered = 0
        """How many of the transitions that were ever added have a priority."""

    def draw(self, size: int, beta: float) -> PrioritisedSample:
        """Transitions drawn with replacement, one from each of as many equal parts of all priorities.

        Weights make up for their different chances to the power of `beta`; the greatest of them is 1.
        """
        buffer = self._buffer
        self._enter()
        total = self._tree.total
        rows = self._tree.find((np.arange(size) + buffer.random.random(size)) * (total / size))
        weights = (self._tree[rows] * (len(buffer) / total)) ** -beta
        found, discounts = buffer.look_ahead(rows, self._steps, len(self.obs), self._gamma)
        return PrioritisedSample(*found, discounts, (weights / weights.max()).astype(np.float32), rows)

    def learned(self, rows: Rows, losses: NDArray[Any]) -> None:
        """The losses of transitions that were drawn are their priorities from now on."""
        priorities = (np.abs(losses.astype(np.float64)) + self._eps) ** self._alpha
        self._greatest = max(self._greatest, float(priorities.max()))
        self._tree.put(rows, priorities)

    def _enter(self) -> None:
        """Give what was added since the last time its priority; it may have taken the places of others."""
        total, capacity = self._buffer.total, self._buffer.capacity
        new = np.arange(max(self._entered, total - capacity), total)
        self._tree.put(new % capacity, self._greatest)
        self._entered = total

    def state(self) -> State:
        self._enter()
        priorities = self._tree[: len(self._buffer)].copy()
        return {**super().state(), "priorities": priorities, "greatest": self._greatest}

    def load(self, state: State) -> None:
        super().load(state)
        self._tree.put(np.arange(len(state["priorities"])), state["priorities"])
        self._greatest, self._entered = float(state["greatest"]), self._buffer.total
