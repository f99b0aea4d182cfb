"""The replay buffer: what it keeps, what it draws, and what its checkpoints hold."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.algorithms import dqn
from cleanrl_worker.config.checkpoint_files import list_checkpoints, read_origin
from cleanrl_worker.config.footprint import check_memory, check_replay, estimated_memory, stack_axis
from cleanrl_worker.kit import replay
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.checkpoints import Checkpoints
from cleanrl_worker.kit.replay import FrameBuffer, Replay, ReplayBuffer
from cleanrl_worker.kit.run import Run, train
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.kit.stopping import StopSignals
from cleanrl_worker.kit.writer import RunWriter
from cleanrl_worker.schemas.environments import EnvironmentEntry
from mosaic.contract.errors import UserError


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
    with contextlib.closing(RunWriter(args)) as writer:
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


# Stacks of frames

STACK = (4, 36, 34)


def transitions(seed: int, steps: int, envs: int) -> Iterator[tuple[Any, Any, int, float, bool, int]]:
    """Steps of games that show their last four frames: ended, truncated, begun with copies or with black."""
    dice = np.random.default_rng(seed)

    def frame() -> np.ndarray:
        return dice.integers(0, 256, STACK[1:], dtype=np.uint8)

    def begin() -> np.ndarray:
        first = frame()
        return np.stack([first] * 4 if dice.random() < 0.5 else [np.zeros_like(first)] * 3 + [first])

    shown = [begin() for _ in range(envs)]
    for step in range(steps):
        for index in range(envs):
            # Now and then a picture stands still.
            new = shown[index][-1] if dice.random() < 0.1 else frame()
            after = np.concatenate([shown[index][1:], new[None]])
            ends = dice.random() < 0.15
            yield shown[index], after, step * envs + index, float(step), ends and dice.random() < 0.5, index
            shown[index] = begin() if ends else after


def frames_last(step: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same step with its frames along the last axis, as the wrappers for images give them."""
    obs, after, *others = step
    return np.moveaxis(obs, 0, -1), np.moveaxis(after, 0, -1), *others


def pair(
    capacity: int, stack: tuple[int, ...] = STACK, ends: bool = False
) -> tuple[FrameBuffer, ReplayBuffer]:
    frames = FrameBuffer(capacity, stack, (), 3, np.uint8, np.int64, ends)
    return frames, ReplayBuffer(capacity, stack, (), 3, np.uint8, np.int64, ends)


