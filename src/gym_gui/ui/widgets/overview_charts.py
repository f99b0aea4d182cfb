"""The numbers and the curves of the overview."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.charting import (
    ChartOptions,
    Line,
    batches_line,
    beside_main,
    head_note,
    main_tag,
    plain,
    reward_per_step,
)
from gym_gui.services.curves import ChartFeed, SeedMean
from gym_gui.services.tasks import timer
from gym_gui.theme import HEADLINE
from gym_gui.ui.presenters.overview import Headline
from gym_gui.ui.widgets.basics import Card, ElidedLabel, NumberLabel, grid
from gym_gui.ui.widgets.chart import READING, Chart
from gym_gui.ui.widgets.chart_grid import remembered_options
from gym_gui.ui.widgets.plot_parts import OTHER
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord

_LEAST_WIDTH = 150
_RETURN, _LENGTH = "charts/episodic_return", "charts/episodic_length"
_EPISODES = 100
_HEIGHT = 330
_SMALL_WIDTH, _SMALL_HEIGHT = 205, 230


class HeadlineCard(Card):
    """One number with its name above and what else is to be said below."""

    def __init__(self) -> None:
        self.name, self.detail = ElidedLabel("", "label"), ElidedLabel("", "label")
        self.value = NumberLabel("–", HEADLINE, bold=True)
        super().__init__(self.name, self.value, self.detail, spacing=2)
        # As wide as its neighbours, whatever each of them says.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)


class Columns(QWidget):
    """Parts beside each other; where there is no room for all, in rows of about the same length."""

    def __init__(self, parts: Sequence[QWidget], least: int, fills: bool) -> None:
        """A part is `least` so wide; with `fills` those of a shorter row share its whole length."""
        super().__init__()
        self._parts, self._least, self._fills = parts, least, fills
        self._count = self._columns = 0
        self._grid = grid(self)

    def arrange(self, count: int, anew: bool = False) -> None:
        """Give the first parts, so many, their places; those that are still to be made have theirs kept."""
        self._count = count
        fit = max(1, min(count, self.width() // self._least))
        if fit < count:
            fit = min(fit, -(-count // 2))
        if not count or (fit == self._columns and not anew):
            return
        self._columns = fit
        columns = math.lcm(fit, count % fit or fit) if self._fills else fit
        for index, part in enumerate(self._parts[:count]):
            row, place = divmod(index, fit)
            span = columns // min(fit, count - row * fit) if self._fills else 1
            self._grid.addWidget(part, row, place * span, 1, span)
        for column in range(max(columns, self._grid.columnCount())):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange(self._count)


class HeadlineCards(Columns):
    """A row of cards; in a narrow window two, each as long as the other."""

    def __init__(self) -> None:
        self.cards: list[HeadlineCard] = []
        super().__init__(self.cards, _LEAST_WIDTH, fills=True)

    def show_headlines(self, headlines: Sequence[Headline]) -> None:
        new = [HeadlineCard() for _ in headlines[len(self.cards) :]]
        self.cards += new
        for card, headline in zip(self.cards, headlines, strict=True):
            card.name.setText(headline.name)
            card.value.setText(headline.value)
            card.detail.setText(headline.detail)
        self.arrange(len(self.cards), anew=bool(new))


class ChartRow(Columns):
    """A few small charts beside each other, in a narrow window below each other."""

    enlarge = Signal(object)
    """The Chart that somebody wants to see larger."""

    def __init__(self, context: Context) -> None:
        self.charts: list[Chart] = []
        super().__init__(self.charts, _SMALL_WIDTH, fills=False)
        self._context = context
        self._run: RunRecord | None = None
        self._tags: list[str] = []
        self._lines: dict[str, Line] = {}
        self._options = ChartOptions()
        self._making = timer(self, 0, self._make_next)

    def show_tags(self, tags: Sequence[str]) -> None:
        """Have a chart for each of these metrics."""
        for place, chart in enumerate(self.charts):
            chart.setVisible(place < len(tags))
            if place < len(tags) and self._tags[place : place + 1] != [tags[place]]:
                chart.show_loading(tags[place])
        self._tags = list(tags)
        self.arrange(len(tags))
        if len(self.charts) < len(tags):
            self._making.start()

    def _make_next(self) -> None:
        """Make one chart more; all at once would stop the window for a moment."""
        if len(self.charts) >= len(self._tags):
            self._making.stop()
            return
        tag = self._tags[len(self.charts)]
        chart = Chart(self._context, _SMALL_HEIGHT)
        chart.enlarge.connect(lambda: self.enlarge.emit(chart))
        self.charts.append(chart)
        self.arrange(len(self._tags), anew=True)
        chart.show_loading(tag)
        self.show_lines(self._lines, self._options)

    def show_lines(self, lines: Mapping[str, Line], options: ChartOptions) -> None:
        """Draw those of the lines that belong here."""
        self._lines, self._options = {**self._lines, **lines}, options
        for tag, chart in zip(self._tags, self.charts, strict=False):
            if tag in lines:
                chart.show_lines(tag, [lines[tag]], options, head_note(self._run, tag, lines[tag]))

    def show_run(self, run: RunRecord, empty: str) -> None:
        """Another run: its points are not there yet."""
        self._run, self._lines = run, {}
        for tag, chart in zip(self._tags, self.charts, strict=False):
            chart.show_loading(tag, empty)

    def update_run(self, run: RunRecord) -> None:
        """The run has news: the numbers beside the titles follow."""
        self._run = run
        for tag, chart in zip(self._tags, self.charts, strict=False):
            if tag in self._lines:
                chart.show_note(head_note(run, tag, self._lines[tag]))


class OverviewCharts(QObject):
    """Feeds the chart `main` and the row `below`; where they stand is for the page to say."""

    changed = Signal()
    """There are new points."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._run: RunRecord | None = None
        self._summary: EvalSummary | None = None
        self._lines: dict[str, Line] = {}
        self._mean: tuple[str, Line] | None = None
        self.main = Chart(context, _HEIGHT, explains=True)
        self.below = ChartRow(context)
        self.feed = ChartFeed(context.link, context.tasks)
        self.seeds = SeedMean(context.link, context.tasks)
        self.feed.tags_changed.connect(lambda _: self._choose())
        self.feed.ready.connect(self._take_lines)
        self.seeds.ready.connect(self._take_mean)

    def show_run(self, run: RunRecord) -> None:
        """Another run; its points come between `start` and `stop`."""
        self._run, self._summary, self._lines, self._mean = run, None, {}, None
        waits = READING if run.headline.get("step") else _nothing(run)
        self.main.show_loading(_RETURN, waits)
        self.below.show_run(run, waits)

    def update_run(self, run: RunRecord) -> None:
        """The run has news; one that ends without a point will have none."""
        ended = self._run is not None and run.ended and not self._run.ended
        self._run = run
        self.below.update_run(run)
        main = main_tag(self.feed.tags)
        if main in self._lines and self._mean is None and self._summary is None:
            self.main.show_note(head_note(run, str(main), self._lines[str(main)]))
        if ended and not self._lines and self._summary is None:
            self.main.show_loading(_RETURN, _nothing(run))

    def start(self, group: Sequence[RunRecord]) -> None:
        """Follow the run, and the other seeds of its group."""
        if self._run is not None:
            self.feed.open(self._run.run_id)
            self.follow_group(group)
            self._choose()

    def stop(self) -> None:
        """Follow nothing."""
        self.feed.close()
        self.seeds.close()

    def follow_group(self, group: Sequence[RunRecord]) -> None:
        """The runs that differ from this one in their seeds alone, itself among them."""
        self.seeds.follow(group)
        self.seeds.want(main_tag(self.feed.tags), remembered_options(self._context.settings))

    def show_summary(self, summary: EvalSummary) -> None:
        """An evaluation shows its batches in place of the return."""
        self._summary = summary
        note = f"mean return {words.number(summary.overall.mean)}"
        options = ChartOptions(axis="batch")
        self.main.show_lines("Return of each batch", [batches_line(summary)], options, note)

    def per_step(self) -> float | None:
        """The reward of a step in the last episodes; None when that is not known."""
        if _RETURN not in self._lines or _LENGTH not in self._lines:
            return None
        returns, lengths = (self._lines[tag].values[-_EPISODES:].tolist() for tag in (_RETURN, _LENGTH))
        return reward_per_step(returns, lengths) if len(returns) == len(lengths) else None

    def _choose(self) -> None:
        """Decide which metrics are shown, and have their lines made."""
        tags = self.feed.tags
        main, beside = main_tag(tags), beside_main(tags)
        self.below.show_tags(beside)
        length = _LENGTH if _LENGTH in tags else None
        wanted = dict.fromkeys(filter(None, (main, *beside, length)))
        options = remembered_options(self._context.settings)
        self.feed.want(list(wanted), options)
        self.seeds.want(main, options)

    def _take_lines(self, lines: dict[str, Line]) -> None:
        self._lines |= lines
        if main_tag(self.feed.tags) in lines:
            self._show_main()
        self.below.show_lines(lines, remembered_options(self._context.settings))
        self.changed.emit()

    def _take_mean(self, tag: str, line: Line) -> None:
        self._mean = (tag, line)
        self._show_main()

    def _show_main(self) -> None:
        """The return: of one run its line, of several seeds their mean with this one over it."""
        main = main_tag(self.feed.tags)
        if main is None or self._summary is not None:
            return
        line = self._lines.get(main)
        shown = [] if line is None else [line]
        note = "" if line is None else head_note(self._run, main, line)
        if self._mean is not None and self._mean[0] == main and self._run is not None:
            seed = words.seeds_text([self._run.worker_config.get("seed")])
            shown = [*(plain(one, seed, OTHER) for one in shown), self._mean[1]]
            note = f"± standard deviation of {self.seeds.count} seeds"
        self.main.show_lines(main, shown, remembered_options(self._context.settings), note)


def _nothing(run: RunRecord) -> str:
    return "It has written no curves" if run.ended else "The first points appear with the first episodes"
