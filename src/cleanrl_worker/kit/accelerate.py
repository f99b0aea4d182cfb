"""Kernels that stand in for written torch code, used only where they were seen to compute the same.

The code of an algorithm's page is what counts. A kernel is compared with it when a run begins: the gradient
of every parameter, on the first minibatch and on copies of it whose numbers, and whose parameters, were
moved, so that every branch of the loss is reached. Where it differs, because somebody edited the page, torch
computes what is written, and one line says so.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanrl_worker.kit.state import State
from cleanrl_worker.kit.torch_backend import Adam

Floats = NDArray[np.float32]
BatchT = TypeVar("BatchT", bound=tuple[Any, ...])

MOVES = (0.0, 0.1, 0.5, 2.0)
"""How far the numbers of a minibatch are moved in each comparison, in their own standard deviations."""
NO_KERNEL = "kernels are off, or none fits this network"
ROWS = 256
"""So many rows or more are compared at each distance: a small minibatch several times, moved anew."""
_OUTPUTS = 128
"""So many outputs of a network are compared at most at each distance."""
_PARAMETER_MOVE = 0.1
_TRIES, _NUDGE = 3, 1e-3
"""A number on the edge of a branch, as where two actions tie, falls to one side here and to the other there:
minibatch and weights are nudged."""
_OWN_TOLERANCE = 1e-3
_COMMON_TOLERANCE = 5e-6
"""Of the greatest number in the parameter's own gradient, and in the gradients of all."""


class Choice(NamedTuple):
    """What computes something, and why."""

    by: str
    """`kernel` or `torch`."""
    why: str
    differs: bool = False
    """Whether a kernel was compared and found to compute something else."""


class Gradient(Generic[BatchT]):
    """The gradient of a written loss, left in the memory of its optimizer."""

    def __init__(
        self,
        loss: Callable[[BatchT], tuple[Tensor, Tensor]],
        module: nn.Module,
        optimizer: Adam,
        kernel: Callable[[BatchT], Floats] | None = None,
        moved: Sequence[str] = (),
        others: Sequence[Tensor] = (),
    ) -> None:
        """`loss` gives what is minimised and what is logged; a kernel leaves its gradient in the parameters'
        memory and gives what is logged. A comparison moves the columns of a minibatch that `moved` names, the
        parameters, and `others`: the flat weights of further networks that the loss reads."""
        self._loss = loss
        self._module = module
        self._parameters = list(module.parameters())
        self._optimizer = optimizer
        self._kernel = kernel
        self._moved = moved
        self._weights = (optimizer.weights, *others)
        self._device = optimizer.weights.device
        self.choice: Choice | None = None if kernel is not None else Choice("torch", NO_KERNEL)

    def __call__(self, batch: BatchT) -> Floats:
        """Leave the gradient for a minibatch of arrays in memory; gives what the loss logs."""
        if self.choice is None:
            self.choice = self._compare(batch)
        if self._kernel is not None and self.choice.by == "kernel":
            return self._kernel(batch)
        return self._by_torch(batch)

    def _by_torch(self, batch: BatchT) -> Floats:
        loss, logged = self._loss(as_tensors(batch, self._device))
        self._optimizer.gradient.zero_()
        # Other networks that the loss reads, such as critics in that of a policy, need no gradients.
        torch.autograd.backward(loss, inputs=self._parameters)
        return np.asarray(logged.detach().cpu())

    def _compare(self, batch: BatchT) -> Choice:
        """Let the kernel show that it computes the written loss; the run's numbers stay as they are."""
        random, before = torch.get_rng_state(), [weights.clone() for weights in self._weights]
        own = np.random.default_rng(0)
        try:
            for scale in MOVES:
                for _ in range(max(1, ROWS // len(batch[0])) if scale else 1):
                    for weights, was in zip(self._weights, before, strict=True):
                        weights.copy_(was)
                    self._move_weights(scale, own)
                    problem = self._differs(self._move(batch, scale, own), own)
                    if problem is not None:
                        return Choice("torch", problem, differs=True)
        finally:
            for weights, was in zip(self._weights, before, strict=True):
                weights.copy_(was)
            self._optimizer.gradient.zero_()
            torch.set_rng_state(random)
        return Choice("kernel", "its gradients match the written loss")

    def _differs(self, batch: BatchT, own: np.random.Generator) -> str | None:
        problem = None
        for _ in range(_TRIES):
            problem = self._difference(batch)
            if problem is None:
                break
            batch = self._move(batch, _NUDGE, own)
            self._move_weights(_NUDGE, own)
        return problem

    def _move_weights(self, scale: float, own: np.random.Generator) -> None:
        for weights in self._weights:
            drawn = torch.from_numpy(own.standard_normal(weights.numel()).astype(np.float32))
            weights.add_(drawn, alpha=_PARAMETER_MOVE * min(scale, 1.0))

    def _move(self, batch: BatchT, scale: float, own: np.random.Generator) -> BatchT:
        if not scale:
            return batch
        columns: dict[str, NDArray[Any]] = cast(Any, batch)._asdict()
        for name in self._moved:
            column = columns[name]
            if not np.isin(column, (0.0, 1.0)).all():
                drawn = own.standard_normal(column.shape)
                columns[name] = (column + scale * (column.std() + 0.1) * drawn).astype(column.dtype)
            elif scale > _NUDGE:
                columns[name] = np.where(own.random(column.shape) < 0.3, 1 - column, column)
        return type(batch)(**columns)

    def _difference(self, batch: BatchT) -> str | None:
        """What a reader would look at first, or None when torch and the kernel agree."""
        assert self._kernel is not None
        expected_log = self._by_torch(batch)
        expected = {name: _gradient(parameter) for name, parameter in self._module.named_parameters()}
        self._optimizer.gradient.zero_()
        logged = self._kernel(batch)
        most = max(float(np.abs(gradient).max(initial=0.0)) for gradient in expected.values())
        for name, parameter in self._module.named_parameters():
            wanted = expected[name]
            allowed = _OWN_TOLERANCE * float(np.abs(wanted).max(initial=0.0)) + _COMMON_TOLERANCE * most
            if not np.allclose(_gradient(parameter), wanted, rtol=0.0, atol=allowed, equal_nan=True):
                return f"the kernel's gradient of {name} does not match the written loss"
        if not np.allclose(logged, expected_log, rtol=1e-2, atol=1e-3, equal_nan=True):
            return "the kernel does not log what the written loss logs"
        return None

    # The choice is part of a checkpoint: a run that goes on with the same code computes as it did.

    def state(self) -> State:
        if self.choice is None:
            return {}
        return {"by": self.choice.by, "why": self.choice.why, "code": self._code()}

    def load(self, state: State) -> None:
        if state and state["code"] == self._code() and (self._kernel is not None or state["by"] == "torch"):
            self.choice = Choice(state["by"], state["why"])

    def _code(self) -> str:
        """What tells whether somebody edited the loss, its network or the kernel."""
        loss = self._loss.func if isinstance(self._loss, functools.partial) else self._loss
        files = [inspect.getsourcefile(one) for one in (loss, type(self._module))]
        if self._kernel is not None:
            files.append(inspect.getsourcefile(getattr(self._kernel, "__func__", self._kernel)))
        return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files if file)).hexdigest()