def assert_same_samples(one: ReplayBuffer, other: ReplayBuffer, size: int = 64) -> None:
    for mine, theirs in zip(one.sample(size), other.sample(size), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("envs", [1, 3])
@pytest.mark.parametrize("capacity", [2, 7, 50, 400])
def test_frames_kept_once_give_the_same_samples_as_whole_stacks(envs: int, capacity: int, last: bool) -> None:
    frames, whole = pair(capacity, (*STACK[1:], STACK[0]) if last else STACK)
    for number, step in enumerate(transitions(5, 300, envs)):
        step = frames_last(step) if last else step
        frames.add(*step)
        whole.add(*step)
        if number % 17 == 0:
            assert_same_samples(frames, whole)
    assert_same_samples(frames, whole, 2000)


def frames_in_use(buffer: FrameBuffer) -> int:
    return len(np.unique(buffer._columns["frames"][: len(buffer)]))


@pytest.mark.parametrize("last", [False, True])
def test_each_frame_is_kept_once_and_its_place_is_used_again(last: bool) -> None:
    frames, _ = pair(200, (*STACK[1:], STACK[0]) if last else STACK)
    ends = 0
    for step in transitions(5, 2000, 2):
        frames.add(*(frames_last(step) if last else step))
        ends += not np.array_equal(step[1][:3], step[0][1:]) or step[4]
    # One frame for each step, two more for each of the episodes, of seven steps on average.
    assert frames_in_use(frames) < 200 * (1 + 3 / 6)
    assert frames._used <= frames_in_use(frames) + 60, "more than the greatest number of frames so far"
    assert len(frames._free) + frames_in_use(frames) == frames._used


def test_what_is_no_stack_of_frames_comes_back_too() -> None:
    frames, whole = pair(30)
    dice = np.random.default_rng(1)
    for number in range(80):
        obs, after = dice.integers(0, 256, (2, *STACK), dtype=np.uint8)
        for buffer in (frames, whole):
            buffer.add(obs, after, number, 0.0, False, number % 4)
    assert len(frames._blocks) > 1, "so many frames need a second block"
    assert_same_samples(frames, whole, 500)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("total", [6, 25, 61, 118])
def test_a_buffer_of_frames_goes_on_from_a_checkpoint_to_the_byte(
    tmp_path: Path, total: int, monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    monkeypatch.setattr(replay, "FRAME_CHUNK", 10)
    steps = [frames_last(step) if last else step for step in transitions(8, 60, 3)]
    stack = (*STACK[1:], STACK[0]) if last else STACK
    (frames, whole), (again, _) = pair(25, stack), pair(25, stack)
    stored = dict[str, bytes]()
    for number, step in enumerate(steps):
        if number in (total // 2, total):
            frames.store(tmp_path)
            state = encode(frames.state())
        if number == total:
            stored = {path.name: path.read_bytes() for path in (tmp_path / "replay").iterdir()}
            (tmp_path / "state.npz").write_bytes(state)
            state_at = decode(tmp_path / "state.npz")
            again.fetch(tmp_path, state_at)
            again.load(state_at)
        if number >= total:
            again.add(*step)
        frames.add(*step)
        whole.add(*step)
    # The frames that are new to a chunk are the same, in the same order, so its file is too.
    ends = []
    for buffer, folder in ((frames, tmp_path / "one"), (again, tmp_path / "two")):
        buffer._stored.clear()
        buffer.store(folder)
        files = {path.name: path.read_bytes() for path in (folder / "replay").iterdir()}
        ends.append((files, encode(buffer.state())))
    assert ends[0] == ends[1]
    assert (
        ends[0][0].items()
        >= {
            name: data for name, data in stored.items() if name in ends[0][0] and int(name[6:14]) >= 16
        }.items()
    )
    assert_same_samples(again, whole, 500)


def test_files_have_frames_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "FRAME_CHUNK", 50)
    frames, _ = pair(100)
    picture = np.zeros(STACK, np.uint8)
    for number in range(50):
        after = np.concatenate([picture[1:], np.full((1, *STACK[1:]), number, np.uint8)])
        frames.add(picture, after, 0, 0.0, False)
        picture = after
    frames.store(tmp_path)
    (chunk,) = (tmp_path / "replay").iterdir()
    assert chunk.stat().st_size < 50 * picture[0].nbytes / 5


# Returns of several steps


@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize("envs", [1, 3])
@pytest.mark.parametrize("capacity", [7, 50, 400])
def test_returns_of_several_steps_are_those_of_their_episode(capacity: int, envs: int, steps: int) -> None:
    gamma, dice = 0.9, np.random.default_rng(steps)
    frames, whole = pair(capacity, ends=True)
    told: list[tuple[Any, ...]] = []
    for step in transitions(5, 200 // envs, envs):
        cut_off = bool(dice.random() < 0.2)
        told.append((*step, cut_off))
        for buffer in (frames, whole):
            buffer.add(*step, cut_off)
    numbers = range(max(0, len(told) - capacity), len(told))
    rows = np.array(numbers) % capacity
    for buffer in (frames, whole):
        found, discounts = buffer.look_ahead(rows, steps, envs, gamma)
        # Each transition of the buffer has a return, also the last ones of every episode.
        for at, number in enumerate(numbers):
            total, last = 0.0, number
            for ahead in range(steps):
                last = number + ahead * envs
                total += gamma**ahead * told[last][3]
                ended = told[last][4] or told[last][6]
                if ended or last + envs >= len(told):
                    break
            np.testing.assert_array_equal(found.obs[at], told[number][0])
            np.testing.assert_array_equal(found.next_obs[at], told[last][1])
            assert found.actions[at] == told[number][2]
            assert found.rewards[at] == pytest.approx(total, rel=1e-5)
            assert found.dones[at] == told[last][4]
            assert discounts[at] == pytest.approx(gamma ** (ahead + 1), rel=1e-6)


def test_what_an_environment_does_after_a_new_beginning_is_not_the_same_episode() -> None:
    _, whole = pair(20, ends=True)
    steps = [(*step[:4], False, step[5]) for step in transitions(5, 4, 2)]
    for number, step in enumerate(steps):
        if number == 4:
            whole.cut_off(1, 2)
        whole.add(*step)
    found, discounts = whole.look_ahead(np.array([0, 1, 2, 3, 5]), 3, 2, 0.5)
    np.testing.assert_allclose(discounts, [0.125, 0.25, 0.125, 0.5, 0.25])
    np.testing.assert_array_equal(found.next_obs[3], steps[3][1])
    assert not found.dones.any()


def test_a_run_on_stacks_of_frames_keeps_each_once_and_refuses_what_no_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "films.py").write_text(FILMS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    spec = dataclasses.replace(
        dqn.SPEC,
        name="films",
        train=remember,
        flat_observations=False,
        observation_spaces=("image",),
        model={},
    )
    args = dqn.Args(
        env_id="films:Film-v0", num_envs=2, total_timesteps=120, eval_episodes=0, save_model=False
    )
    with StopSignals() as stop:
        train(spec, args, stop)
        assert "replay buffer" not in capsys.readouterr().err
        with pytest.raises(
            UserError, match=r"^A replay buffer of 10,000,000,000 steps would need [^\n]+ MB; "
        ):
            train(spec, dataclasses.replace(args, buffer_size=10**10, total_timesteps=10**11), stop)


@pytest.mark.parametrize("shape", [(4, 84, 84), (84, 84, 4)])
def test_a_large_buffer_says_what_it_takes(shape: tuple[int, ...]) -> None:
    said = check_replay(500_000, shape)
    assert re.fullmatch(
        r"The replay buffer takes up to 3,552 MB of memory as it fills; [\d,]+ MB are free now\.", said
    )
    assert check_replay(1_000, shape) == ""


FILMS = """
import gymnasium, numpy as np

class Film(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (4, 40, 40), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.show(), {}

    def show(self):
        return np.stack([np.full((40, 40), max(0, self.time + back), np.uint8) for back in (-3, -2, -1, 0)])

    def step(self, action):
        self.time += 1
        return self.show(), float(self.time), False, self.time == 10, {}

gymnasium.register("Film-v0", Film)
"""


def remember(run: Run[Any]) -> None:
    """What any algorithm does with its replay buffer, and a look at what it draws."""
    buffer = run.keep("replay", Replay(run, run.args.buffer_size, (), "int64"))
    for _ in run.updates(every=run.args.num_envs):
        buffer.step([0] * run.args.num_envs, [0] * run.args.num_envs)
    sample = buffer.sample(300)
    assert sample.obs.dtype == np.uint8 and sample.obs.shape == (300, 4, 40, 40)
    now, after = sample.obs[:, -1, 0, 0].astype(int), sample.next_obs[:, -1, 0, 0].astype(int)
    # The tenth frame ends a film by its limit: the next observation is still of the same film.
    np.testing.assert_array_equal(after, now + 1)
    np.testing.assert_array_equal(sample.rewards, after)
    assert set(now) == set(range(10)) and not sample.dones.any()
    np.testing.assert_array_equal(sample.obs[:, 1:], sample.next_obs[:, :-1])


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((4, 84, 84), "uint8", 0),
        ((4, 84, 84, 3), "uint8", 0),
        ((84, 84, 4), "uint8", -1),
        ((84, 84, 1), "uint8", -1),
        ((4, 84, 84), "float32", None),
        ((210, 160, 3), "uint8", -1),
        ((7, 7, 3), "uint8", None),
        ((128,), "uint8", None),
    ],
)
def test_what_a_stack_of_frames_is(shape: tuple[int, ...], dtype: str, expected: int | None) -> None:
    assert stack_axis(shape, dtype) == expected


def test_a_dry_run_counts_each_frame_once() -> None:
    seen = {"kind": "box", "shape": [4, 84, 84], "dtype": "uint8"}
    action = {"kind": "discrete", "n": 2, "shape": []}
    entry = EnvironmentEntry("Film-v0", "own", None, seen, action, None)
    parts = estimated_memory({"buffer_size": 1_000_000}, entry)
    assert parts is not None and 7056 <= parts["replay_buffer"] < 7200
    # A short run does not fill the buffer.
    short = estimated_memory({"buffer_size": 1_000_000, "total_timesteps": 10_000}, entry)
    assert short is not None and 70 <= short["replay_buffer"] < 72
    with pytest.raises(UserError, match=r"would need about [\d,]+ MB .*; lower buffer_size\."):
        check_memory({"buffer_size": 10**9}, entry)
