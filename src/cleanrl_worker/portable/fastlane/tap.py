"""One environment's tap: what is rendered, when, and how much of training time that may cost."""

from __future__ import annotations

import contextlib
import importlib
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any

from cleanrl_worker.portable.fastlane.drawing import absent_package, as_picture, draw_in_vain, failed_import
from cleanrl_worker.portable.fastlane.lane import open_lane, release_slot, warn
from cleanrl_worker.portable.fastlane.portrait import Portrait
from mosaic.fastlane import layout, slots
from mosaic.fastlane.segment import Segment
from mosaic.fastlane.writer import SlotWriter

INTERVAL_VARIABLE = "CLEANRL_FASTLANE_INTERVAL_MS"
MAX_DIM_VARIABLE = "CLEANRL_FASTLANE_MAX_DIM"

SINGLE_SHARE = 0.049
GRID_SHARE = 0.147
"""Of training time, for one environment that is watched and for several together: a little under what is
promised, 5 % and 15 %, for what lies around the drawing."""
HANDING_SHARE = 0.008
LONGEST_REST = 0.25
"""Of training time, for handing over states to be drawn elsewhere; the longest time between two of them."""
FEW = 4
MAX_DIM_OF_FEW, MAX_DIM = 640, 512
"""A few pictures have much room in a window: the 600 pixels of Gymnasium's classics are shown whole. Of more
pictures each is small there, and costs its viewer as much."""
TRY_AGAIN_SECONDS = 2.0
"""After a picture for which something could not be imported."""
SMOOTHING = 0.1
"""The weight of the newest episode in `rolling_return`."""


class _Firsts:
    """When the next environment of this process may draw its first picture.

    It opens windows and loads fonts, which takes seconds where later pictures take milliseconds: a grid of
    eight fills up one by one, and does not stop training until all of them are there.
    """

    not_before = 0.0
    longest_wait = 5.0


class _Pace:
    """True steps per second of the whole run of late, the same number for all taps of a process."""

    window = 0.5
    longest = 10.0
    """A rate over a longer time, in which nobody looked, says little of now."""

    def __init__(self) -> None:
        self._counted, self._since, self._rate = 0, monotonic(), 0.0
        self._rough = True

    def rate(self, total: int, now: float) -> float:
        """The newest rate, when `total` steps have been taken; a rough one until a window is full."""
        elapsed = now - self._since
        full = elapsed >= self.window
        if elapsed > 0.0 and (full or (self._rough and self._counted)):
            self._rate = (total - self._counted) / elapsed
        if full or not self._counted:
            # What came before the first step was not stepping: the first window begins with it.
            self._rough = elapsed > self.longest or not self._counted
            self._counted, self._since = total, now
        return self._rate


_paces: weakref.WeakKeyDictionary[Segment, _Pace] = weakref.WeakKeyDictionary()


