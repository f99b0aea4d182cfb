"""How long the event loop is held up while the window shows much and is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tables import Row

from gui_cases.stalls import StallMeter, Stalls
from gui_cases.using import mark, scroll, show_tab, spend, wait_until
from gym_gui.ui.views.overview import LiveView
from gym_gui.ui.window import Window
from mosaic.client import RunRecord

P99_MS, WORST_MS = 16.0, 100.0
_SELECT_MS = 500
_SCROLL_MS = 16
_MANY, _NEWS = 1000, 200
_CONDITIONS = ("return>4", "return>400", "seed=1", "seed=1 steps<500", "total_timesteps>=1100", "")
_TYPED = ("c", "cu", "cur", "curve-07", "", "fra", "")


class BusyCases:
    """One window, one live run, many ended ones."""

    def __init__(self, window: Window, live: str, ended: Sequence[str], seconds: float) -> None:
        self._window = window
        self._live = live
        self._ended = list(ended)
        self._seconds = seconds

    def cases(self) -> dict[str, Callable[[], str]]:
        """What is done, by the words for it; each gives a remark."""
        count = len(self._ended)
        return {
            "Live tab: 16 environments at 30 frames/s": self._watch,
            "Overview of that run: picture, numbers and charts, while the list scrolls": self._overview,
            f"Charts of {count} runs with 100,000 points each, one after the other": self._charts,
            "The list scrolls and is filtered": self._list,
            f"Compare: {count} runs over each other": self._compare,
            f"The table of {_MANY:,} more runs is filtered, sorted and told news": self._table,
        }

    def measure(self, name: str, work: Callable[[], str]) -> Row:
        meter = StallMeter()
        meter.start()
        remark = work()
        return _row(name, meter.stop(), remark)

    def _watch(self) -> str:
        show_tab(self._window, self._live, "Live")
        view = self._window.page.views[LiveView]
        assert isinstance(view, LiveView)
        wait_until(lambda: view.panel.view.count == 16, "16 pictures are shown")
        spend(1000 * self._seconds)
        return view.panel.caption.text()

    def _overview(self) -> str:
        show_tab(self._window, self._live, "Overview")
        return self._scroll_for(self._seconds)

    def _charts(self) -> str:
        for run_id in self._ended:
            show_tab(self._window, run_id, "Charts", patiently=False)
            spend(_SELECT_MS)
        return f"{len(self._ended)} selections"

    def _list(self) -> str:
        self._scroll_for(self._seconds / 2)
        for text in _TYPED:
            self._window.panel.field.setText(text)
            spend(400)
        return f"{len(_TYPED)} filters"

    def _compare(self) -> str:
        mark(self._window, self._ended)
        self._window.compare()
        spend(1000 * self._seconds)
        self._window.cover.uncover()
        return f"{len(self._ended)} runs"

    def _table(self) -> str:
        window, link = self._window, self._window.context.link
        known = window.context.runs.get(self._ended[0])
        assert known is not None
        runs = [_copy(known, number) for number in range(_MANY)]
        for start in range(0, _MANY, 100):
            link.runs_changed.emit(runs[start : start + 100])
            spend(50)
        window.open_table()
        for text in _CONDITIONS:
            window.table.filtering.field.setText(text)
            spend(400)
        columns = window.table.model.columnCount()
        for column in range(columns):
            window.table.model.sort(column)
            spend(200)
        for number in range(_NEWS):
            link.runs_changed.emit([_copy(known, number * 7 % _MANY, 100.0 * number)])
            spend(20)
        window.close_table()
        link.runs_removed.emit([run.run_id for run in runs])
        return f"{len(_CONDITIONS)} filters, {columns} columns, news {_NEWS} times"

    def _scroll_for(self, seconds: float) -> str:
        moves = int(1000 * seconds / _SCROLL_MS)
        for number in range(moves):
            scroll(self._window, 0.5 - 0.5 * math.cos(number / 40))
            spend(_SCROLL_MS)
        return f"{moves} moves of the list"


def _copy(run: RunRecord, number: int, value: float | None = None) -> RunRecord:
    """A run that no daemon has, with a seed, a return and an age of its own."""
    asked = {**run.worker_config, "seed": number % 5, "total_timesteps": 1000 + number // 5}
    return replace(
        run,
        run_id=f"{number:026d}",
        submitted_at=run.submitted_at - 60.0 * number,
        headline={"mean_return": number * 37 % 500 if value is None else value, "step": number},
        config={"metadata": {"worker": {"type": run.worker_type, "config": asked}}},
    )


def _row(name: str, stalls: Stalls, remark: str) -> Row:
    return Row(
        name,
        f"{stalls.text()}; {remark}",
        f"p99 < {P99_MS:g} ms, worst < {WORST_MS:g} ms",
        stalls.p99 < P99_MS and stalls.worst < WORST_MS,
    )
