"""The tab of a run's trackers: where it is at Weights & Biases, MLflow and trackio, and its page there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import RunFacts, trackers_of
from gym_gui.models.trackers import SEVERAL, TrackerWords, proxy_for, tab_title, with_pages, words_for
from gym_gui.services.tasks import timer
from gym_gui.services.web import LOOPBACK, Web, look_for_web
from gym_gui.theme import SPACE, number_font, theme
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import (
    Button,
    Card,
    ElidedLabel,
    column_of,
    drop,
    empty,
    fill,
    hbox,
    label,
    open_url,
    vbox,
)
from mosaic.client import RunRecord
from mosaic.tracking import TrackerLink

if TYPE_CHECKING:
    from gym_gui.ui.widgets.web_page import WebPage

_LOOK_MS = 2000


class TrackerCard(Card):
    """One tracker: how it is doing, what the run is called there, what can be done."""

    copied = Signal()
    opened = Signal(str)
    """The address that is to be opened in the browser."""
    shown = Signal(bool)
    """Whether the page is wanted below."""

    def __init__(self, link: TrackerLink) -> None:
        super().__init__(spacing=SPACE[1])
        told = words_for(link)
        pill = label(told.state)
        pill.setProperty("pill", told.pill)
        self.page = Button("Show here", role="chip", checkable=True, do=self.shown.emit)
        self.page.hide()
        self.browser = Button("Open in the browser ↗", do=lambda: self.opened.emit(told.url))
        self.browser.setVisible(bool(told.url))
        self._line = ElidedLabel(" · ".join(value for _, value in told.fields), "dim")
        self._room = QWidget()
        middle = Qt.AlignmentFlag.AlignVCenter
        named = hbox(label(told.title, "strong"), (pill, 0, middle), (self._line, 1), (self._room, 1))
        fill(self.column, hbox((named, 1), (self.page, 0, middle), self.browser))
        if told.problem:
            fill(self.column, label(told.problem, "error", selectable=True, wraps=True))
        self.why = label("", "help", wraps=True)
        self.why.hide()
        self._body = column_of()
        fill(self.column, self._body, self.why)
        self._fill_body(told)
        self.set_compact(False)

    def _fill_body(self, told: TrackerWords) -> None:
        body = self._body.layout()
        assert isinstance(body, QBoxLayout)
        if told.fields:
            fill(body, _columns(told.fields))
        if told.notes:
            fill(body, label(told.notes, "dim", selectable=True, wraps=True))
        self.command = label(told.command, selectable=True, wraps=True)
        self.command.setFont(number_font())
        self.copy = Button("Copy", do=self._copy)
        if told.command:
            fill(body, label(told.about_command, "label"), hbox((self.command, 1), self.copy))
        self._has_body = bool(told.fields or told.notes or told.command)

    def set_compact(self, compact: bool) -> None:
        """In one line, to leave room for a page."""
        self._line.setVisible(compact)
        self._room.setVisible(not compact)
        self._body.setVisible(self._has_body and not compact)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copied.emit()


def _columns(fields: Sequence[tuple[str, str]]) -> QWidget:
    made = QWidget()
    row = hbox(on=made, spacing=SPACE[4])
    for name, value in fields:
        row.addLayout(vbox(label(name, "label"), label(value, selectable=True, wraps=True), spacing=0))
    row.addStretch(1)
    return made


class TrackersView(RunView):
    """A card for each tracker; below them the page of one that is online, where QtWebEngine runs."""

    title = SEVERAL

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._links: tuple[TrackerLink, ...] = ()
        self._web: Web | None = None
        self._shown = ""
        """The name of the tracker whose page is below."""
        self._chosen = False
        """Whether a page of this run was shown already; the person may have put it away since."""
        self.cards: dict[str, TrackerCard] = {}
        self.page: WebPage | None = None
        self._proxy = ""
        self._rows = vbox(spacing=SPACE[2])
        below = QWidget()
        self._below = vbox(on=below)
        inset = vbox(self._rows, margins=(SPACE[4], 0, SPACE[4], 0))
        vbox(inset, (below, 1), on=self, margins=(0, SPACE[3], 0, 0), spacing=SPACE[2])
        self._timer = timer(self, _LOOK_MS, self._look)

    @classmethod
    def title_for(cls, facts: RunFacts) -> str:
        return tab_title(facts)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return bool(facts.trackers)

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._links, self._shown, self._chosen = (), "", False
        self._show_cards()
        self._hide_page()

    def enter(self) -> None:
        super().enter()
        self._timer.start()
        self._look()
        if self._shown:
            self._show_page(self._shown)

    def leave(self) -> None:
        super().leave()
        self._timer.stop()
        self._hide_page()

    def close_view(self) -> None:
        super().close_view()
        if self.page is not None:
            self.page.end()

    def _look(self) -> None:
        self.read(trackers_of, self._take)

    def _take(self, links: tuple[TrackerLink, ...]) -> None:
        if not self._visible:
            return
        if self.run.ended and all(link.finished or link.command for link in links):
            self._timer.stop()
        if links != self._links:
            self._links = links
            self._show_cards()
        if self._web is None and with_pages(links):
            self.context.tasks.run(look_for_web, self._take_web, owner=self)
        else:
            self._choose_page()

    def _take_web(self, web: Web) -> None:
        self._web = web
        self._choose_page()

    def _show_cards(self) -> None:
        empty(self._rows)
        self.cards = {}
        for link in self._links:
            card = self.cards[link.name] = TrackerCard(link)
            card.opened.connect(lambda address: open_url(address, self.context.notifications))
            card.copied.connect(lambda: self.context.notifications.tell("The command is in the clipboard."))
            card.shown.connect(lambda on, name=link.name: self._show_page(name if on else ""))
            self._rows.addWidget(card)
        self._mark_cards()

    def _mark_cards(self) -> None:
        """Say on each card whether its page can be shown, and is."""
        for card in self.cards.values():
            card.set_compact(bool(self._shown))
        for link in with_pages(self._links):
            card, why = self.cards[link.name], self._why_not(link)
            card.page.setVisible(self._web is not None and not why)
            card.page.setChecked(link.name == self._shown)
            card.why.setText(why)
            card.why.setVisible(bool(why))

    def _why_not(self, link: TrackerLink) -> str:
        """Why a page is not shown within the window; empty when it is."""
        host = urlsplit(link.url).hostname
        if self._web is None or self._web.problem:
            return "" if self._web is None else self._web.problem
        if self._web.sandboxed or host in LOOPBACK:
            return ""
        return f"The page of {host} opens in the browser only: Chromium's sandbox does not run here."

    def _choose_page(self) -> None:
        """Show the first page that can be shown, unasked."""
        self._mark_cards()
        able = [link.name for link in with_pages(self._links) if not self._why_not(link)]
        if self._visible and self._web is not None and able and not self._chosen:
            self._show_page(able[0])

    def _show_page(self, name: str) -> None:
        self._shown, self._chosen = name, True
        self._mark_cards()
        link = next((one for one in self._links if one.name == name), None)
        if link is None or self._web is None:
            self._hide_page()
            return
        self.read(lambda run: proxy_for(run, link), lambda proxy: self._open(link, proxy))

    def _open(self, link: TrackerLink, proxy: str) -> None:
        if not self._visible or self._shown != link.name:
            return
        if self.page is not None and self._proxy != proxy:
            self.page.end()
            drop(self.page)
            self.page = None
        page = self.page or self._make_page(proxy)
        page.open(link.url, theme.palette.colour("background"))
        page.show()

    def _make_page(self, proxy: str) -> WebPage:
        from gym_gui.ui.widgets.web_page import WebPage

        assert self._web is not None
        page = self.page = WebPage(self._web.sandboxed, local=False, proxy=proxy)
        self._proxy = proxy
        page.left.connect(lambda address: open_url(address, self.context.notifications))
        page.crashed.connect(lambda: self._show_page(""))
        self._below.addWidget(page, 1)
        return page

    def _hide_page(self) -> None:
        if self.page is not None:
            self.page.hide()
