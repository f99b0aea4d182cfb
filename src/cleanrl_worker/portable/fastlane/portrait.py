"""Environments whose picture follows from a few numbers: these are copied, and another process draws.

It is started at the first look, draws for all environments of a run, takes only time that nobody else wants,
and ends when nobody looks any more, or when the training ends.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from cleanrl_worker.portable.fastlane.drawing import as_picture
from cleanrl_worker.portable.fastlane.lane import SEGMENT_VARIABLE
from mosaic.fastlane import slots
from mosaic.fastlane.layout import NOT_DRAWABLE, VIEWER_MARK
from mosaic.fastlane.segment import Segment, SegmentError
from mosaic.fastlane.states import State, StateSlot, appoint, drawer_of
from mosaic.fastlane.writer import SlotWriter

DRAWER_VARIABLE = "CLEANRL_FASTLANE_DRAWER"
_CLASSIC = "gymnasium.envs.classic_control."
_MOUNTAIN_CAR = ("state", "min_position", "max_position", "goal_position")
_CLASSICS = {
    "cartpole:CartPoleEnv": ("state", "length", "x_threshold"),
    "acrobot:AcrobotEnv": ("state", "LINK_LENGTH_1", "LINK_LENGTH_2"),
    "pendulum:PendulumEnv": ("state", "last_u"),
    "mountain_car:MountainCarEnv": _MOUNTAIN_CAR,
    "continuous_mountain_car:Continuous_MountainCarEnv": _MOUNTAIN_CAR,
}
_MUJOCO = "gymnasium.envs.mujoco."
_MUJOCO_DATA = ("qpos", "qvel", "act", "mocap_pos", "mocap_quat")
_MUJOCO_MODEL = (
    *("body_pos", "body_quat", "geom_pos", "geom_quat", "geom_size", "geom_rgba"),
    *("mat_rgba", "site_pos", "site_quat", "site_size", "site_rgba"),
)
"""Of the model what scripts change while they train, such as colours and sizes."""
LINGER_SECONDS = 3.0
"""How long it stays after the last look; a viewer that goes through runs soon comes back."""
DEAR_SECONDS = 0.025
"""A picture that takes more CPU time than this is drawn without a graphics card, and made cheaper."""
_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.004
_PACED_SECONDS = 0.03
_ASK_SECONDS = 1.0
_LEAST_WAIT = 0.25
_LEAST_ASKED = 5
_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from cleanrl_worker.portable.fastlane.portrait import main
main(sys.argv[1])
"""


def recipe_of(env: Any) -> str | None:
    """How another process makes an environment that draws the same; None for all but Gymnasium's own."""
    kind = type(env)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if not (name.startswith(_CLASSIC) and name[len(_CLASSIC) :] in _CLASSICS) and not _is_mujoco(env):
        return None
    spec = getattr(env, "spec", None)
    if spec is None or "render" in vars(env) or getattr(env, "render_mode", None) != "rgb_array":
        return None
    kwargs = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    try:
        return json.dumps({"class": name, "kwargs": kwargs})
    except (TypeError, ValueError):
        return None


def _is_mujoco(env: Any) -> bool:
    """Whether it is one of Gymnasium's own on MuJoCo's own bindings, with the `render` of them all."""
    kind = type(env)
    if not kind.__module__.startswith(_MUJOCO):
        return False
    base = getattr(sys.modules.get(_MUJOCO + "mujoco_env"), "MujocoEnv", None)
    return base is not None and isinstance(env, base) and kind.render is base.render


def make_env(recipe: str) -> Any:
    """An environment to be put into the states of others."""
    wanted = json.loads(recipe)
    module, _, name = wanted["class"].partition(":")
    env = getattr(importlib.import_module(module), name)(**wanted["kwargs"], render_mode="rgb_array")
    env.reset(seed=0)
    return env


def values_of(env: Any) -> Any:
    """The numbers that a picture follows from. Nothing is drawn at random for them, nothing changed."""
    parts = [getattr(holder, name) for holder, name in _places(env)]
    return np.concatenate([np.ravel(np.nan if part is None else part) for part in parts], dtype=np.float64)


def put_values(env: Any, values: Any) -> None:
    """Bring an environment into the state of another of its kind; ValueError when that has another shape."""
    at = 0
    for holder, name in _places(env):
        old = getattr(holder, name)
        part = values[at : at + np.size(old)].reshape(np.shape(old))
        at += np.size(old)
        if holder is not env:
            old[...] = part
        else:
            setattr(env, name, part.copy() if part.ndim else None if np.isnan(part) else float(part))
    if at != len(values):
        raise ValueError("it has other numbers than others of its kind")


