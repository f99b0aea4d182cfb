"""A session with a policy in a thread of its own: what is asked for goes in, news come out."""

from __future__ import annotations

import base64
import binascii
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from gym_gui.ui.presenters.play import Closed, News, Opened, Refusal, Running, Seen
from mosaic.client.playing import Message, PlaySession, Refused
from mosaic.contract.errors import MosaicError
from mosaic.fastlane.png import decode_png


class Play(QObject):
    """One policy being played. `arrived` means that `take` has something."""

    arrived = Signal()

    def __init__(
        self,
        policy: str,
        folder: Path,
        var: Path,
        *,
        deterministic: bool = True,
        seed: int | None = None,
    ) -> None:
        """Start loading the policy, and begin an episode with `seed` as soon as it is there."""
        super().__init__()
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._session: PlaySession | None = None
        self._killed = False
        self._over = False
        self._speed, self._running, self._due = 30.0, False, 0.0
        self._held: Any = None
        self._goes_on = False
        self._yours = 0
        start = partial(
            PlaySession.start, policy, folder=folder, var=var, deterministic=deterministic, frames=True
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
        self._order(lambda: setattr(self, "_held", action))

    def go_on(self, goes_on: bool) -> None:
        """Whether the next episode begins by itself while it runs."""
        self._order(lambda: setattr(self, "_goes_on", goes_on))

    def end(self) -> None:
        """End the session's process, without a wait; nothing more is told of it."""
        with self._lock:
            self._killed = True
            session = self._session
        # It writes nothing, so there is nothing that it could leave half done.
        if session is not None:
            session.kill()
        self._order(lambda: None)

    def close(self) -> None:
        """As `end`, and wait until process and thread are gone."""
        self.end()
        self._thread.join()

    def _order(self, work: Callable[[], None]) -> None:
        self._orders.put(work)

    def _serve(self, start: Callable[..., PlaySession]) -> None:
        try:
            with start(on_spawn=self._spawned) as session:
                self._tell(Opened(session.init))
                while not self._killed:
                    self._work()
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
        wait = max(0.0, self._due - time.monotonic()) if self._running else None
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
        self._step(self._held)

    def _run(self, running: bool) -> None:
        self._running, self._due = running, time.monotonic()
        if self._over and running:
            self._begin(None)
        self._tell(Running(running))

    def _begin(self, seed: int | None) -> None:
        assert self._session is not None
        self._over, self._yours = False, 0
        self._show(self._session.reset(seed))

    def _step(self, action: Any) -> None:
        if self._over:
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
