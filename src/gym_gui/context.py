"""What every view and form is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gym_gui.models.runs import RunBook
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.notifications import Notifications
from gym_gui.services.tasks import Tasks
from gym_gui.settings import Settings


@dataclass
class Context:
    """The services of one window, and the few things that a view may ask the window to do."""

    link: DaemonLink
    tasks: Tasks
    notifications: Notifications
    runs: RunBook
    settings: Settings
    open_form: Callable[[str, dict[str, Any]], None]
    """`open_form(purpose, prefill)`: purpose is `train`, `resume`, `policy` or `script`."""
    select_run: Callable[[str], None]
