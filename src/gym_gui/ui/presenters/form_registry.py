"""The presenters that workers name, loaded when a form is opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from gym_gui.ui.presenters.form import FormPresenter
from mosaic.contract.capabilities import WorkerCapabilities
from mosaic.contract.errors import MosaicError, UserError


class WorkerForms(Protocol):
    """What a worker's presenter does: it makes the presenters of its forms."""

    def form(self, purpose: str, prefill: Mapping[str, Any]) -> FormPresenter: ...


def presenter_for(capabilities: WorkerCapabilities, var: Path) -> WorkerForms:
    """The presenter of a worker. Imports and reads: not for the thread of the window."""
    if not capabilities.presenter:
        raise UserError(f"{capabilities.display_name} names no presenter, so it has no forms.")
    module, _, name = capabilities.presenter.partition(":")
    try:
        made: WorkerForms = getattr(import_module(module), name)(capabilities, var)
    except (ImportError, AttributeError) as error:
        raise MosaicError(f"{capabilities.presenter} cannot be loaded: {error}.") from error
    return made
