"""What a view is given, without a window around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QApplication, QWidget

from gym_gui.context import Context, Settings
from gym_gui.models.runs import RunBook
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Notifications, Tasks


class Told:
    """What a view has asked of the window, and told the person."""

    def __init__(self, notifications: Notifications) -> None:
        self.forms: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        notifications.posted.connect(lambda one: self.texts.append(one.text))


@contextmanager
def view_context(var: Path) -> Iterator[tuple[Context, Told]]:
    """The services for views; they end at the end."""
    notifications = Notifications()
    tasks, link = Tasks(notifications), DaemonLink(var)
    told = Told(notifications)
    context = Context(
        link,
        tasks,
        notifications,
        RunBook(),
        Settings(var),
        lambda purpose, prefill: told.forms.append((purpose, prefill)),
        lambda run_id: None,
    )
    try:
        yield context, told
    finally:
        link.close()
        tasks.close()


@contextmanager
def shown(widget: QWidget, width: int = 1000, height: int = 700) -> Iterator[QWidget]:
    """A widget on the screen, gone at the end."""
    widget.resize(width, height)
    widget.show()
    QApplication.processEvents()
    try:
        yield widget
    finally:
        widget.close()
        widget.deleteLater()
        QApplication.sendPostedEvents(None, 52)  # type: ignore[arg-type]
        QApplication.processEvents()
