"""The TensorBoard tab: the real one within the window, or a picture of it and a way to the browser."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.models.form_choices import Requirement
from gym_gui.models.run_files import RunFacts
from gym_gui.models.words import seeds_text, title_of
from gym_gui.services.curves import ComparedRuns
from gym_gui.services.web import Web, look_again, look_for_web
from gym_gui.theme import SPACE, theme
from gym_gui.ui.views.base import RunView
from gym_gui.ui.views.charts import CurvesView
from gym_gui.ui.widgets.basics import Button, ElidedLabel, hbox, label, open_url, restyle, stacked, vbox
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid
from gym_gui.ui.widgets.form_install import InstallCard
from mosaic.client import RunRecord
from mosaic.client.groups import Group

if TYPE_CHECKING:
    from gym_gui.ui.widgets.web_page import WebPage

NOT_YET = "Not available yet: there is nothing in the run's event files so far."
STARTING = "TensorBoard is starting…"
READING = "TensorBoard is reading the run…"
_PREPARE = Template("""
localStorage.setItem("_tb_global_settings", JSON.stringify({
    autoReload: true, timeSeriesSettingsPaneOpened: false,
    ...JSON.parse(localStorage.getItem("_tb_global_settings") ?? "{}"),
}));
addEventListener("DOMContentLoaded", () => { document.documentElement.style.colorScheme = "$scheme"; });
""")
"""TensorBoard's own settings, with others by default, and scroll bars in the colours of the window."""


class BoardPicture(CurvesView):
    """The scalars as TensorBoard shows them: a small chart for each, a line for each run."""

    def __init__(self, context: Context) -> None:
        self._runs: list[RunRecord] = []
        self.compared = ComparedRuns(context.link, context.tasks)
        super().__init__(context, self.compared, ChartGrid(context, small=True))
        self.large = LargeChart(context, self, self.grid, SPACE[4])
        self.grid.enlarge.connect(self.large.open_chart)
        self.empty = label(NOT_YET, "dim", wraps=True)
        self.empty.hide()
        self.compared.progress.connect(self._tell)
        inset = vbox(self.bar, self.problems, self.empty, margins=(SPACE[4], 0, SPACE[4], 0))
        vbox(inset, (self.grid, 1), on=self, spacing=SPACE[2])

    def show_runs(self, runs: Sequence[RunRecord]) -> None:
        """Draw these from now on."""
        others = [run.run_id for run in runs] != [run.run_id for run in self._runs]
        ended = [run.ended for run in runs] != [run.ended for run in self._runs]
        self._runs = list(runs)
        if others:
            self._lines = {}
            self.grid.forget_lines()
        if (others or ended) and self._visible:
            self._open()

    def enter(self) -> None:
        super().enter()
        self._open()

    def _open(self) -> None:
        self.compared.open(self._runs)
        groups = [Group(_label(run, self._runs), (run,), at) for at, run in enumerate(self._runs)]
        self.compared.show(groups, averaged=False)
        self._want()

    def _lay_out(self) -> None:
        super()._lay_out()
        self._tell(0, 0)

    def _tell(self, done: int, total: int) -> None:
        self.empty.setVisible(done == total and not self.compared.tags)

    def _draw(self, tag: str) -> None:
        self.grid.set_lines(tag, self._lines[tag], self.bar.options)


def _label(run: RunRecord, runs: Sequence[RunRecord]) -> str:
    """What tells a run from the others: its seed, where they are of one kind."""
    seed = seeds_text([run.worker_config.get("seed")])
    if len({title_of(one) for one in runs}) == 1 and seed:
        return seed
    return f"{title_of(run)} · {seed}".removesuffix(" · ")


