"""What has a small state is drawn by a process of its own, which comes and goes with who looks."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import cartpole

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.portable.fastlane.portrait import (
    DRAWER_VARIABLE,
    Model,
    Portrait,
    _Easel,
    recipe_of,
    values_of,
)
from cleanrl_worker.portable.fastlane.tap import LONGEST_REST, SINGLE_SHARE, Tap
from mosaic.client import Client
from mosaic.fastlane import layout, slots
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.segment import Segment, create_segment, remove_segment
from mosaic.fastlane.states import State, StateSlot, drawer_of
from support.runs import SCRIPTS, end, script_config, wait_for_status

CLASSICS = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0")


@pytest.fixture(autouse=True)
def not_only_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that takes what is left of a core waits for long beside other tests."""
    monkeypatch.setenv(DRAWER_VARIABLE, "on")


def played(env_id: str, steps: int = 7) -> Any:
    env = gymnasium.make(env_id, render_mode="rgb_array").unwrapped
    env.reset(seed=3)
    env.action_space.seed(3)
    for _ in range(steps):
        env.step(env.action_space.sample())
    return env


@pytest.mark.parametrize("steps", [0, 7])
@pytest.mark.parametrize("env_id", CLASSICS)
def test_a_picture_drawn_from_the_state_is_the_environments_own(env_id: str, steps: int) -> None:
    env = played(env_id, steps)
    recipe = recipe_of(env)
    assert recipe is not None
    model = Model(recipe)
    model.draw(values_of(played(env_id, 3)))
    np.testing.assert_array_equal(model.draw(values_of(env)), env.render())
    env.close()


def test_what_a_script_changes_is_drawn_too() -> None:
    env = played("CartPole-v1")
    plain = env.render()
    env.length = 0.25
    recipe = recipe_of(env)
    assert recipe is not None
    picture = Model(recipe).draw(values_of(env))
    np.testing.assert_array_equal(picture, env.render())
    assert (picture != plain).any()


MUJOCO = """
import gymnasium, numpy as np
from cleanrl_worker.portable.fastlane.portrait import Model
from cleanrl_worker.portable.fastlane.portrait import recipe_of, values_of
env = gymnasium.make("HalfCheetah-v5", render_mode="rgb_array", width=64, height=64).unwrapped
env.reset(seed=3)
env.action_space.seed(3)
for _ in range(20):
    env.step(env.action_space.sample())
env.model.geom_rgba[2] = 0.0, 0.0, 1.0, 1.0
env.set_state(env.data.qpos, env.data.qvel)
model = Model(recipe_of(env))
own, drawn = env.render().astype(int), model.draw(values_of(env)).astype(int)
model._make_cheaper()
cheap = model.draw(values_of(env)).astype(int)
print(own.shape == (64, 64, 3), (own[:, :, 2] > own[:, :, 0] + 50).any())
print(abs(own - drawn).max() <= 2, np.corrcoef(own.ravel(), cheap.ravel())[0, 1] > 0.95)
"""


def test_a_picture_of_mujoco_is_the_environments_own_and_a_cheap_one_is_close_to_it() -> None:
    pytest.importorskip("mujoco")
    command = [sys.executable, "-c", MUJOCO]
    done = subprocess.run(command, env={**os.environ, "MUJOCO_GL": "egl"}, capture_output=True, text=True)
    if done.returncode != 0 and "EGL" in done.stderr:
        pytest.skip("needs EGL")
    assert done.stdout.split() == ["True"] * 4, done.stdout + done.stderr


class Painted(cartpole.CartPoleEnv):
    """Somebody's own, which may draw anything."""


def test_only_what_draws_as_gymnasium_does_is_drawn_elsewhere() -> None:
    env = played("CartPole-v1")
    assert recipe_of(env) is not None
    own_render = copy.copy(env)
    own_render.render = lambda: None
    odd = copy.copy(env)
    odd.spec = copy.deepcopy(env.spec)
    odd.spec.kwargs["camera"] = np.zeros(3)
    unseen = gymnasium.make("CartPole-v1").unwrapped
    own_class = Painted(render_mode="rgb_array")
    own_class.spec = env.spec
    assert [recipe_of(other) for other in (own_render, odd, unseen, own_class)] == [None] * 4


def test_reading_the_state_changes_nothing_in_the_environment() -> None:
    env = played("CartPole-v1")
    before = copy.deepcopy((env.np_random.bit_generator.state, env.state.tolist()))
    values_of(env)
    assert (env.np_random.bit_generator.state, env.state.tolist()) == before


def test_a_state_comes_out_as_it_went_in_also_a_larger_one_and_once_only() -> None:
    segment = Segment(create_segment("RUN", "grid"))
    writer, reader = StateSlot(segment, 1), StateSlot(segment, 1)
    assert reader.read() is None
    for number, size in enumerate((3, 3, 5000), 1):
        state = State('{"class": "ä"}', np.arange(size, dtype=np.float64), 512, 1.0, 2.0, 3.0)
        assert writer.write(state) == number
        found = reader.read()
        assert found is not None and found[0] == number
        assert found[1][2:] == state[2:] and found[1].recipe == state.recipe
        np.testing.assert_array_equal(found[1].values, state.values)
        reader.drawn = number
        assert reader.read() is None
    remove_segment("RUN")


