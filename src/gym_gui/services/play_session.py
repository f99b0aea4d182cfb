"""A session in a thread of its own, of a policy or by hand: what is asked for goes in, news come out."""

from __future__ import annotations

import base64
import binascii
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from gym_gui.ui.presenters.play import Closed, News, Opened, Recording, Refusal, Running, Seen
from mosaic.client.playing import Message, PlaySession, Refused
from mosaic.contract.errors import MosaicError
from mosaic.fastlane.png import decode_png

_SAVING_SECONDS = 20.0
"""So long a recording may take to be written when the window closes."""


class Play(QObject):
    """One environment being played. `arrived` means that `take` has something."""

    arrived = Signal()

    def __init__(
        self,
        policy: str | None,
        folder: Path,
        var: Path,
        *,
        deterministic: bool = True,
        seed: int | None = None,
        env_id: str | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        record: Path | None = None,
    ) -> None:
        """Start loading, and begin an episode with `seed` as soon as that is done.

        Without a policy `env_id` is played by hand, and its episodes are kept in the folder `record`.
        """
        super().__init__()
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._session: PlaySession | None = None
        self._killed = False
        self._over = False
        self._speed, self._running, self._due = 30.0, False, 0.0
        self._held: Sequence[Any] = ()
        self._turn = 0
        self._tapped: Any = None
        """What was pressed since the last step, though it may be let go again."""
        self._waits = False
        self._keeps, self._opened = record is not None, False
        self._by_hand = policy is None
        self._goes_on = False
        self._yours = 0
        start = partial(
            PlaySession.start,
            policy,
            env_id=env_id,
            env_kwargs=env_kwargs,
            record=record,
            folder=folder,
            var=var,
            deterministic=deterministic,
            frames=True,
        )
        self._order(lambda: self._begin(seed))
        self._thread = threading.Thread(target=self._serve, args=(start,), name="play", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The session's process, while there is one."""
        session = self._session
        return None if session is None else session.pid

    def take(self) -> list[News]:
        """What has come since the last call; of steps that ran past unseen only the newest."""
        with self._lock:
            news, self._news = self._news, []
        return news

    def reset(self, seed: int | None = None) -> None:
        """Begin an episode, with the next seed unless one is given."""
        self._order(lambda: self._begin(seed))

    def step(self, action: Any = None) -> None:
        """Take one step, with the policy's action unless one is given."""
        self._order(lambda: self._step(action))

    def run(self, running: bool) -> None:
        """Step by itself, or stop that."""
        self._order(lambda: self._run(running))

    def set_speed(self, steps_per_second: float) -> None:
        self._order(lambda: setattr(self, "_speed", steps_per_second))

    def hold(self, action: Any) -> None:
        """Take this action in every step while it runs; None: the policy's own."""
        self.hold_in_turn(() if action is None else (action,))

    def hold_in_turn(self, actions: Sequence[Any]) -> None:
        """Take these actions one after the other, over and over, while it runs; none: the policy's own."""
        self._order(lambda: setattr(self, "_held", actions))

    def press(self, action: Any, actions: Sequence[Any]) -> None:
        """As `hold_in_turn`, and the next step is to have `action`, however soon it is let go."""
        self._order(lambda: self._press(action, actions))

    def wait_for_keys(self, waits: bool) -> None:
        """Whether time stands still while no action is held."""
        self._order(lambda: setattr(self, "_waits", waits))

    def record(self, folder: Path | None) -> None:
        """Keep the episodes from the next one on in a folder; None ends that."""
        self._keeps = self._keeps or folder is not None
        self._order(lambda: self._record(folder))

    def go_on(self, goes_on: bool) -> None:
        """Whether the next episode begins by itself while it runs."""
        self._order(lambda: setattr(self, "_goes_on", goes_on))

    def end(self) -> None:
        """End the session's process, without a wait; nothing more is told of it."""
        with self._lock:
            self._killed = True
            session = self._session
        # One that keeps episodes is asked to end; any other leaves nothing that could be half done.
        if session is not None and not (self._keeps and self._opened):
            session.kill()
        self._order(lambda: None)

    def close(self) -> None:
        """As `end`, and wait until process and thread are gone."""
        self.end()
        self._thread.join(_SAVING_SECONDS)
        with self._lock:
            session = self._session
        if session is not None:
            session.kill()
        self._thread.join()

    def _order(self, work: Callable[[], None]) -> None:
        self._orders.put(work)

    def _serve(self, start: Callable[..., PlaySession]) -> None:
        try:
            with start(on_spawn=self._spawned) as session:
                self._opened = True
                self._tell(Opened(session.init))
                while not self._killed:
                    self._work()
                if self._keeps:
                    session.stop()
        except MosaicError as error:
            self._tell(Closed(str(error)))
        except OSError as error:
            self._tell(Closed(f"The session cannot be started: {error.strerror}."))
        with self._lock:
            self._session = None

    def _spawned(self, session: PlaySession) -> None:
        with self._lock:
            self._session = session
            killed = self._killed
        if killed:
            session.kill()

    def _work(self) -> None:
        """The next thing that was asked for, or the next step when its time has come."""
        stands_still = self._waits and not self._held and self._tapped is None
        runs = self._running and not stands_still
        wait = max(0.0, self._due - time.monotonic()) if runs else None
        try:
            order = self._orders.get(timeout=wait)
        except queue.Empty:
            order = self._tick
        try:
            order()
        except Refused as refused:
            self._running = False
            self._tell(Refusal(str(refused)))

    def _tick(self) -> None:
        # Counted from when it was due, unless that is long ago: the machine may be slower than asked for.
        self._due = max(self._due + 1.0 / self._speed, time.monotonic())
        action, self._tapped = self._tapped, None
        if action is None and self._held:
            self._turn += 1
            action = self._held[self._turn % len(self._held)]
        self._step(action)

    def _press(self, action: Any, actions: Sequence[Any]) -> None:
        self._tapped, self._held = action, actions

    def _record(self, folder: Path | None) -> None:
        assert self._session is not None
        told = self._session.record(folder)
        self._tell(Recording(told["folder"], told.get("recorded")))

    def _run(self, running: bool) -> None:
        self._running, self._due = running, time.monotonic()
        if self._over and running:
            self._begin(None)
        self._tell(Running(running))

    def _begin(self, seed: int | None) -> None:
        assert self._session is not None
        self._over, self._yours, self._tapped = False, 0, None
        self._show(self._session.reset(seed))

    def _step(self, action: Any) -> None:
        if self._over:
            # Who plays by hand sees the end first, though more keys were pressed by then.
            if not self._by_hand:
                self._begin(None)
            return
        assert self._session is not None
        message = self._session.step(action)
        self._yours += message["by"] != "policy"
        self._over = "episode" in message
        if self._over and not self._goes_on:
            self._running = False
        self._show(message)

    def _show(self, message: Message) -> None:
        picture, problem = _picture(message)
        self._tell(Seen(message, picture, problem, self._yours, self._running))

    def _tell(self, news: News) -> None:
        with self._lock:
            if self._killed:
                return
            first = not self._news
            if not first and isinstance(news, Seen) and _passes(self._news[-1]):
                self._news.pop()
            self._news.append(news)
            if first:
                # Under the lock: once `end` has returned, nothing is told any more.
                self.arrived.emit()


def _passes(news: News) -> bool:
    """Whether a later step makes this one needless to show."""
    return isinstance(news, Seen) and not news.last and "seed" not in news.message


def _picture(message: Message) -> tuple[Any, str]:
    frame = message.get("frame")
    if frame is None:
        return None, str(message.get("frame_problem", "none came"))
    try:
        return decode_png(base64.b64decode(frame)), ""
    except (ValueError, binascii.Error) as error:
        return None, str(error)
