"""The process that draws what the training processes of a run leave: states in, pictures out.

It takes only time that nobody else wants, and ends when nobody looks any more, or when the training ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

from cleanrl_worker.portable.fastlane.drawing import as_picture
from cleanrl_worker.portable.fastlane.portrait import DRAWER_VARIABLE, make_env, put_values
from mosaic.fastlane import layout, slots
from mosaic.fastlane.segment import Segment, SegmentError
from mosaic.fastlane.states import State, StateSlot, drawer_of
from mosaic.fastlane.writer import SlotWriter

LINGER_SECONDS = 3.0
"""How long it stays after the last look; a viewer that goes through runs soon comes back."""
DEAR_SECONDS = 0.025
"""A picture that takes more CPU time than this is drawn without a graphics card, and made cheaper."""
_ASK_SECONDS = 0.1
_PAUSE_SECONDS = 0.004
_PACED_SECONDS = 0.03


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
        if now - asked_at > _ASK_SECONDS:
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
        return max(
            float(self._segment.floats[slots.entry(slot) + layout.VIEWER_MARK]) for slot in self._places
        )

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
                place.drawn = layout.NOT_DRAWABLE
            found = True
        return found

    def _draw(self, slot: int, place: StateSlot, state: State) -> None:
        if state.recipe not in self._models:
            self._models[state.recipe] = Model(state.recipe)
        picture = as_picture(self._models[state.recipe].draw(state.values), state.max_dim)
        if picture is None:
            raise ValueError("its render() gives no picture")
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