@pytest.mark.parametrize("kwargs", ['{"no_such": 1}', "{}"])
def test_what_cannot_be_drawn_is_left_to_the_training_process(kwargs: str) -> None:
    segment = Segment(create_segment("RUN", "grid"))
    assert slots.claim(segment, slots.Owner.myself()) == 0
    place = StateSlot(segment, 0)
    recipe = f'{{"class": "gymnasium.envs.classic_control.cartpole:CartPoleEnv", "kwargs": {kwargs}}}'
    place.write(State(recipe, np.zeros(3), 512, 0.0, 0.0, 0.0))
    place.drawn_outside = True
    assert _Easel(segment).draw_all()
    assert place.drawn == layout.NOT_DRAWABLE
    remove_segment("RUN")


def wait_until(condition: Callable[[], Any], grid: LiveGrid | None = None) -> None:
    """Wait, and look meanwhile if there is something to look at."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, grid and grid.status()
        if grid is not None:
            grid.look()
        time.sleep(0.01)


@contextmanager
def playing(env_id: str) -> Iterator[tuple[LiveGrid, StateSlot, int]]:
    """A script that plays one environment; its pictures, its state and its process."""
    live = LiveFrames("RUN", LiveSettings())
    command = [sys.executable, str(SCRIPTS / "plays.py"), "--env-id", env_id, "--steps", "10000000"]
    process = subprocess.Popen(
        [*command, "--pause", "0.001"],
        env=live.add_to(os.environ, None),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    segment = Segment(layout.segment_path("RUN"))
    try:
        with LiveGrid("RUN") as grid:
            yield grid, StateSlot(segment, 0), process.pid
    finally:
        process.kill()
        process.wait()
        live.close()
        wait_until(lambda: not is_alive(drawer_of(segment)))


def is_alive(drawer: slots.Owner | None) -> bool:
    return drawer is not None and drawer.state is not None


def test_a_process_draws_while_somebody_looks_and_ends_after_the_last_look() -> None:
    with playing("CartPole-v1") as (grid, place, _):
        wait_until(lambda: grid.shown and place.drawn_outside and place.drawn, grid)
        drawer = drawer_of(place.segment)
        assert is_alive(drawer)
        assert grid.picture().shape == (400, 600, 3)
        metrics = grid.metrics()
        assert metrics is not None and metrics.last_reward == 1.0
        wait_until(lambda: not is_alive(drawer))
        wait_until(lambda: drawer_of(place.segment) != drawer, grid)


def test_the_training_process_draws_itself_when_no_other_does() -> None:
    with playing("CartPole-v1") as (grid, place, _):
        wait_until(lambda: place.drawn_outside and place.drawn, grid)
        drawer = drawer_of(place.segment)
        assert drawer is not None
        os.kill(drawer.pid, signal.SIGSTOP)
        wait_until(lambda: not place.drawn_outside, grid)
        newest = grid.frames()[0].number
        wait_until(lambda: grid.frames()[0].number > newest + 3, grid)
        os.kill(drawer.pid, signal.SIGCONT)
        wait_until(lambda: place.drawn_outside, grid)


class Forsaken(Portrait):
    """One that nobody draws, and whose state is dear to hand over."""

    def hand_over(self, *_: Any) -> bool:
        time.sleep(0.02)
        return False


@contextmanager
def forsaken(count: int) -> Iterator[list[Tap]]:
    """Environments that are looked at for the next minute, each with a picture."""
    segment = Segment(create_segment("RUN", "grid" if count > 1 else "single"))
    env = played("CartPole-v1")
    recipe = recipe_of(env)
    assert recipe is not None
    taps = []
    for _ in range(count):
        slot = slots.claim(segment, slots.Owner.myself())
        assert slot is not None
        taps.append(Tap(segment, slot, env.render, "it", str, Forsaken(env, recipe)))
        taps[-1].show_beginning()
    for tap in taps:
        tap.mark[0] = tap._own_due = time.monotonic() + 60.0
    yield taps
    for tap in taps:
        tap.close()
    remove_segment("RUN")


def test_what_is_handed_over_in_vain_is_part_of_what_pictures_may_cost() -> None:
    with forsaken(1) as [tap]:
        for _ in range(10):
            tap.show(0.0)
        tap._own_due = 0.0
        began = time.monotonic()
        tap.show(0.0)
        assert tap._own_due - began > 10 * 0.02 / SINGLE_SHARE


def test_many_that_are_watched_look_for_who_draws_them_no_more_often_than_one() -> None:
    with forsaken(4) as taps:
        began = time.monotonic()
        for tap in taps:
            tap.show(0.0)
        assert min(tap.due_at for tap in taps) > began + 4 * LONGEST_REST


def test_it_is_not_a_child_that_the_script_sees_and_ends_when_the_script_is_killed() -> None:
    with playing("CartPole-v1") as (grid, place, pid):
        wait_until(lambda: place.drawn, grid)
        drawer = drawer_of(place.segment)
        assert drawer is not None
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert children == [] and is_alive(drawer)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(drawer))


def test_it_is_paused_and_ended_with_its_run(client: Client) -> None:
    params = {"env_id": "CartPole-v1", "pause": 0.001}
    run = client.submit(script_config("plays.py", steps=10_000_000, params=params))
    wait_for_status(client, run.run_id, "EXEC")
    segment = Segment(layout.segment_path(run.run_id))
    with LiveGrid(run.run_id) as grid:
        wait_until(lambda: StateSlot(segment, 0).drawn, grid)
        drawer = drawer_of(segment)
        assert drawer is not None
        client.pause(run.run_id)
        wait_for_status(client, run.run_id, "PAUSE")
        wait_until(lambda: drawer.state == "T")
        client.resume(run.run_id)
        wait_until(lambda: drawer.state not in ("T", None))
        end(client, run)
    assert not is_alive(drawer)
    assert client.get(run.run_id).exit_code == 128 + signal.SIGTERM
