"""The installed workers as the window sees them: their forms and presenters, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.ui.presenters.form import FormPresenter
from mosaic.contract.capabilities import WorkerCapabilities, discover_workers
from mosaic.contract.errors import MosaicError, UserError


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


FoundForm = tuple[WorkerCapabilities, type[WorkerForm]]


def load_forms(purpose: str, worker_type: str | None) -> list[FoundForm]:
    """The forms of the installed workers for a purpose; of one worker where a run of it is meant."""
    workers = [worker for _, worker in sorted(discover_workers().items()) if purpose in worker.forms]
    wanted = [worker for worker in workers if worker_type in (None, worker.worker_type)]
    if not wanted:
        raise UserError(f"No installed worker has a form to '{purpose}': run `./mosaic doctor`.")
    return [(worker, _load_form(worker, worker.forms[purpose])) for worker in wanted]


def _load_form(worker: WorkerCapabilities, named: str) -> type[WorkerForm]:
    found = _load_named(named)
    if not (isinstance(found, type) and issubclass(found, WorkerForm)):
        raise MosaicError(f"{named}, which {worker.display_name} names as a form, is not a WorkerForm.")
    return found


def _load_named(named: str) -> Any:
    """What `module:name` means."""
    try:
        return resolve_name(named)
    except (ImportError, AttributeError, ValueError) as error:
        raise MosaicError(f"{named} cannot be loaded: {error}.") from error


class WorkerForms(Protocol):
    """What a worker's presenter does: it makes the presenters of its forms."""

    def form(self, purpose: str, prefill: Mapping[str, Any]) -> FormPresenter: ...


def presenter_for(capabilities: WorkerCapabilities, var: Path) -> WorkerForms:
    """The presenter of a worker. Imports and reads: not for the thread of the window."""
    if not capabilities.presenter:
        raise UserError(f"{capabilities.display_name} names no presenter, so it has no forms.")
    made: WorkerForms = _load_named(capabilities.presenter)(capabilities, var)
    return made
