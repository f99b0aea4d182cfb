"""The live panel of one run with the pictures of its environments above it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Group, RenderableType
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.failures import as_typed
from mosaic.cli.live.board import Board
from mosaic.cli.live.picture import Picture
from mosaic.cli.live.views import LiveView
from mosaic.cli.looking import reason_of
from mosaic.cli.output import console
from mosaic.fastlane.grid import LiveGrid

_PANEL_ROWS = 9
_MOST_MISSIONS = 4


class FramesView(LiveView):
    """Pictures over the panel; its looking is what makes the environments render."""

    redraws_per_second = 12
    overflow = "crop"

    def __init__(self, board: Board) -> None:
        ((run_id, row),) = board.rows.items()
        self._grid, self._python = LiveGrid(run_id), row.python
        super().__init__(board)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._grid.close()

    def draw(self) -> RenderableType:
        self._grid.look()
        picture = self._grid.picture()
        missions = mission_lines(self._grid.missions())
        parts: list[RenderableType] = []
        if picture is not None:
            parts.append(Picture(picture, max(4, console().size.height - _PANEL_ROWS - len(missions))))
        lines = [Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in missions]
        return Group(*parts, Text(live_line(self._grid, self._python), style="dim"), *lines, super().draw())


def live_line(grid: LiveGrid, python: str | None) -> str:
    """What stands under the picture: whether it is live, and its last reward; the panel has the rest."""
    status, metrics = grid.status(), grid.metrics()
    why = as_typed(reason_of(status, python))
    said = f"{status.state}: {why}" if why else status.state
    if metrics is None or status.state != "live":
        return said
    return f"{said}   reward {words.short(metrics.last_reward)}"


def mission_lines(missions: Sequence[str]) -> list[str]:
    """The missions of the environments in the picture, a line for each that differs, with who has it."""
    if not missions:
        return []
    if len(set(missions)) == 1:
        return [f"mission: {missions[0]}"]
    owners: dict[str, list[str]] = {}
    for number, mission in enumerate(missions, 1):
        owners.setdefault(mission or "none", []).append(str(number))
    lines = [f"mission of {', '.join(numbers)}: {mission}" for mission, numbers in owners.items()]
    return lines if len(lines) <= _MOST_MISSIONS else [*lines[: _MOST_MISSIONS - 1], "other missions …"]
