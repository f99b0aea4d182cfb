"""A new run that begins with the weights of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from cleanrl_worker.checkpoint_files import Origin
from cleanrl_worker.training.normalise import Normaliser
from cleanrl_worker.training.state import Stateful
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.weights import Misfit, load_weights, read_weights, split_parts
from mosaic.contract.errors import UserError


def begin_with_model(origin: Origin, model: Any, parts: Mapping[str, Stateful]) -> None:
    """Put the weights in the networks and their targets, and the statistics beside them in the normaliser."""
    try:
        _put(model, read_weights(origin.path))
    except Misfit as error:
        raise UserError(f"The weights in {origin.path} do not fit this run: {error}.") from error
    for part in parts.values():
        if isinstance(part, Target):
            part.follow(1.0)
        elif isinstance(part, Normaliser) and origin.normaliser is not None:
            part.begin_with(origin.normaliser)


def _put(model: Any, weights: Any) -> None:
    """Weights into a model of the same form: one network, a tuple of them, or a dict with them in it."""
    if isinstance(model, nn.Module):
        load_weights(model, weights).requires_grad_(True)
    elif isinstance(model, tuple):
        names = [f"network {number}" for number, _ in enumerate(model, 1)]
        for part, own in zip(model, split_parts(weights, *names), strict=True):
            _put(part, own)
    else:
        for name, part in model.items():
            if isinstance(part, nn.Module):
                if not isinstance(weights, Mapping) or name not in weights:
                    raise Misfit(f"it has no '{name}'")
                _put(part, weights[name])