class TensorBoardView(RunView):
    """It shows pages where QtWebEngine runs, which is looked for when the tab is first open."""

    title = "TensorBoard"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._runs: list[RunRecord] = []
        self._web: Web | None = None
        self._browser_wanted = False
        self._loads = 0
        self._shown: tuple[object, ...] = ()
        """What the page shows: other runs or other colours mean that it is loaded anew."""
        self.page: WebPage | None = None
        self.picture = BoardPicture(context)
        self.state = ElidedLabel("", "dim")
        self.install = Button("Install…", do=self._offer)
        self.install.hide()
        self.browser = Button("Open in the browser ↗", do=self._open_in_browser)
        self.browser.setToolTip("It follows the selection in this window")
        self.message = label("", "dim", wraps=True)
        self.again = Button("Try again", do=self._try_again)
        self.card = InstallCard(self)
        self.card.ended.connect(self._installed)
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        waiting = self._waiting = QWidget()
        vbox(1, self.message, hbox(1, self.again, 1), 1, on=waiting, margins=SPACE[4], spacing=SPACE[2])
        self.stack = stacked(waiting, self.picture)
        head = hbox((self.state, 1), self.install, self.browser)
        self.why = label("", "help", selectable=True, wraps=True)
        self.why.hide()
        inset = vbox(head, self.why, self.card, margins=(SPACE[4], 0, SPACE[4], 0))
        vbox(inset, (self.stack, 1), on=self, margins=(0, SPACE[3], 0, 0), spacing=SPACE[2])
        context.board.changed.connect(self._board_changed)
        theme.changed.connect(self._show_page)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_scalars

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._runs = []
        self._cover_page()

    def select_runs(self, runs: Sequence[RunRecord]) -> None:
        if runs == self._runs:
            return
        self._runs = list(runs)
        self.picture.show_runs(runs)
        self.state.setText(_shown_runs(runs))
        if self._visible:
            self._serve()

    def enter(self) -> None:
        super().enter()
        if self._web is None:
            self._say(STARTING)
            self.context.tasks.run(look_for_web, self._take_web, owner=self)
        else:
            self._serve()

    def leave(self) -> None:
        super().leave()
        self._browser_wanted = False
        self.context.board.release()
        self.picture.leave()

    def close_view(self) -> None:
        super().close_view()
        self.card.stop()
        if self.page is not None:
            self.page.end()

    def _take_web(self, web: Web) -> None:
        self._web = web
        self.install.setVisible(web.installable)
        picture = "This is a preview of TensorBoard." if web.problem else ""
        self.why.setText(f"{picture} {web.problem}")
        self.why.setVisible(bool(web.problem))
        if self._visible:
            self._serve()

    def _serve(self) -> None:
        """Show the selected runs; a server is needed for a page of it only."""
        if self._web is None:
            return
        if not self._web.problem or self.context.board.running:
            self.context.board.show(self._runs)
        if self._web.problem:
            self.stack.setCurrentWidget(self.picture)
            self.picture.enter()
        else:
            self._show_page()

    def _board_changed(self) -> None:
        status = self.context.board.status
        if not self._visible:
            return
        if self._browser_wanted and (status.ready or status.error):
            self._browser_wanted = False
            self.browser.setEnabled(True)
            if status.ready:
                open_url(status.address, self.context.notifications)
            elif self._web is not None and self._web.problem:
                self.context.notifications.tell(status.error, "bad")
        if self._web is not None and not self._web.problem:
            self._show_page()

    def _show_page(self) -> None:
        """Have the page in the window where there is one to show, else say what is waited for."""
        status = self.context.board.status
        if not self._visible or self._web is None or self._web.problem:
            return
        if status.error:
            self._say(status.error, failed=True)
        elif not status.runs:
            self._say(READING if status.address else STARTING)
        elif not status.ready:
            self._say(READING if status.wanted else NOT_YET)
        else:
            self._load(status.address, (status.runs, status.listed, theme.name))

    def _load(self, address: str, shown: tuple[object, ...]) -> None:
        page = self.page or self._make_page()
        if (address, *shown) != self._shown:
            self._shown = (address, *shown)
            self._loads += 1
            dark = str(theme.name == "dark").lower()
            page.prepare(_PREPARE.substitute(scheme=theme.name))
            # With the address that it has already, a page would not be loaded anew.
            page.open(f"{address}?darkMode={dark}&shown={self._loads}", theme.palette.colour("background"))
        self.stack.setCurrentWidget(page)

    def _make_page(self) -> WebPage:
        # QtWebEngine is large, and nobody who does not look at a page waits for it.
        from gym_gui.ui.widgets.web_page import WebPage

        assert self._web is not None
        page = self.page = WebPage(self._web.sandboxed)
        page.left.connect(lambda address: open_url(address, self.context.notifications))
        page.crashed.connect(self._page_crashed)
        self.stack.addWidget(page)
        return page

    def _page_crashed(self) -> None:
        self._shown = ()
        self._say("The process that draws the page has ended.", failed=True)

    def _cover_page(self) -> None:
        """Nothing of another run stays in sight."""
        if self._web is not None and not self._web.problem:
            self._say(READING)

    def _say(self, text: str, failed: bool = False) -> None:
        self.message.setText(text)
        restyle(self.message, role="error" if failed else "dim")
        self.again.setVisible(failed)
        self.stack.setCurrentWidget(self._waiting)

    def _try_again(self) -> None:
        self._say(STARTING)
        self._serve()
        self._show_page()

    def _open_in_browser(self) -> None:
        board = self.context.board
        board.show(self._runs)
        if board.status.ready:
            open_url(board.status.address, self.context.notifications)
            return
        self._browser_wanted = True
        self.browser.setEnabled(False)
        self.context.notifications.tell("TensorBoard is starting; it opens in the browser.")

    def _offer(self) -> None:
        self.card.offer([Requirement("web", "TensorBoard within the window")])

    def _installed(self, good: bool, text: str) -> None:
        if not good:
            return
        self.context.notifications.tell(text, "good")
        self.card.hide()
        look_again()
        self._web = None
        self.picture.leave()
        if self._visible:
            self.enter()


def _shown_runs(runs: Sequence[RunRecord]) -> str:
    return "" if len(runs) == 1 else f"{len(runs)} runs"
