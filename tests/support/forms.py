"""Forms of the window, opened without the window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from gym_gui.context import Context, Settings
from gym_gui.models.runs import RunBook
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Notification, Notifications, Tasks
from gym_gui.ui.widgets.form_frame import FormFrame
from mosaic.client import RunRecord
from mosaic.contract.capabilities import find_worker

WAIT_MS = 60_000
F = TypeVar("F", bound=FormFrame[Any])


class Told:
    """What the services of a form have told."""

    def __init__(self, notifications: Notifications) -> None:
        self.notes: list[Notification] = []
        notifications.posted.connect(self.notes.append)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.notes]


@contextmanager
def form_context(var: Path, live: bool = False) -> Iterator[Context]:
    """The services of a window; `live` ones are connected to the daemon, which is started."""
    notifications = Notifications()
    tasks, link = Tasks(notifications), DaemonLink(var)
    made = Context(
        link,
        tasks,
        notifications,
        RunBook(),
        Settings(var),
        lambda purpose, prefill: None,
        lambda run_id: None,
    )
    if live:
        link.start()
    try:
        yield made
    finally:
        link.close()
        tasks.close()


def open_form(qtbot: QtBot, context: Context, kind: type[F], prefill: dict[str, Any] | None = None) -> F:
    """A form that can be used."""
    form = kind(context, find_worker("cleanrl"), prefill or {})
    # One that is closed before it is filled takes all its parts along.
    assert form.install.window() is form
    qtbot.addWidget(form)
    form.resize(1180, 820)
    if not form.footer.submit.isEnabled():
        with qtbot.waitSignal(form.ready, timeout=WAIT_MS):
            pass
    form.show()
    return form


def type_into(qtbot: QtBot, editor: QWidget, text: str) -> None:
    """Put a text in the place of what is there, with the keyboard."""
    assert isinstance(editor, QLineEdit)
    editor.selectAll()
    qtbot.keyClick(editor, Qt.Key.Key_Delete)
    qtbot.keyClicks(editor, text)


def pick(box: QWidget, text: str) -> None:
    """Choose an entry of a box, as a person does."""
    assert isinstance(box, QComboBox)
    at = box.findText(text)
    assert at >= 0, f"there is no '{text}' among {[box.itemText(one) for one in range(box.count())]}"
    box.setCurrentIndex(at)
    box.activated.emit(at)


def check(qtbot: QtBot, form: FormFrame[Any]) -> None:
    """Press the button that checks, and wait for the result."""
    qtbot.mouseClick(form.footer.check, Qt.MouseButton.LeftButton)
    until_answered(qtbot, form)


def until_answered(qtbot: QtBot, form: FormFrame[Any]) -> None:
    """Wait until nothing is being done with an order, and nothing is read for one."""
    qtbot.waitUntil(lambda: not (form.busy or getattr(form, "reading", False)), timeout=WAIT_MS)


def submit(qtbot: QtBot, form: FormFrame[Any]) -> list[RunRecord]:
    """Press the primary button; gives the runs that were submitted."""
    with qtbot.waitSignal(form.submitted, timeout=WAIT_MS) as caught:
        qtbot.mouseClick(form.footer.submit, Qt.MouseButton.LeftButton)
    runs: list[RunRecord] = caught.args[0]
    return runs
