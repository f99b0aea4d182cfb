"""What every worker's form is to the window."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from mosaic.contract.capabilities import WorkerCapabilities


class WorkerForm(QWidget):
    """A form that asks a worker for runs.

    `prefill` may hold, to train: `config` (of an earlier run) or `algo`, `env_id`, `total_timesteps`,
    `seeds`; to resume: `checkpoint`, `run_dir` or `run_id`; to evaluate: `policy`, `run_dir` or `run_id`;
    for a script: `script`.
    """

    submitted = Signal(object)
    """The RunRecords of the runs that were submitted."""
    closed = Signal()
    """The person is done with the form, or wants none."""

    def __init__(self, context: Context, capabilities: WorkerCapabilities, prefill: dict[str, Any]) -> None:
        super().__init__()
        self.context, self.capabilities, self.prefill = context, capabilities, prefill

    @property
    def has_changes(self) -> bool:
        """Whether somebody has put work into it that would be lost."""
        return False

    def leave_safely(self) -> bool:
        """End what the form has under way; False when it has to stay open for that."""
        return True
