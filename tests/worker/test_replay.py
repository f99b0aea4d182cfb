"""The replay buffer: what it keeps, what it draws, and what its checkpoints hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cleanrl_worker.checkpoint_files import list_checkpoints, read_origin
from cleanrl_worker.kit import replay
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.checkpoints import Checkpoints
from cleanrl_worker.kit.replay import ReplayBuffer
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.training.writer import RunWriter


def make(capacity: int = 25) -> ReplayBuffer:
    return ReplayBuffer(capacity, (2,), (), seed=3, action_dtype=np.int64)


def fill(buffer: ReplayBuffer, count: int) -> None:
    for _ in range(count):
        number = buffer.total
        buffer.add([number, 0], [number, 1], number, float(number), number % 7 == 0)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "CHUNK", 10)


def test_samples_come_from_the_newest_transitions_whole() -> None:
    buffer = make()
    fill(buffer, 60)
    sample = buffer.sample(500)
    numbers = sample.actions
    assert set(numbers) == set(range(35, 60))
    np.testing.assert_array_equal(sample.obs[:, 0], numbers)
    np.testing.assert_array_equal(sample.next_obs[:, 0], numbers)
    np.testing.assert_array_equal(sample.next_obs[:, 1], 1)
    np.testing.assert_array_equal(sample.rewards, numbers)
    np.testing.assert_array_equal(sample.dones, numbers % 7 == 0)


@pytest.mark.parametrize("saves", [[0], [5], [10], [24, 31], [25, 60, 61, 118], [130]])
def test_a_buffer_comes_back_as_it_was_from_any_of_its_last_two_checkpoints(
    tmp_path: Path, saves: list[int]
) -> None:
    buffer = make()
    kept: list[tuple[Path, list[np.ndarray]]] = []
    for total in saves:
        fill(buffer, total - buffer.total)
        buffer.store(tmp_path)
        path = tmp_path / f"{total}.npz"
        path.write_bytes(encode(buffer.state()))
        copy = make()
        if total:
            draws = [np.array(buffer.sample(8).actions) for _ in range(3)]
            buffer.load(decode(path))
            kept.append((path, draws))
        assert len(copy) == 0
    for path, draws in reversed(kept[-2:]):
        copy, state = make(), decode(path)
        copy.fetch(tmp_path, state)
        copy.load(state)
        assert copy.total == state["total"]
        for expected in draws:
            np.testing.assert_array_equal(copy.sample(8).actions, expected)


def test_only_new_chunks_are_written(tmp_path: Path) -> None:
    buffer = make()
    fill(buffer, 20)
    buffer.store(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "replay").iterdir()}
    fill(buffer, 10)
    buffer.store(tmp_path)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "replay").iterdir()}
    assert len(before) == 2
    assert before.items() < after.items()


def test_the_last_two_checkpoints_and_the_best_stay_with_their_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    buffer, args = make(), CommonArgs()
    checkpoints = Checkpoints("dqn", args)
    parts = {"buffer": buffer}
    scores = {1: 5.0, 2: 5.0, 3: 7.0, 4: 6.0, 5: float("nan"), 6: 6.5, 7: 7.0}
    with RunWriter(args) as writer:
        written = []
        for step, score in scores.items():
            fill(buffer, 30)
            checkpoints.save(step, writer, parts)
            written.append(checkpoints.save_best(step, writer, parts, score))
    assert written == [True, False, True, False, False, False, False]
    kept = [tmp_path / "checkpoints" / name for name in ("step-000000000006.npz", "step-000000000007.npz")]
    assert list_checkpoints(tmp_path / "checkpoints") == kept
    assert read_origin(tmp_path / "checkpoints" / "best.npz").score == 7.0
    needed = set[str]()
    for path in (*kept, tmp_path / "checkpoints" / "best.npz"):
        copy, state = make(), decode(path)["parts"]["buffer"]
        copy.fetch(path.parent, state)
        copy.load(state)
        assert set(copy.sample(500).actions) == set(range(copy.total - 25, copy.total))
        needed |= set(state["chunks"])
    assert {f"replay/{path.name}" for path in (tmp_path / "checkpoints" / "replay").iterdir()} == needed
