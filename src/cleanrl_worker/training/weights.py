"""Weights in files and in networks."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from mosaic.contract.errors import NotFoundError, StorageError, UserError

ModuleT = TypeVar("ModuleT", bound=nn.Module)
_NAMED = 3
"""How many names of parameters a sentence holds."""


class Misfit(Exception):
    """Weights are not those of a network; the text says what is wrong with them, as part of a sentence."""

    def __init__(self, text: str, only_shapes: bool = False) -> None:
        super().__init__(text)
        self.only_shapes = only_shapes


def plain_weights(model: Any) -> Any:
    """A module's weights as plain tensors; tuples and dicts of modules keep their shape."""
    if isinstance(model, nn.Module):
        return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
    if isinstance(model, tuple):
        return tuple(plain_weights(part) for part in model)
    if isinstance(model, dict):
        return {name: plain_weights(part) for name, part in model.items()}
    return model


def read_weights(path: Path) -> Any:
    """What a model file holds, without running any code that may be in it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no model file {path}.") from error
    except OSError as error:
        raise StorageError(f"The model file {path} cannot be read: {error.strerror}.") from error
    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        # Torch has no one error for a file that is broken, foreign, or holds code.
        raise UserError(f"{path} is not a PyTorch file of plain weights, so it cannot be loaded.") from error


def split_parts(weights: Any, *names: str) -> tuple[Any, ...]:
    """The parts of a model that is a tuple, as many as there are names; else Misfit."""
    if isinstance(weights, tuple | list) and len(weights) == len(names):
        return tuple(weights)
    found = f"{len(weights)} parts" if isinstance(weights, tuple | list) else "one part"
    raise Misfit(f"it has {found} where {' and '.join(names)} are needed")


def load_weights(module: ModuleT, weights: Any) -> ModuleT:
    """The module, frozen, with these weights; else Misfit says which of them it lacks or cannot take."""
    if not isinstance(weights, Mapping) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise Misfit("it does not hold the weights of one network by their names")
    wanted = module.state_dict()
    problems = []
    if missing := [name for name in wanted if name not in weights]:
        problems.append(f"it lacks {_listed(missing)}")
    if unexpected := [str(name) for name in weights if name not in wanted]:
        problems.append(f"it has {_listed(unexpected)}, which have no place there")
    if problems:
        raise Misfit(" and ".join(problems))
    for name, tensor in wanted.items():
        given, needed = tuple(weights[name].shape), tuple(tensor.shape)
        # Some scripts store bounds and spreads as one row of a table.
        if _without_ones(given) != _without_ones(needed):
            raise Misfit(f"{name} has the shape {given} where {needed} is needed", only_shapes=True)
    module.load_state_dict({name: weights[name].reshape(tensor.shape) for name, tensor in wanted.items()})
    return module.requires_grad_(False)


def unflatten(module: nn.Module, part: Mapping[str, Any]) -> dict[str, Tensor]:
    """A module's weights by name, out of what a checkpoint holds of its optimizer: one row of them all."""
    flat = torch.from_numpy(part["weights"])
    needed = sum(parameter.numel() for parameter in module.parameters())
    if flat.numel() != needed:
        raise Misfit(f"it has {flat.numel():,} weights where {needed:,} are needed", only_shapes=True)
    found = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    start = 0
    for name, parameter in module.named_parameters():
        end = start + parameter.numel()
        found[name] = flat[start:end].view_as(parameter).clone()
        start = end
    return found


def _without_ones(shape: Iterable[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
