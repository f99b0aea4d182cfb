"""The window: runs on the left, the selected one in the middle, forms and comparisons over both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QByteArray, QMargins, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QMainWindow, QSplitter, QWidget

from gym_gui.context import Context, Settings
from gym_gui.models.runs import RunBook
from gym_gui.models.words import title_of
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.more_runs import MoreRuns, Wish
from gym_gui.services.sparklines import Sparklines
from gym_gui.services.tasks import Notifications, Tasks
from gym_gui.theme import SPACE, put_on, theme
from gym_gui.ui.cover import Cover
from gym_gui.ui.presenters.window import Found, empty_words
from gym_gui.ui.run_actions import News, RunActions
from gym_gui.ui.run_page import RunPage
from gym_gui.ui.views.table import TableView
from gym_gui.ui.widgets.bars import STATUS_HEIGHT, EmptyState, Finder, StatusBar, Toolbar
from gym_gui.ui.widgets.basics import open_path, stacked, vbox
from gym_gui.ui.widgets.hub_cards import PullCard
from gym_gui.ui.widgets.notification_area import NotificationArea, NotificationHistory
from gym_gui.ui.widgets.run_exports import RunExports
from gym_gui.ui.widgets.run_header import run_menu
from gym_gui.ui.widgets.run_panel import PANEL_WIDTH, RunPanel
from gym_gui.ui.widgets.saved_filters import SavedFilterMenu
from mosaic.client import RunRecord
from mosaic.client.groups import defaults_for
from mosaic.client.saved_filters import SavedFilters

SIZE = (1440, 900)
LEAST = (960, 620)
_KEYS = (("Ctrl+F", "filter"), ("Ctrl+M", "messages"), ("Ctrl+Shift+L", "theme"), ("Ctrl+Q", "quit"))
_RUN = "run."
"""Begins the names of commands for the run that is shown."""
_FRAME = QMargins(6, 40, 6, 6)
"""Room for what a window manager puts around the window, which is known only when it has done so."""


class Window(QMainWindow):
    """Wires the parts together. What is shown of which run is decided here, and nothing else."""

    closed = Signal()

    def __init__(
        self, link: DaemonLink, tasks: Tasks, notifications: Notifications, settings: Settings
    ) -> None:
        super().__init__()
        self.setWindowTitle("MOSAIC")
        self.context = Context(
            link, tasks, notifications, RunBook(), settings, self.open_form, self.select_run
        )
        self.actions_on_runs = RunActions(self.context)
        self.sparklines = Sparklines(link.var)
        self.news = News(self.context, self.sparklines)
        self.more = MoreRuns(link, tasks)
        self._wanted: str | None = None
        """The run to show as soon as it is known."""
        self.toolbar = Toolbar()
        self.panel = RunPanel(self.context.runs, self.sparklines)
        self.page = RunPage(self.context, self.actions_on_runs)
        self.empty = EmptyState()
        self.status = StatusBar()
        self._lay_out()
        self.finder = Finder(self._whole, self.context.runs, self._run_commands)
        margin = STATUS_HEIGHT + SPACE[2]
        filters = SavedFilters(link.var)
        for bar in (self.panel.filtering, self.table.filtering):
            SavedFilterMenu(bar, filters, tasks, notifications)
        self.exports = RunExports(self.context, self._whole)
        self.pulling = PullCard(self._whole, link.var)
        self.pulling.evaluation_wanted.connect(lambda path: self.open_form("policy", {"policy": path}))
        self.notification_area = NotificationArea(notifications, self._whole, margin)
        self.history = NotificationHistory(notifications, self._whole, margin)
        self._connect()
        self._restore()
        self._show_empty()

    def _lay_out(self) -> None:
        self.middle = stacked(self.empty, self.page)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.addWidget(self.panel)
        self.splitter.addWidget(self.middle)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setHandleWidth(1)
        self.cover = Cover(self.context, self.splitter, self.page)
        self.table = TableView(self.context, self.actions_on_runs, self.panel.model.listing)
        self.table.hide()
        self._whole = QWidget()
        self._whole.setProperty("role", "page")
        vbox(self.toolbar, (self.cover, 1), self.status, on=self._whole, spacing=0)
        self.setCentralWidget(self._whole)

    def _connect(self) -> None:
        link = self.context.link
        link.runs_changed.connect(self._runs_changed)
        link.runs_removed.connect(self._runs_removed)
        link.health_changed.connect(self.status.show_health)
        link.health_changed.connect(lambda _: self.more.begin())
        link.state_changed.connect(self._daemon_changed)
        self.news.usage.connect(self.status.show_usage)
        self.more.found.connect(self._runs_found)
        self.more.changed.connect(self._show_known)
        self.panel.filtering.changed.connect(self._look_for)
        self.table.order_changed.connect(self._look_for)
        self.panel.list.end_seen.connect(self.more.ask)
        self.table.view.end_seen.connect(self.more.ask)
        self.finder.field.textChanged.connect(self.more.find)
        self.panel.list.chosen.connect(self._chosen)
        self.panel.list.marked.connect(self._marked)
        self.panel.list.menu_wanted.connect(self._open_menu)
        self.panel.table.clicked.connect(self.open_table)
        self.table.closed.connect(self.close_table)
        self.table.opened.connect(self.select_run)
        self.table.filter_changed.connect(self.panel.filtering.set_filter)
        self.table.compare_wanted.connect(self.compare)
        self.table.chosen_changed.connect(lambda _: self._count_chosen())
        self.toolbar.form_wanted.connect(self._open_for_shown)
        self.toolbar.again.clicked.connect(self.actions_on_runs.train_again)
        self.toolbar.compare.clicked.connect(self.compare)
        self.toolbar.finding.clicked.connect(self.finder.open)
        self.empty.go.clicked.connect(self._train_first)
        self.empty.choose.clicked.connect(lambda: self.open_form("train", {}))
        self.actions_on_runs.queued.connect(self._show_queued)
        self.actions_on_runs.written.connect(self.exports.ask)
        self.exports.imported.connect(self.select_run)
        self.cover.submitted.connect(self.actions_on_runs.submitted)
        self.finder.chosen.connect(self._found)
        self.context.notifications.posted.connect(lambda _: self.status.count_message())
        self.status.messages.clicked.connect(self.history.open)
        self.notification_area.history_wanted.connect(self.history.open)
        self.history.opened.connect(self.status.messages_read)
        self.history.opened.connect(self.notification_area.dismiss)
        self.history.muted.connect(self._mute)
        for keys, name in _KEYS:
            QShortcut(QKeySequence(keys), self).activated.connect(lambda name=name: self._do(name))

    def open_form(self, purpose: str, prefill: dict[str, Any]) -> None:
        """Show a worker's form over the window."""
        self.cover.open_form(purpose, prefill)

    def _open_for_shown(self, purpose: str) -> None:
        """Show a form, for the run that is shown where that run will do."""
        self.open_form(purpose, self.page.prefill(purpose))

    def compare(self) -> None:
        """Show the marked runs side by side."""
        self.cover.compare(self._chosen_runs())

    def _chosen_runs(self) -> list[RunRecord]:
        """What is marked in the list, or in the table while that is shown."""
        return self.panel.marked_runs() if self.cover.table is None else self.table.chosen()

    def _count_chosen(self) -> None:
        self.toolbar.set_chosen(len(self._chosen_runs()))

    def open_table(self) -> None:
        """Show all runs as a table, filtered as the list is."""
        self.cover.uncover()
        if self.cover.currentWidget() is self.splitter:
            self.table.filtering.set_filter(self.panel.filtering.filter)
            self.table.view.select(())
            self.cover.show_table(self.table)
            self._look_for()
            self.table.view.select(self.panel.list.chosen_ids())

    def close_table(self) -> None:
        """Show list and page again."""
        self.cover.show_table(None)
        self._look_for()
        self._count_chosen()

    def _open_menu(self, at: QPoint) -> None:
        """What a right click on the list offers, for all marked runs."""
        runs = self.panel.marked_runs()
        run_menu(self, runs, len(self.panel.list.chosen_rows()), self._ask).popup(at)

    def _ask(self, name: str) -> None:
        if name == "compare":
            self.compare()
        elif name != "open":
            self.page.header.ask(name)

    def _marked(self, ids: Sequence[str]) -> None:
        self._count_chosen()
        self.page.set_marked(self.panel.marked_runs() if self.panel.several else [])

    def select_run(self, run_id: str) -> None:
        """Show a run, now or as soon as the daemon has told of it."""
        run = self.context.runs.get(run_id)
        if run is None:
            self._wanted = run_id
            self.context.link.feed.want(run_id)
            return
        self._wanted = None
        self.cover.uncover()
        if self.cover.table is not None:
            self.close_table()
        self.panel.select(run_id)
        self._show(run, self.panel.stands_for_group(run_id))
        # Else it may go to a button that ends the run, where the next key would press it.
        self.panel.list.setFocus()

    def _show_queued(self, run_id: str) -> None:
        """Whatever was looked at of another run, a new one is watched from its first tab."""
        self.page.prefer_first()
        self.select_run(run_id)

    def _chosen(self, run_id: str, whole: bool) -> None:
        run = self.context.runs.get(run_id)
        if run is not None:
            self._show(run, whole)

    def _show(self, run: RunRecord, whole: bool) -> None:
        self.empty.set_busy(False)
        self.page.show_run(run, whole)
        self.middle.setCurrentWidget(self.page)

    def _show_empty(self) -> None:
        link = self.context.link
        self.empty.show_words(*empty_words(link.state, link.reason, link.listed, len(self.context.runs) > 0))
        if self.page.run is None:
            self.middle.setCurrentWidget(self.empty)

    def _runs_changed(self, records: Sequence[RunRecord]) -> None:
        groups = self.news.take(records)
        self.panel.update_groups(groups)
        self.table.update_groups(groups)
        self.cover.update_runs(records)
        self._learn_defaults(records)
        self._update_page(groups)
        self.toolbar.set_again(self.news.again_words())
        if self._wanted is not None and self.context.runs.get(self._wanted) is not None:
            self.select_run(self._wanted)
        elif self._may_choose():
            newest = self.context.runs.group(self.context.runs.group_keys()[0])
            if newest is not None:
                self.select_run(newest.first.run_id)
        self._show_empty()

    def _may_choose(self) -> bool:
        """Whether the newest run is shown without being asked for; nobody is taken out of a game for it."""
        nothing = self.page.run is None and self._wanted is None
        return nothing and len(self.context.runs) > 0 and not self.cover.plays

    def _runs_found(self, records: Sequence[RunRecord]) -> None:
        """Runs that somebody looked for. Those that are known may be newer than what was found."""
        unknown = [run for run in records if self.context.runs.get(run.run_id) is None]
        if unknown:
            self._runs_changed(unknown)
            self.finder.look_again()

    def _look_for(self) -> None:
        """Have runs found that are looked at and not known."""
        wanted, table = self.panel.filtering.filter, self.table.table
        covered = self.cover.table is not None
        self.more.look_for(Wish(wanted, table.sorted_by, table.descending) if covered else Wish(wanted))
        self._show_known()

    def _show_known(self) -> None:
        """Not all of very many runs are known: say so, and show no list with gaps."""
        if not self.more.partial:
            return
        last, counts, busy = self.more.last, self.more.counts, self.more.busy
        self.panel.show_known(last if self.cover.table is None else None, counts, busy)
        self.table.show_known(last, counts, busy)
        if not busy:
            # What has come may lie beyond the end, in a group that is not whole: then more is needed.
            self.panel.list.measure()
        waiting = (counts or {}).get("waiting", 0)
        self.context.runs.whole_queue = waiting <= len(self.context.runs.queue())

    def _learn_defaults(self, records: Sequence[RunRecord]) -> None:
        """Conditions and the table know the parameters that nobody asked for as well."""
        unknown = self.context.runs.unknown_algorithms(records)
        if unknown:
            # Whatever comes of it, it is asked for once.
            self.context.runs.set_defaults({str(run.worker_config.get("algo")): {} for run in unknown})
            self.context.tasks.run(
                lambda: defaults_for(unknown), self._take_defaults, lambda _: None, owner=self
            )

    def _take_defaults(self, defaults: dict[str, dict[str, Any]]) -> None:
        self.context.runs.set_defaults(defaults)
        self.panel.look_again()
        self.table.look_again()

    def _update_page(self, groups: set[str]) -> None:
        shown = self.page.run
        group = self.context.runs.group_of(shown.run_id) if shown else None
        if shown is None or group is None or group.key not in groups:
            return
        record = group.runs[shown.run_id]
        if record is not shown:
            self.page.update_run(record)
        else:
            self.page.show_header()

    def _runs_removed(self, run_ids: Sequence[str]) -> None:
        gone, shown = set(run_ids), self.page.run
        beside = self.panel.list.beside(gone)
        groups = self.news.forget(run_ids)
        self.panel.update_groups(groups)
        self.table.update_groups(groups)
        self._marked(self.panel.list.chosen_ids())
        if shown is None or shown.run_id not in gone:
            return
        self.page.clear()
        run = self.context.runs.get(beside or "")
        if run is None:
            self._show_empty()
        else:
            self.panel.list.select(run.run_id)
            self._show(run, self.panel.stands_for_group(run.run_id))

    def _daemon_changed(self, state: str) -> None:
        self.status.show_daemon(state, self.context.link.reason)
        self._show_empty()

    def _train_first(self) -> None:
        def failed(error: Exception) -> None:
            self.empty.set_busy(False)
            self.context.notifications.tell_error(error)

        self.empty.set_busy(True)
        self.actions_on_runs.train_first(failed)

    def _run_commands(self) -> list[Found]:
        """What can be done with the run that is shown."""
        title = title_of(self.page.run) if self.page.run else ""
        offers = self.page.header.offers() if self.page.run else {}
        return [Found(f"{_RUN}{name}", text, title) for name, text in offers.items()]

    def _found(self, found: Found) -> None:
        if found.is_run:
            self.select_run(found.name)
        elif found.name.startswith(_RUN):
            self.page.header.ask(found.name.removeprefix(_RUN))
        else:
            self._do(found.name)

    def _do(self, name: str) -> None:
        """A command of the finder or of a key."""
        log = self.context.link.var / "logs" / "gym_gui.log"
        commands: dict[str, Callable[[], object]] = {
            "again": self.actions_on_runs.train_again,
            "compare": self.compare,
            "filter": self._filter,
            "messages": self.history.open,
            "table": self.open_table,
            "import": self.exports.ask_import,
            "pull": self.pulling.open,
            "theme": lambda: self._choose_theme("dark" if theme.name == "light" else "light"),
            "theme_system": lambda: self._choose_theme(None),
            "log": lambda: open_path(log, self.context.notifications),
            "quit": self.close,
        }
        commands.get(name, lambda: self._open_for_shown(name))()

    def _choose_theme(self, name: str | None) -> None:
        """Change the theme now and for the next start; None follows the system."""
        put_on(name)
        self.context.settings.set("theme", name)
        self.context.tasks.run(self.context.settings.save, lambda _: None)

    def _filter(self) -> None:
        self.cover.uncover()
        (self.panel if self.cover.table is None else self.table).filtering.field.setFocus()

    def _mute(self, muted: bool) -> None:
        self.notification_area.muted = muted
        self.context.settings.set("muted", muted or None)

    def _restore(self) -> None:
        self.history.mute.setChecked(bool(self.context.settings.get("muted")))
        geometry = self.context.settings.get("geometry")
        self.resize(*SIZE)
        if geometry:
            self.restoreGeometry(QByteArray.fromBase64(QByteArray(geometry.encode())))
        room = self.screen().availableGeometry().marginsRemoved(_FRAME)
        self.setMinimumSize(min(LEAST[0], room.width()), min(LEAST[1], room.height()))
        if self.isMaximized() or self.isFullScreen():
            return
        self.resize(self.size().boundedTo(room.size()))
        # What has no place yet is put somewhere by the window manager.
        if geometry:
            self.setGeometry(inside(self.geometry(), room))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Before it is shown a splitter does not know how wide it is, and shares out what it is given.
        width = int(self.context.settings.get("panel_width") or PANEL_WIDTH)
        self.splitter.setSizes([width, max(1, self.width() - width)])
        self.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.cover.may_close():
            event.ignore()
            return
        self.context.settings.set("geometry", bytes(self.saveGeometry().toBase64().data()).decode())
        self.context.settings.set("panel_width", self.splitter.sizes()[0])
        event.accept()
        self.hide()
        self.shut_down()
        self.closed.emit()

    def shut_down(self) -> None:
        """End every timer and thread of the window, once. No run is stopped."""
        self.pulling.leave()
        self.exports.close()
        self.news.close()
        self.more.close()
        self.cover.close_views()
        self.table.close_view()
        self.page.close_page()
        self.panel.list.close_list()
        self.sparklines.close()
        self.context.board.close()


def inside(area: QRect, room: QRect) -> QRect:
    """An area moved as far as it must be to lie in a room that is not smaller."""
    left = max(room.left(), min(area.left(), room.right() + 1 - area.width()))
    top = max(room.top(), min(area.top(), room.bottom() + 1 - area.height()))
    return QRect(left, top, area.width(), area.height())