def _places(env: Any) -> list[tuple[Any, str]]:
    kind = type(env)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if name.startswith(_CLASSIC):
        return [(env, field) for field in _CLASSICS[name[len(_CLASSIC) :]]]
    return [(env.data, field) for field in _MUJOCO_DATA] + [(env.model, field) for field in _MUJOCO_MODEL]


class Portrait:
    """One environment that another process draws, as long as that one keeps up."""

    def __init__(self, env: Any, recipe: str) -> None:
        self._env = env
        self._recipe = recipe
        self._place: StateSlot | None = None
        self._refused = False
        self._drawer: slots.Owner | None = None
        self._keeps_up = False
        self._asked = 0
        self._asked_at, self._asked_since = 0.0, 0
        mujoco = not json.loads(recipe)["class"].startswith(_CLASSIC)
        # Of what is cheap to draw, the first pictures are not worth waiting for.
        self._patience = 3.0 if mujoco else 0.0
        self.cost = 0.06 if mujoco else 0.003
        """What a picture costs when the training process draws it itself, in seconds."""

    def hand_over(
        self, segment: Segment, slot: int, now: float, wait: float, max_dim: int, numbers: tuple[float, ...]
    ) -> bool:
        """Leave the state to be drawn; False when the training process had better draw it itself.

        That is so when it would have a picture after `wait` seconds, and nobody has drawn one for as long.
        """
        if self._refused:
            return False
        place = self._place
        if place is None or (place.slot, place.segment) != (slot, segment):
            place = self._place = StateSlot(segment, slot)
            place.drawn, self._asked = 0, 0
        drawn = place.drawn
        if drawn == NOT_DRAWABLE:
            self._refused, place.drawn_outside = True, False
            return False
        if _Drawer.ensure(segment, now) != self._drawer:
            self._drawer, self._keeps_up, self._asked = drawer_of(segment), False, 0
        if self._asked and drawn >= self._asked:
            self._keeps_up, self._asked = True, 0
        number = place.write(State(self._recipe, values_of(self._env), max_dim, *numbers))
        if not self._asked:
            self._asked, self._asked_at, self._asked_since = number, now, 0
        self._asked_since += 1
        waited = now - self._asked_at
        if self._keeps_up:
            # A process that was paused has waited long too, but was not asked often.
            in_time = waited <= max(wait, _LEAST_WAIT) or self._asked_since <= _LEAST_ASKED
        else:
            in_time = waited < self._patience
        place.drawn_outside = in_time
        return in_time


def portrait_of(env: Any) -> Portrait | None:
    """An environment's portrait; None where its picture follows from more than a few numbers."""
    wanted = os.environ.get(DRAWER_VARIABLE)
    recipe = recipe_of(env) if wanted == "on" or (wanted != "off" and has_spare_core()) else None
    return None if recipe is None else Portrait(env, recipe)