class Tap:
    """A claimed slot of the run's segment. `mark` is non-zero while, and a little after, somebody looks."""

    def __init__(
        self,
        segment: Segment,
        slot: int,
        render: Callable[[], Any],
        name: str,
        mission: Callable[[], str],
        portrait: Portrait | None = None,
    ) -> None:
        self._render = render
        self._name = name
        self._mission = mission
        self._portrait = portrait
        self.rolling_return: float | None = None
        self._interval = _number(INTERVAL_VARIABLE, 33.0) / 1000.0
        self._max_dim = max(1, int(_number(MAX_DIM_VARIABLE, MAX_DIM)))
        self._max_dim_of_few = max(1, int(_number(MAX_DIM_VARIABLE, MAX_DIM_OF_FEW)))
        self._watched = 1
        self.due_at = self._was_due = self._own_due = 0.0
        self._in_vain = 0.0
        self._rendered = 0
        self._take_slot(segment, slot)

    def _take_slot(self, segment: Segment, slot: int) -> None:
        self._segment = segment
        self._pace = _paces.setdefault(segment, _Pace())
        self._writer = SlotWriter(segment, slot)
        self.mark = self._writer.mark
        self.steps = self._writer.steps
        self.shown = slot in segment.shown
        self._process = os.getpid()
        self._release = weakref.finalize(self, release_slot, segment, slot, slots.Owner.myself())

    def close(self) -> None:
        """Give the slot back; an environment that is played on after its end shows nothing."""
        self.due_at = float("inf")
        self._release()

    def turn_to(
        self, render: Callable[[], Any], name: str, mission: Callable[[], str], portrait: Portrait | None
    ) -> None:
        """Show another environment from now on, in the same slot."""
        self._render, self._name, self._mission, self._portrait = render, name, mission, portrait
        self._writer.draw_here()
        self.rolling_return = None
        if self.due_at == float("inf"):
            # Not at once: a slot that turns at every episode must not draw more than others.
            self.due_at = self._was_due

    def episode_ended(self, total_reward: float) -> None:
        """Take an episode's return into the rolling one."""
        before = self.rolling_return
        self.rolling_return = total_reward if before is None else before + SMOOTHING * (total_reward - before)

    def show(self, last_reward: float, running_return: float = 0.0) -> None:
        """Render and publish, if somebody still looks; called when `mark` is set and `due_at` has passed."""
        now = monotonic()
        if os.getpid() != self._process:
            self._leave_parent()
            return
        if now - self.mark[0] > layout.WATCHED_SECONDS:
            # Nobody is there any more. A viewer that comes back this very moment marks it again.
            self.mark[0] = 0.0
            return
        self._watched = max(1, self._segment.watched(now))
        share = SINGLE_SHARE if self._watched == 1 else GRID_SHARE / self._watched
        rolling = running_return if self.rolling_return is None else self.rolling_return
        numbers = (last_reward, rolling, self._pace.rate(sum(self._segment.column(layout.STEPS)), now))
        if self._hand_over(now, share, numbers):
            self._in_vain = 0.0
            return
        due = self._own_due if self._rendered else _Firsts.not_before
        if now < due:
            self._wait_until(due)
            self._in_vain += monotonic() - now
            return
        frame = self._take_picture()
        if frame is None:
            return
        try:
            self._writer.publish(frame, *numbers, self._mission())
        except Exception as error:
            self.refuse(str(error))
            return
        self._rendered += 1
        end = monotonic()
        if self._rendered == 1:
            _Firsts.not_before = end + min((end - now) / GRID_SHARE, _Firsts.longest_wait)
            self._wait_until(end + self._interval)
        else:
            # States that nobody has drawn were handed over at the cost of this picture.
            self._wait_until(now + max(self._interval, (end - now + self._in_vain) / share))
            if self._portrait is not None:
                self._portrait.cost = end - now
        self._in_vain = 0.0

    def _wait_until(self, due: float) -> None:
        """Draw again at that time; before it, see whether another process does by now.

        All that are watched look for it in turn: many of them are to spend no more on it than one.
        """
        self._own_due = due
        self.due_at = due if self._portrait is None else min(due, monotonic() + LONGEST_REST * self._watched)

    def _hand_over(self, now: float, share: float, numbers: tuple[float, ...]) -> bool:
        """Have the picture drawn by another process; False when it is to be drawn here."""
        if self._portrait is None:
            return False
        wait = self._portrait.cost / share
        try:
            handed = self._portrait.hand_over(
                self._segment, self._writer.slot, now, wait, self._limit(), numbers
            )
        except Exception as error:
            warn(f"{self._name} is drawn by its own process: {type(error).__name__}: {error}")
            self._portrait = None
            return False
        end = monotonic()
        # Once it was interrupted it seems dear; that is no reason to wait for long.
        rest = min((end - now) * (self._watched / HANDING_SHARE), LONGEST_REST)
        self.due_at = now + max(self._interval, rest)
        return handed

    def show_beginning(self) -> None:
        """Show the environment before its first step: nothing that a picture delays is under way yet."""
        self.mark[0], _Firsts.not_before = monotonic(), 0.0
        self.show(0.0)

    def _leave_parent(self) -> None:
        """Take another slot in a forked child: the one that it has inherited is still its parent's."""
        segment = open_lane()
        slot = None if segment is None else slots.claim(segment, slots.Owner.myself())
        if segment is None or slot is None:
            self.due_at = float("inf")
        else:
            self._take_slot(segment, slot)

    def _take_picture(self) -> Any:
        """The picture, not larger than is wanted; None when there is none to be had, which is said once."""
        trouble = draw_in_vain()
        if trouble is not None:
            return self.refuse(trouble)
        try:
            frame = as_picture(self._render(), self._limit())
        except Exception as error:
            package = absent_package(error)
            said = layout.lacks_package(package) if package else ""
            self.refuse(said or f"its render() failed: {type(error).__name__}: {error}")
            if failed_import(error) is not None:
                # What is missing or half there may be installed while a script trains.
                self.due_at = monotonic() + TRY_AGAIN_SECONDS
                importlib.invalidate_caches()
            return None
        return self.refuse("its render() returns no picture") if frame is None else frame

    def _limit(self) -> int:
        return self._max_dim_of_few if self._watched <= FEW else self._max_dim

    def refuse(self, reason: str) -> None:
        """Render nothing, and tell viewers and the log why."""
        if self.due_at != float("inf"):
            self._was_due, self.due_at = self.due_at, float("inf")
        if self._release.alive:
            self._writer.no_picture(reason)
        if (self._name, reason) not in _refused:
            # There may be many of a kind, and a slot may come to the same environment again and again.
            _refused.add((self._name, reason))
            warn(f"no picture of {self._name}: {reason}")


_refused: set[tuple[str, str]] = set()
"""What has been said in this process."""
_handed_over: list[Tap] = []


@contextlib.contextmanager
def handing_over(tap: Tap) -> Iterator[None]:
    """The next environment gets this tap instead of one of its own."""
    _handed_over.append(tap)
    try:
        yield
    finally:
        if tap in _handed_over:
            _handed_over.remove(tap)
            tap.refuse("what took its place cannot be watched")


def hand_over(taps: Sequence[Tap]) -> None:
    """The next environments get these taps, in their order."""
    _handed_over.extend(reversed(taps))


def open_tap(
    render: Callable[[], Any], name: str, mission: Callable[[], str] = str, portrait: Portrait | None = None
) -> Tap | None:
    """A tap for one more environment of this run; None when the run shows nothing."""
    if _handed_over:
        tap = _handed_over.pop()
        tap.turn_to(render, name, mission, portrait)
        return tap
    segment = open_lane()
    if segment is None:
        return None
    slot = slots.claim(segment, slots.Owner.myself())
    return None if slot is None else Tap(segment, slot, render, name, mission, portrait)


def _number(variable: str, default: float) -> float:
    """What a variable says, if that is a number that makes sense."""
    try:
        number = float(os.environ.get(variable, default))
    except ValueError:
        return default
    return number if 0.0 <= number < float("inf") else default
