"""A person at the window who does anything, at random."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QTabBar,
    QWidget,
)

from gui_cases.hands import Hands
from gym_gui.ui.widgets.cleanrl_forms import CleanRLTrainForm
from gym_gui.ui.widgets.form_frame import FormFrame
from gym_gui.ui.window import Window

W = TypeVar("W", bound=QWidget)
Pauses = Iterator[float]
"""What is being done gives the milliseconds to wait before it goes on."""

_PAUSE_MS = 50.0
_ROUND_ROWS = 6
_MOST_TRIES = 12
"""Until a form is changed: what is typed may land in a search, or say what stood there."""
_FORM_KEYS = {"train": "ctrl+t", "policy": "ctrl+e", "resume": "ctrl+r", "script": "ctrl+j"}
_TEXTS = ("0", "0.001", "12", "-3", "cart", "abc", "1,2,3", "env=1", "x y", "1e-4", "pend", "ppo")
_FILTERS = ("curve", "ppo", "cart", "seed 2", "zz", "frames", "completed")
_SIZES = ((1440, 860), (1024, 700), (1280, 800), (1100, 640), (960, 620))
# What these do reaches beyond the window: packages, other programs, the disk, the end.
_HANDS_OFF = re.compile(r"install|tensorboard|file|export|quit", re.IGNORECASE)
_SUBMIT_STEPS = "2000"


class Person:
    """Looks at what is on the screen, chooses some of it, and uses it."""

    def __init__(
        self, window: Window, hands: Hands, chance: random.Random, note: Callable[[str], None]
    ) -> None:
        """`note` is told of each action before it is done."""
        self._window = window
        self._hands = hands
        self._chance = chance
        self._note = note
        self._top: QWidget = window
        self.actions = 0

    def act(self) -> Pauses:
        """One thing that a person would do, with all its clicks and keys."""
        things = {
            self._visit_form: 16,
            self._choose_tab: 14,
            self._choose_run: 14,
            self._compare: 6,
            self._press_any: 10,
            self._scroll: 6,
            self._filter: 5,
            self._find: 5,
            self._change_theme: 2,
            self._resize: 2,
        }
        [thing] = self._chance.choices(list(things), list(things.values()))
        yield from thing()

    def look_round(self) -> Pauses:
        """Every form, with a change that has it kept, and every tab of some runs: all is in memory once."""
        for keys in _FORM_KEYS.values():
            yield from self._key(keys)
            yield from self._wait_for_form()
            for _ in range(_MOST_TRIES):
                yield from self._type_somewhere()
                yield 200
                if (form := self._form()) is None or form.has_changes:
                    break
            for _ in range(2):
                yield from self._key("Escape")
        rows, bar = self._window.panel.list, self._window.page.bar
        for row in range(min(_ROUND_ROWS, rows.model().rowCount())):
            yield from self._click(rows.viewport(), rows.visualRect(rows.model().index(row, 0)))
            yield 300
            for tab in range(bar.count()):
                yield from self._click(bar, bar.tabRect(tab))
                yield 300
        yield from self._compare()

    def go_home(self) -> Pauses:
        """Back to the runs at the window's first size, so that two looks at the memory see the same."""
        for _ in range(3):
            yield from self._key("Escape")
        cards = self._window.notification_area.cards
        if cards and cards[-1].isVisible():
            yield from self._click(cards[-1].dismiss)
        if self._window.panel.field.text():
            yield from self._key("ctrl+f")
            yield from self._key("ctrl+a")
            yield from self._key("Delete")
            yield from self._key("Escape")
        self._did(f"resize to {_SIZES[0]}")
        self._hands.resize(self._window, *_SIZES[0])
        yield 300
        rows = self._window.panel.list
        yield from self._click(rows.viewport(), rows.visualRect(rows.model().index(0, 0)))
        bar = self._window.page.bar
        if bar.isVisible():
            yield from self._click(bar, bar.tabRect(0))
        yield 300

    # The things that are done.

    def _visit_form(self) -> Pauses:
        purpose = self._chance.choice(list(_FORM_KEYS))
        button = getattr(self._window.toolbar, purpose)
        if self._chance.random() < 0.5 and button.isVisible():
            yield from self._click(button)
        else:
            yield from self._key(_FORM_KEYS[purpose])
        yield from self._wait_for_form()
        for _ in range(self._chance.randint(1, 5)):
            yield from self._use_form()
        roll = self._chance.random()
        if roll < 0.15:
            yield from self._key("F5")
            yield 1500
        elif roll < 0.25:
            yield from self._submit()
        for _ in range(2):
            yield from self._key("Escape")

    def _wait_for_form(self) -> Pauses:
        for _ in range(60):
            yield 50
            if (form := self._form()) is not None and form.footer.submit.isEnabled():
                return

    def _use_form(self) -> Pauses:
        form = self._form()
        if form is None:
            return
        way = self._chance.choice((self._type_somewhere, self._choose_somewhere, self._press_any, self._pick))
        yield from way()

    def _submit(self) -> Pauses:
        """Few steps: what is trained must also end."""
        form = self._form()
        if isinstance(form, CleanRLTrainForm):
            yield from self._click(form.steps.editor)
            yield from self._key("ctrl+a")
            yield from self._type(_SUBMIT_STEPS)
            yield from self._key("ctrl+Return")
            yield 2500

    def _type_somewhere(self) -> Pauses:
        fields = [*self._seen(QLineEdit), *self._seen(QPlainTextEdit)]
        if fields:
            yield from self._click(self._chance.choice(fields))
            if self._chance.random() < 0.5:
                yield from self._key("ctrl+a")
            yield from self._type(self._chance.choice(_TEXTS))
            if self._chance.random() < 0.5:
                yield from self._key(self._chance.choice(("Tab", "Down", "Return", "Escape")))

    def _choose_somewhere(self) -> Pauses:
        boxes = self._seen(QComboBox)
        if boxes:
            yield from self._click(self._chance.choice(boxes))
            yield 100
            for _ in range(self._chance.randint(0, 4)):
                yield from self._key(self._chance.choice(("Down", "Down", "Up")))
            yield from self._key(self._chance.choice(("Return", "Escape")))

    def _pick(self) -> Pauses:
        """A row of a list, or a box to tick."""
        things = [*self._seen(QAbstractItemView), *self._seen(QCheckBox)]
        if things:
            thing = self._chance.choice(things)
            yield from self._click(thing.viewport() if isinstance(thing, QAbstractItemView) else thing)
            yield 100

    def _choose_tab(self) -> Pauses:
        bars = self._seen(QTabBar)
        if bars:
            bar = self._chance.choice(bars)
            yield from self._click(bar, bar.tabRect(self._chance.randrange(max(1, bar.count()))))
            yield self._chance.choice((50, 200, 600))

    def _choose_run(self) -> Pauses:
        modifier = self._chance.choice(("", "", "", "ctrl", "shift"))
        yield from self._click(self._window.panel.list.viewport(), modifier=modifier)
        if self._chance.random() < 0.3:
            for _ in range(self._chance.randint(1, 6)):
                yield from self._key(self._chance.choice(("Down", "Up")))
        yield self._chance.choice((50, 200, 600))

    def _compare(self) -> Pauses:
        yield from self._click(self._window.panel.list.viewport())
        for _ in range(self._chance.randint(1, 4)):
            yield from self._click(self._window.panel.list.viewport(), modifier="ctrl")
        yield from self._key("ctrl+d")
        yield self._chance.choice((200, 800))
        for _ in range(self._chance.randint(0, 3)):
            yield from self._press_any()
        yield from self._key("Escape")

    def _press_any(self) -> Pauses:
        buttons = [one for one in self._seen(QAbstractButton) if not _HANDS_OFF.search(_words(one))]
        if buttons:
            yield from self._click(self._chance.choice(buttons))
            yield 100
        if QApplication.activePopupWidget() is not None:
            yield from self._key(self._chance.choice(("Down", "Escape")))
            yield from self._key("Escape")

    def _scroll(self) -> Pauses:
        areas = [*self._seen(QAbstractItemView), *self._seen(QScrollArea)]
        if areas:
            at = self._place_in(self._chance.choice(areas))
            for _ in range(self._chance.randint(1, 4)):
                down = self._chance.random() < 0.6
                self._did(f"wheel {'down' if down else 'up'} at {at.x()},{at.y()}")
                self._hands.wheel(at, down)
                yield _PAUSE_MS

    def _filter(self) -> Pauses:
        yield from self._key("ctrl+f")
        yield from self._key("ctrl+a")
        yield from self._type(self._chance.choice(_FILTERS))
        yield 300
        if self._chance.random() < 0.7:
            yield from self._key("ctrl+a")
            yield from self._key("Delete")
        yield from self._key("Escape")

    def _find(self) -> Pauses:
        yield from self._key("ctrl+k")
        yield from self._type(self._chance.choice(_FILTERS))
        yield 200
        for _ in range(self._chance.randint(0, 3)):
            yield from self._key("Down")
        # Words above find no command that closes the window or opens another program.
        yield from self._key(self._chance.choice(("Return", "Escape")))
        yield from self._key("Escape")

    def _change_theme(self) -> Pauses:
        yield from self._key("ctrl+shift+l")
        yield 300

    def _resize(self) -> Pauses:
        size = self._chance.choice(_SIZES)
        self._did(f"resize to {size}")
        self._hands.resize(self._window, *size)
        yield 300

    # What hands do.

    def _click(self, widget: QWidget, within: QRect | None = None, modifier: str = "") -> Pauses:
        at = self._place_in(widget, within)
        held = f" with {modifier}" if modifier else ""
        self._did(f"click{held} {type(widget).__name__} '{_words(widget)}' at {at.x()},{at.y()}")
        self._hands.click(at, modifier)
        yield _PAUSE_MS

    def _key(self, keys: str) -> Pauses:
        self._did(f"key {keys}")
        self._hands.key(keys)
        yield _PAUSE_MS

    def _type(self, text: str) -> Pauses:
        self._did(f"type '{text}'")
        self._hands.type(text)
        yield _PAUSE_MS

    def _did(self, what: str) -> None:
        self.actions += 1
        self._note(what)

    # What eyes see.

    def _form(self) -> FormFrame | None:  # type: ignore[type-arg]
        form = self._window.cover.form
        return form if isinstance(form, FormFrame) else None

    def _seen(self, kind: type[W]) -> list[W]:
        """What can be used now of this kind: in a dialog while one is open."""
        # Kept: what is found below a popup can be used only as long as there is a reference to the popup.
        self._top = QApplication.activePopupWidget() or QApplication.activeModalWidget() or self._window
        return [
            one
            for one in self._top.findChildren(kind)
            if one.isVisible() and one.isEnabled() and not one.visibleRegion().isEmpty()
        ]

    def _place_in(self, widget: QWidget, within: QRect | None = None) -> QPoint:
        """Somewhere on what can be seen of a widget, in places of the screen."""
        area = widget.visibleRegion().boundingRect()
        area = area.intersected(within) if within is not None else area
        if isinstance(widget, QAbstractButton | QLineEdit | QComboBox) or area.isEmpty():
            return widget.mapToGlobal(area.center())
        x = self._chance.randrange(area.left(), area.right() + 1)
        y = self._chance.randrange(area.top(), area.bottom() + 1)
        return widget.mapToGlobal(QPoint(x, y))


def _words(widget: QWidget) -> str:
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    return " ".join(filter(None, (text, widget.accessibleName(), widget.toolTip())))[:40]