class Forward:
    """Outputs of a network for arrays: by torch, or by a kernel that was seen to give the same."""

    def __init__(
        self, written: Callable[..., Tensor], device: Any, kernel: Callable[..., Floats] | None = None
    ) -> None:
        self._written = written
        self._device = device
        self._kernel = kernel
        self._compared = False

    def __call__(self, *inputs: NDArray[Any]) -> Floats:
        if self._kernel is None:
            return self._by_torch(*inputs)
        if self._compared:
            return self._kernel(*inputs)
        self._compare(inputs)
        return self(*inputs)

    @torch.no_grad()
    def _by_torch(self, *inputs: NDArray[Any]) -> Floats:
        return np.asarray(self._written(*(torch.from_numpy(x).to(self._device) for x in inputs)).cpu())

    def _compare(self, inputs: tuple[NDArray[Any], ...]) -> None:
        assert self._kernel is not None
        own = np.random.default_rng(0)
        for scale in MOVES:
            some = [x[:_OUTPUTS] for x in inputs]
            moved = [(x + scale * own.standard_normal(x.shape)).astype(x.dtype) for x in some]
            wanted = self._by_torch(*moved)
            if not np.allclose(self._kernel(*moved), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max()):
                self._kernel = None
                return
        self._compared = True


def as_tensors(batch: BatchT, device: Any) -> BatchT:
    """A minibatch of arrays as one of tensors."""
    return type(batch)(*(torch.from_numpy(column).to(device) for column in batch))


def take(batch: BatchT, rows: NDArray[np.int64]) -> BatchT:
    """Some rows of a batch."""
    return type(batch)(*[column.take(rows, axis=0) for column in batch])


def take_envs(batch: BatchT, indices: NDArray[np.int64]) -> BatchT:
    """The sequences (step, environment, …) of some environments; first comes a row of memory for each."""
    memory, *columns = batch
    return type(batch)(memory[indices], *[column[:, indices] for column in columns])


def _gradient(parameter: Tensor) -> Floats:
    assert parameter.grad is not None
    found: Floats = parameter.grad.numpy().copy()
    return found
