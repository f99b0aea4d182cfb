"""Prioritised replay: what it draws how often, which returns it gives, and what its checkpoints hold."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.kit import replay as replaying
from cleanrl_worker.kit.envs import Step
from cleanrl_worker.kit.prioritised import PrioritisedReplay, SumTree
from cleanrl_worker.kit.state import decode, encode


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100])
def test_a_sum_tree_finds_what_adding_up_would_find(size: int) -> None:
    dice = np.random.default_rng(size)
    tree, numbers = SumTree(size), np.zeros(size)
    for _ in range(30):
        rows = dice.integers(0, size, 5)
        drawn = np.where(dice.random(5) < 0.3, 0.0, dice.integers(1, 9, 5)).astype(np.float64)
        # Of a row that is named twice the later number counts.
        tree.put(rows, drawn)
        for row, number in zip(rows, drawn, strict=True):
            numbers[row] = number
        np.testing.assert_array_equal(tree[:size], numbers)
        assert tree.total == numbers.sum()
        if not tree.total:
            continue
        sums = dice.random(50) * tree.total
        np.testing.assert_array_equal(tree.find(sums), np.searchsorted(np.cumsum(numbers), sums, "right"))


def test_rounding_never_finds_a_row_without_a_number() -> None:
    tree = SumTree(100)
    tree.put(np.arange(60), np.full(60, 0.1))
    assert tree.find(np.array([tree.total, np.nextafter(tree.total, 9.0)])).tolist() == [59, 59]


class Line:
    """Environments that count their steps; each ends or is cut off now and then."""

    num_envs, obs_dtype = 2, np.float32
    observation_space = SimpleNamespace(shape=(2,))

    def __init__(self) -> None:
        self.begun: dict[int, Any] = {}
        self.time = 0
        self.told: list[tuple[float, bool, bool]] = []

    def reset(self, seed: int, out: Any) -> None:
        out[:] = [[0, 0], [0, 1]]

    def step(self, actions: list[Any], out: Any, then: str = "") -> Step:
        self.time += 1
        out[:] = [[self.time, 0], [self.time, 1]]
        drawn = np.random.default_rng(self.time).random(4)
        rewards = [float(self.time), float(-self.time)]
        terminated, truncated = (drawn[:2] < 0.1).tolist(), (drawn[2:] < 0.1).tolist()
        self.told += list(zip(rewards, terminated, truncated, strict=True))
        ended = [index for index in range(2) if terminated[index] or truncated[index]]
        return Step(rewards, terminated, truncated, {index: out[index] + 0.5 for index in ended}, [])


def make(capacity: int, steps: int = 3) -> tuple[PrioritisedReplay, Line]:
    envs = Line()
    run: Any = SimpleNamespace(envs=envs, args=SimpleNamespace(seed=5), is_new=True, step=envs.step)
    return PrioritisedReplay(run, capacity, "int64", steps, gamma=0.9, alpha=0.5, eps=1e-6), envs


def play(replay: PrioritisedReplay, steps: int) -> None:
    for _ in range(steps):
        replay.step([0, 0], [0, 1])


def test_transitions_are_drawn_as_likely_as_their_priorities_and_weighed_for_it() -> None:
    replay, _ = make(capacity=16)
    play(replay, 8)
    rows, losses = np.arange(16), np.linspace(0.1, 4.0, 16).astype(np.float32)
    replay.draw(1, 1.0)
    replay.learned(rows, losses)
    chances = (losses + 1e-6) ** 0.5
    chances /= chances.sum()
    drawn = np.zeros(16)
    for _ in range(400):
        batch = replay.draw(64, beta=0.7)
        np.add.at(drawn, batch.rows, 1)
        weights = (16 * chances[batch.rows]) ** -0.7
        np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-4)
        assert batch.weights.dtype == np.float32 and batch.weights.max() == 1.0
    np.testing.assert_allclose(drawn / drawn.sum(), chances, rtol=0.05)


def test_what_is_new_has_the_greatest_priority_and_takes_the_place_of_the_oldest() -> None:
    replay, _ = make(capacity=8)
    play(replay, 4)
    assert set(np.round(replay.draw(64, 1.0).weights, 6)) == {1.0}
    replay.learned(np.arange(8), np.array([9.0, *[1e-4] * 7]))
    play(replay, 1)
    replay.draw(1, 1.0)
    # The first row had the greatest priority; what came in its place has it too, and so has the second.
    np.testing.assert_allclose(replay.state()["priorities"], [3, 3, *[0.01005] * 6], rtol=1e-2)


@pytest.mark.parametrize("capacity", [7, 40, 1000])
def test_every_transition_is_drawn_with_the_returns_of_its_episode(capacity: int) -> None:
    replay, envs = make(capacity)
    play(replay, 60)
    seen = set()
    for _ in range(80):
        batch = replay.draw(32, 0.5)
        for at in range(32):
            time, index = int(batch.obs[at][0]), int(batch.obs[at][1])
            total, discount, ahead = 0.0, 1.0, time
            while True:
                reward, terminated, truncated = envs.told[2 * ahead + index]
                total, discount, ahead = total + discount * reward, discount * 0.9, ahead + 1
                if terminated or truncated or ahead == time + 3 or ahead == 60:
                    break
            assert batch.rewards[at] == pytest.approx(total, rel=1e-5)
            assert batch.discounts[at] == pytest.approx(discount, rel=1e-6)
            assert (batch.dones[at], batch.actions[at]) == (terminated, index)
            shift = 0.5 if terminated or truncated else 0.0
            np.testing.assert_array_equal(batch.next_obs[at], [ahead + shift, index + shift])
            seen.add((time, index))
    # The last steps of each episode are drawn too, and so are the newest of all.
    newest = [(number // 2, number % 2) for number in range(max(0, 120 - capacity), 120)]
    assert seen == set(newest)


@pytest.mark.parametrize("steps", [3, 25])
def test_a_buffer_goes_on_from_a_checkpoint_to_the_byte(
    tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "CHUNK", 10)
    (replay, envs), (again, others) = make(capacity=30), make(capacity=30)
    play(replay, steps)
    batch = replay.draw(8, 0.5)
    replay.learned(batch.rows, np.linspace(0.0, 7.0, 8))
    play(replay, 2)
    replay.store(tmp_path)
    (tmp_path / "state.npz").write_bytes(encode(replay.state()))
    state = decode(tmp_path / "state.npz")
    again.fetch(tmp_path, state)
    again.load(state)
    others.time = envs.time
    for _ in range(20):
        for one in (replay, again):
            play(one, 2)
        pair = replay.draw(8, 0.5), again.draw(8, 0.5)
        for mine, theirs in zip(*pair, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for one, drawn in zip((replay, again), pair, strict=True):
            one.learned(drawn.rows, np.abs(drawn.rewards))
    assert encode(replay.state()) == encode(again.state())


def test_an_environment_that_begins_anew_ends_the_episode_that_it_was_in(tmp_path: Path) -> None:
    replay, _ = make(capacity=30)
    play(replay, 2)
    (tmp_path / "state.npz").write_bytes(encode(replay.state()))
    again, envs = make(capacity=30)
    envs.begun = {1: np.array([100.0, 1.0], np.float32)}
    state = decode(tmp_path / "state.npz")
    again.fetch(tmp_path, state)
    again.load(state)
    envs.time = 2
    play(again, 2)
    batch = again.draw(64, 0.5)
    number = {
        (time, index): batch.discounts[(batch.obs == [time, index]).all(axis=1)]
        for time in (0, 1)
        for index in (0, 1)
    }
    # The run was resumed after two steps. The first environment goes on, and its third step ends its episode.
    expected = {(0, 0): 0.729, (0, 1): 0.81, (1, 0): 0.81, (1, 1): 0.9}
    for what, discount in expected.items():
        assert len(number[what]) and np.allclose(number[what], discount), what
