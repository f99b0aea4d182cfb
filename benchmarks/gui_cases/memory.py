"""Memory over the clicks of an hour, made as fast as the window takes them."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import psutil
from tables import Row

from gui_cases.using import mark, scroll, show_tab, spend
from gym_gui.ui.window import Window

ACTIONS = 3600
"""One a second for an hour."""
_ACTION_MS = 60
_TABS = ("Overview", "Charts", "Logs", "Config", "Artifacts")
_FORMS = ("train", "policy", "resume", "script")
_WARM_SHARE = 0.2
_MOST_GROWTH = 0.05
"""From a fifth of the hour to its end; before that caches fill."""


class Hour:
    """A person who looks at everything, again and again."""

    def __init__(self, window: Window, live: str, ended: Sequence[str]) -> None:
        self._window = window
        self._live = live
        self._ended = list(ended)
        self._process = psutil.Process()

    def measure(self, actions: int = ACTIONS) -> Row:
        marks: list[float] = []
        for number in range(actions):
            self._act(number)
            spend(_ACTION_MS)
            if (number + 1) % max(1, actions // 5) == 0:
                marks.append(self._megabytes())
        growth = marks[-1] / marks[0] - 1
        listed = ", ".join(f"{mark:.0f}" for mark in marks)
        return Row(
            f"{actions:,} actions: runs, tabs, filters, comparisons, forms",
            f"{listed} MB after each fifth; {growth:+.1%} from the first to the last",
            f"growth < {_MOST_GROWTH:.0%}",
            growth < _MOST_GROWTH,
        )

    def _act(self, number: int) -> None:
        """Rounds of twelve actions, each on other runs."""
        window, place = self._window, number % 12
        run_id = self._ended[(number // 12) % len(self._ended)]
        if place < len(_TABS):
            show_tab(window, run_id, _TABS[place], patiently=False)
        elif place == 5:
            show_tab(window, self._live, "Live", patiently=False)
        elif place == 6:
            show_tab(window, self._live, "Overview", patiently=False)
        elif place == 7:
            window.panel.field.setText(str(number % 7) if number % 2 else "")
        elif place == 8:
            window.panel.show_all()
            scroll(window, (number % 100) / 100)
        elif place == 9:
            first = number % max(1, len(self._ended) - 5)
            mark(window, self._ended[first : first + 5])
            window.compare()
        elif place == 10:
            window.open_form(_FORMS[(number // 12) % len(_FORMS)], {})
        else:
            window.cover.uncover()

    def _megabytes(self) -> float:
        gc.collect()
        return float(self._process.memory_info().rss) / 2**20
