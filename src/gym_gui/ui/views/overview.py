"""The Overview tab, how a run is doing at a glance, and the Live tab, what its environments look like."""

from __future__ import annotations

from PySide6.QtWidgets import QSizePolicy, QWidget

from gym_gui.context import Context
from gym_gui.models.hud import shows_frames
from gym_gui.models.run_files import RunFacts, computed_by, hub_text, summary_of
from gym_gui.models.words import is_evaluation, is_sweep, state_of
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.overview import headlines, notice
from gym_gui.ui.views.base import RunView
from gym_gui.ui.views.charts import Problems
from gym_gui.ui.widgets.basics import PAGE, Card, column_of, hbox, label, restyle, scrolled, vbox
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.live_panel import LivePanel
from gym_gui.ui.widgets.overview_charts import HeadlineCards, OverviewCharts
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord

_CLOCK_MS = 1000
_SAID_ELSEWHERE = ("environment", "pictures")
"""Of what a check has found."""


class LiveView(RunView):
    """The picture or the grid, as large as the window allows."""

    title = "Live"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.panel = LivePanel(heading=False)
        vbox(Card(self.panel), on=self, margins=PAGE)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_frames or (not run.ended and shows_frames(run) and not is_sweep(run))

    def show_run(self, run: RunRecord) -> None:
        self.panel.show_run(run)

    def update_run(self, run: RunRecord) -> None:
        self.panel.update_run(run)

    def enter(self) -> None:
        self.panel.start()

    def leave(self) -> None:
        self.panel.stop()


class _Page(QWidget):
    """Scrolls when its charts have less than they need, not less than they would like."""

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        return super().heightForWidth(width) if layout is None else layout.totalMinimumHeightForWidth(width)


class OverviewView(RunView):
    """Numbers, the live picture beside the return, and the curves that are worth a look."""

    title = "Overview"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._summary: EvalSummary | None = None
        self._asked_how = False
        """Whether a run that has ended was asked what has computed its losses."""
        self.cards = HeadlineCards()
        self.live = LivePanel()
        self.charts = OverviewCharts(context)
        self._clock = timer(self, _CLOCK_MS, self._tick)
        self._build()
        self.charts.changed.connect(self._show_numbers)
        self.charts.main.enlarge.connect(lambda: self.large.open_chart(self.charts.main))
        self.charts.below.enlarge.connect(self.large.open_chart)

    def _build(self) -> None:
        self._notice_title = label("", "strong")
        self.notice_text = label("", "dim", selectable=True, wraps=True)
        self.notice = Card(self._notice_title, self.notice_text, role="raised")
        self.computed = label("", "label", selectable=True, wraps=True)
        self.computed.hide()
        self.checked = label("", "label", selectable=True, wraps=True)
        self.hub = label("", "label", selectable=True, wraps=True)
        self.about = column_of(self.computed, self.checked, self.hub, spacing=SPACE[0])
        self.live_card = Card(self.live)
        for half in (self.live_card, self.charts.main):
            # Both take half of the room, whatever is in them.
            half.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.problems = Problems(self.charts.feed)
        halves = hbox((self.live_card, 1), (self.charts.main, 1), spacing=SPACE[2])
        parts = (self.notice, self.problems, self.cards, self.about, (halves, 3), (self.charts.below, 2))
        page = _Page()
        vbox(*parts, on=page, margins=PAGE, spacing=SPACE[2])
        area = scrolled(page)
        vbox(area, on=self)
        self.large = LargeChart(self.context, self, area, SPACE[4], SPACE[3])

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return not is_sweep(run)

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._summary, self._asked_how = None, False
        self._show_computed("")
        self._show_hub("")
        checked = " · ".join(f"{name} {told}" for name, told in run.checked if name not in _SAID_ELSEWHERE)
        self.checked.setText(f"Checked before it was queued: {checked}" if checked else "")
        self.checked.setVisible(bool(checked))
        self.live.show_run(run)
        self.charts.show_run(run)
        self._tick()

    def update_run(self, run: RunRecord) -> None:
        super().update_run(run)
        self.live.update_run(run)
        self.charts.update_run(run)
        if self._visible:
            self.charts.follow_group(self._group())
        self._tick()

    def enter(self) -> None:
        super().enter()
        self.charts.start(self._group())
        self._clock.start()
        self._tick()

    def leave(self) -> None:
        super().leave()
        self._clock.stop()
        self.charts.stop()
        self.live.stop()

    def _group(self) -> list[RunRecord]:
        group = self.context.runs.group_of(self.run.run_id)
        return list(group.runs.values()) if group is not None else [self.run]

    def _tick(self) -> None:
        run = self.run
        self._watch(run)
        self._show_numbers()
        self._show_notice(run)
        if run.ended and not is_evaluation(run):
            # It may be uploaded at any time, also from elsewhere.
            self.read(hub_text, self._show_hub)
        if is_evaluation(run) and (self._summary is None or not run.ended):
            self.read(summary_of, self._take_summary)
        elif run.started_at and not self.computed.text() and not self._asked_how:
            self._asked_how = run.ended
            self.read(computed_by, self._show_computed)

    def _show_hub(self, text: str) -> None:
        self.hub.setText(text)
        self.hub.setVisible(bool(text))

    def _show_computed(self, text: str) -> None:
        self.computed.setText(f"Losses computed by {text}" if text else "")
        self.computed.setVisible(bool(text))

    def _watch(self, run: RunRecord) -> None:
        """Look at the live picture while there can be one."""
        shown = not run.ended and shows_frames(run)
        self.live_card.setVisible(shown)
        if not shown:
            self.live.stop()
        elif self._visible and not self.live.looking:
            self.live.start()

    def _show_numbers(self) -> None:
        self.cards.show_headlines(headlines(self.run, self.charts.per_step(), self._summary))

    def _show_notice(self, run: RunRecord) -> None:
        text, state = notice(run), state_of(run)
        self.notice.setVisible(bool(text))
        self._notice_title.setText(state.word)
        self.notice_text.setText(text)
        restyle(self._notice_title, role={"bad": "error"}.get(state.role, state.role))

    def _take_summary(self, summary: EvalSummary | None) -> None:
        if summary is not None and summary != self._summary:
            self._summary = summary
            self._show_numbers()
            self.charts.show_summary(summary)
