"""The curves of the overview: the return, and the few that are worth a look beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.charting import Line, batches_line, plain
from gym_gui.models.metrics import beside_main, main_tag, reward_per_step
from gym_gui.services.chart_feed import ChartFeed
from gym_gui.services.seed_mean import SeedMean
from gym_gui.ui.widgets.chart import Chart
from gym_gui.ui.widgets.chart_grid import last_value
from gym_gui.ui.widgets.chart_options import remembered_options
from gym_gui.ui.widgets.chart_row import ChartRow
from gym_gui.ui.widgets.line_colours import OTHER
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord

_RETURN, _LENGTH = "charts/episodic_return", "charts/episodic_length"
_EPISODES = 100
_HEIGHT = 330
_READING = "Reading…"


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
        self.main = Chart(context, _HEIGHT)
        self.below = ChartRow(context)
        self.feed = ChartFeed(context.link, context.tasks)
        self.seeds = SeedMean(context.link, context.tasks)
        self.feed.tags_changed.connect(lambda _: self._choose())
        self.feed.ready.connect(self._take_lines)
        self.seeds.ready.connect(self._take_mean)

    def show_run(self, run: RunRecord) -> None:
        """Another run; its points come between `start` and `stop`."""
        self._run, self._summary, self._lines, self._mean = run, None, {}, None
        self.main.plot.zoom_to(None)
        self.main.show_lines(_RETURN, [], "step", empty=_nothing(run))
        self.below.forget(_nothing(run))

    def update_run(self, run: RunRecord) -> None:
        """The run has news; one that ends without a point will have none."""
        ended = self._run is not None and run.ended and not self._run.ended
        self._run = run
        if ended and not self._lines and self._summary is None:
            self.main.show_lines(_RETURN, [], "step", empty=_nothing(run))

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
        note = "mean ± standard deviation"
        self.main.show_lines("Return of each batch", [batches_line(summary)], "batch", note)

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
        self.below.show_tags(beside, _READING)
        wanted = dict.fromkeys(
            [*([main] if main else []), *beside, *(tag for tag in (_LENGTH,) if tag in tags)]
        )
        options = remembered_options(self._context.settings)
        self.feed.want(list(wanted), options)
        self.seeds.want(main, options)

    def _take_lines(self, lines: dict[str, Line]) -> None:
        self._lines |= lines
        if main_tag(self.feed.tags) in lines:
            self._show_main()
        self.below.show_lines(lines, remembered_options(self._context.settings).axis)
        self.changed.emit()

    def _take_mean(self, tag: str, line: Line) -> None:
        self._mean = (tag, line)
        self._show_main()

    def _show_main(self) -> None:
        """The return: of one run its line, of several seeds their mean with this one over it."""
        main = main_tag(self.feed.tags)
        if main is None or self._summary is not None:
            return
        shown = [self._lines[main]] if main in self._lines else []
        note = last_value(shown)
        if self._mean is not None and self._mean[0] == main and self._run is not None:
            seed = words.seeds_text([self._run.worker_config.get("seed")])
            shown = [*(plain(line, seed, OTHER) for line in shown), self._mean[1]]
            note = f"mean ± standard deviation, {self.seeds.count} seeds"
        self.main.show_lines(main, shown, remembered_options(self._context.settings).axis, note)


def _nothing(run: RunRecord) -> str:
    return "It has written no curve" if run.ended else "The first points come with the first episodes"
