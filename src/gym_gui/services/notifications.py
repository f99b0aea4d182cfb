"""What happens in the background and a person should know: one place for all of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from gym_gui import log
from mosaic.contract.errors import MosaicError

Action = tuple[str, Callable[[], object]]
"""The words of a button, and what it does."""
_MOST_KEPT = 60


@dataclass(frozen=True)
class Notification:
    """One thing that was told."""

    text: str
    kind: str = "info"
    action: Action | None = None
    aside: bool = False
    """Whether it came by itself, and answers nothing that the person did: then it can be muted."""
    at: float = field(default_factory=time.time)


class Notifications(QObject):
    """Anyone may tell something, from any thread; the window shows it, and it is kept here and in the log."""

    posted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.history: deque[Notification] = deque(maxlen=_MOST_KEPT)
        """What was told, newest last."""

    def tell(self, text: str, kind: str = "info", action: Action | None = None, aside: bool = False) -> None:
        """`kind` is `info`, `good`, `warn` or `bad`; `action` is what the person may do about it."""
        note = log.warning if kind in ("warn", "bad") else log.info
        note(log.Code.TOLD, text)
        told = Notification(text, kind, action, aside)
        self.history.append(told)
        self.posted.emit(told)

    def tell_error(self, error: BaseException) -> None:
        """Ours says what is wrong itself; any other is a fault, and its traceback goes to the log."""
        if isinstance(error, MosaicError):
            self.tell(str(error), "bad")
            return
        log.fault("a fault was told of", error)
        self.tell(f"Something unexpected went wrong ({type(error).__name__}: {error}).", "bad")
