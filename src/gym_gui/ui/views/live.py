"""The Live tab: what the environments of a run look like now."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtWidgets import QVBoxLayout

from gym_gui.context import Context
from gym_gui.models.facts import RunFacts
from gym_gui.models.hud import shows_frames
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import card
from gym_gui.ui.widgets.live_panel import LivePanel
from mosaic.client import RunRecord


class LiveView(RunView):
    """The picture or the grid, as large as the window allows."""

    title: ClassVar[str] = "Live"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.panel = LivePanel(heading=False)
        surface = card()
        surface.column.addWidget(self.panel)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], SPACE[3])
        column.addWidget(surface)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_frames or (not run.ended and shows_frames(run))

    def show_run(self, run: RunRecord) -> None:
        self.panel.show_run(run)

    def update_run(self, run: RunRecord) -> None:
        self.panel.update_run(run)

    def enter(self) -> None:
        self.panel.start()

    def leave(self) -> None:
        self.panel.stop()

    def close_view(self) -> None:
        self.panel.stop()
