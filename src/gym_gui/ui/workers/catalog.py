"""Which form a worker has for a purpose, found by what its capabilities name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gym_gui.ui.workers.worker_form import WorkerForm
from mosaic.contract.capabilities import WorkerCapabilities, discover_workers, find_worker
from mosaic.contract.errors import MosaicError, UserError


def workers_for(purpose: str) -> list[WorkerCapabilities]:
    """The installed workers that have a form for a purpose."""
    return [worker for _, worker in sorted(discover_workers().items()) if purpose in worker.forms]


def form_for(worker_type: str, purpose: str) -> type[WorkerForm]:
    """The class of a worker's form; a UserError says when there is none."""
    worker = find_worker(worker_type)
    named = worker.forms.get(purpose)
    if named is None:
        raise UserError(f"{worker.display_name} has no form to '{purpose}'.")
    found = load_named(named)
    if not (isinstance(found, type) and issubclass(found, WorkerForm)):
        raise MosaicError(f"{named}, which {worker.display_name} names as a form, is no WorkerForm.")
    return found


def load_named(named: str) -> Any:
    """What `module:name` means."""
    module, _, name = named.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise MosaicError(f"{named} cannot be loaded: {error}.") from error