@functools.lru_cache(maxsize=1)
def has_spare_core() -> bool:
    """Whether a process beside the training could have a core of its own, if nobody else takes it."""
    try:
        if len(os.sched_getaffinity(0)) < 2:
            return False
        own = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip().lstrip("/")
        for folder in {Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup") / own}:
            limit = folder / "cpu.max"
            quota, period = limit.read_text().split() if limit.exists() else ("max", "1")
            if quota != "max" and int(quota) < 2 * int(period):
                # What a drawing process uses would be taken from the training, however modest it is.
                return False
    except (OSError, ValueError):
        return False
    return True


class _Drawer:
    """Sees to it that one process draws for a run while somebody looks."""

    asked_at = -_ASK_SECONDS
    known: slots.Owner | None = None
    starts = 0
    most_starts = 20
    """One that ends again and again, for whatever reason, is not wanted."""

    @classmethod
    def ensure(cls, segment: Segment, now: float) -> slots.Owner | None:
        """The process that draws; started if there is none."""
        if now - cls.asked_at < _ASK_SECONDS:
            return cls.known
        cls.asked_at = now
        cls.known = drawer_of(segment)
        if (cls.known is None or cls.known.state is None) and cls.starts < cls.most_starts:
            with segment.locked():
                cls.known = drawer_of(segment)
                if cls.known is None or cls.known.state is None:
                    cls.starts += 1
                    cls.known = start_drawer(segment)
        return cls.known


def start_drawer(segment: Segment) -> slots.Owner | None:
    """Start a process that draws for this run; called while the segment is locked.

    A shell starts it and is gone at once, so that it is no child of the script, which may wait for its own.
    """
    environment = {name: value for name, value in os.environ.items() if name != SEGMENT_VARIABLE}
    # Several threads for one picture wait for each other wherever there are not as many free cores.
    environment.update({"LP_NUM_THREADS": "0", "SDL_NO_SIGNAL_HANDLERS": "1"})
    # Isolated, as it would else begin with what lies in the script's folder.
    words = [sys.executable, "-I", "-c", _START, str(segment.path), json.dumps(sys.path)]
    shell = ["/bin/sh", "-c", '"$@" >/dev/null 2>&1 </dev/null & echo $!', "sh", *words]
    try:
        told = subprocess.run(shell, env=environment, stdout=subprocess.PIPE, check=True).stdout
        drawer = slots.Owner.of(int(told))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if drawer is not None:
        appoint(segment, drawer)
    return drawer


def main(path: str) -> None:
    """Draw until there is nothing more to draw."""
    if os.environ.get(DRAWER_VARIABLE) != "on":
        be_modest()
    me = slots.Owner.myself()
    try:
        segment = Segment(Path(path))
    except SegmentError:
        return
    with segment.locked():
        # Who has started us has entered us.
        if drawer_of(segment) != me:
            return
    easel = _Easel(segment)
    looked_at = time.monotonic()
    asked_at = 0.0
    while True:
        now = time.monotonic()
        if now - asked_at > _LOOK_SECONDS:
            asked_at = now
            looked_at = max(looked_at, easel.looked_at())
            if segment.ended or now - looked_at > LINGER_SECONDS or not easel.has_owners():
                return
        if not easel.draw_all():
            time.sleep(_PAUSE_SECONDS)


def be_modest() -> None:
    """Run only while a core has nothing else to do."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.nice(19)


class _Easel:
    """The environments that stand for those of a run, one for each kind, and where their pictures go."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._places = {slot: StateSlot(segment, slot) for slot in segment.shown}
        self._writers = {slot: SlotWriter(segment, slot) for slot in segment.shown}
        self._models: dict[str, Model] = {}
        self._due = dict.fromkeys(self._places, 0.0)

    def looked_at(self) -> float:
        """When somebody looked last at what we draw."""
        return max(float(self._segment.floats[slots.entry(slot) + VIEWER_MARK]) for slot in self._places)

    def has_owners(self) -> bool:
        """Whether any process lives whose environments are drawn here."""
        owners = {slots.owner_of(self._segment, slot) for slot, place in self._places.items() if place.number}
        return any(owner is not None and owner.state is not None for owner in owners)

    def draw_all(self) -> bool:
        """Draw each state that is new; False when there was none."""
        found = False
        for slot, place in self._places.items():
            began = time.monotonic()
            if began < self._due[slot] or slots.owner_of(self._segment, slot) is None:
                continue
            new = place.read()
            if new is None:
                continue
            number, state = new
            self._due[slot] = began + _PACED_SECONDS
            try:
                self._draw(slot, place, state)
                place.drawn = number
            except Exception:
                # Its own process then draws it, and says what is wrong with it.
                place.drawn = NOT_DRAWABLE
            found = True
        return found

    def _draw(self, slot: int, place: StateSlot, state: State) -> None:
        if state.recipe not in self._models:
            self._models[state.recipe] = Model(state.recipe)
        picture = as_picture(self._models[state.recipe].draw(state.values), state.max_dim)
        if picture is None:
            raise ValueError("its render() returns no picture")
        if place.drawn_outside:
            numbers = (state.last_reward, state.rolling_return, state.step_rate_hz)
            self._writers[slot].publish(picture, *numbers)


class Model:
    """One environment that is put into the states of all others of its kind."""

    def __init__(self, recipe: str) -> None:
        self._env = make_env(recipe)
        self._mujoco = hasattr(self._env, "mujoco_renderer")
        self._drawn = 0

    def draw(self, values: Any) -> Any:
        """What `render()` gives for an environment in this state that is drawn for the first time."""
        put_values(self._env, values)
        if not self._mujoco:
            return self._env.render()
        self._place_bodies()
        began = time.process_time()
        pixels = self._env.render()
        self._drawn += 1
        if self._drawn == 2 and time.process_time() - began > DEAR_SECONDS:
            self._make_cheaper()
        return pixels

    def _place_bodies(self) -> None:
        mujoco: Any = sys.modules["mujoco"]
        model, data = self._env.model, self._env.data
        for place in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight, mujoco.mj_tendon):
            place(model, data)
        renderer = self._env.mujoco_renderer
        viewer = getattr(renderer, "viewer", None)
        if viewer is not None and hasattr(viewer, "_init_camera"):
            # It looks where the first picture had its subject. Ours has many, and they run away.
            viewer._init_camera()
            renderer._set_cam_config()

    def _make_cheaper(self) -> None:
        mujoco: Any = sys.modules["mujoco"]
        flags = self._env.mujoco_renderer.viewer.scn.flags
        flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
