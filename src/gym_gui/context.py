"""What every view and form is given, and what the window remembers from one start to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gym_gui import log
from gym_gui.models.runs import RunBook
from gym_gui.services.board import Board
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Notifications, Tasks
from mosaic.contract.atomic import write_json
from mosaic.contract.outside import read_json
from mosaic.contract.paths import make_folder


class Settings:
    """Values by name, kept as one JSON file in the var folder. Reading is from memory."""

    def __init__(self, var: Path) -> None:
        self.path = var / "gui" / "settings.json"
        self._saved: dict[str, Any] = _read(self.path)
        self._values = dict(self._saved)

    def get(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

    def set(self, name: str, value: Any) -> None:
        """Remember a value of JSON; None forgets it. `save` writes it down."""
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value

    def save(self) -> None:
        """Write the file when something has changed; never in the window's thread: it may take a moment."""
        values = dict(self._values)
        if values != self._saved:
            make_folder(self.path.parent)
            write_json(self.path, values)
            self._saved = values


def _read(path: Path) -> dict[str, Any]:
    try:
        values = read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        # The window starts as if for the first time, which loses no run.
        log.warning(log.Code.SETTINGS_LOST, f"{path} cannot be read: {error}")
        return {}
    return values if isinstance(values, dict) else {}


@dataclass
class Context:
    """The services of one window, and the few things that a view may ask the window to do."""

    link: DaemonLink
    tasks: Tasks
    notifications: Notifications
    runs: RunBook
    settings: Settings
    open_form: Callable[[str, dict[str, Any]], None]
    """`open_form(purpose, prefill)`: purpose is `train`, `sweep`, `resume`, `policy`, `script` or `hand`."""
    select_run: Callable[[str], None]
    board: Board = field(default_factory=Board)
