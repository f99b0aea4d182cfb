"""The tabs of a run, in their order."""

from __future__ import annotations

from gym_gui.ui.views.artifacts import ArtifactsView
from gym_gui.ui.views.base import RunView
from gym_gui.ui.views.charts import ChartsView
from gym_gui.ui.views.config import ConfigView
from gym_gui.ui.views.logs import LogsView
from gym_gui.ui.views.overview import LiveView, OverviewView
from gym_gui.ui.views.play import PlayView

RUN_VIEWS: list[type[RunView]] = [
    OverviewView,
    LiveView,
    ChartsView,
    LogsView,
    ConfigView,
    ArtifactsView,
    PlayView,
]
