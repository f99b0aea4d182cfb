"""Adam over all parameters of a network at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

BETA_1 = 0.9
BETA_2 = 0.999


class Adam:
    """Adam whose clipping and step are one operation each, however many parameters there are.

    Parameters and gradients become views of two flat tensors. `torch.optim` would do the same sums one
    parameter at a time, and its first use imports 800 modules, which takes as long as `import torch`.
    """

    def __init__(self, module: nn.Module, eps: float) -> None:
        parameters = list(module.parameters())
        self.weights = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self.gradient = torch.zeros_like(self.weights)
        self.first_moment = torch.zeros_like(self.weights)
        self.second_moment = torch.zeros_like(self.weights)
        self.step = torch.zeros((), device=self.weights.device)
        self.eps = eps
        start = 0
        for parameter in parameters:
            end = start + parameter.numel()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end

    def update(self, loss: Tensor, learning_rate: float, max_grad_norm: float) -> None:
        """One step down the gradient of `loss`, whose norm is cut to `max_grad_norm`."""
        self.gradient.zero_()
        torch.autograd.backward(loss)
        with torch.no_grad():
            norm = torch.linalg.vector_norm(self.gradient)
            self.gradient.mul_((max_grad_norm / (norm + 1e-6)).clamp_(max=1.0))
            self.descend(learning_rate)

    def descend(self, learning_rate: float) -> None:
        """One step down the gradient that is in memory, for kernels that wrote it there."""
        self.step += 1
        self._move(learning_rate)

    def _move(self, learning_rate: float) -> None:
        torch._fused_adam_(
            [self.weights],
            [self.gradient],
            [self.first_moment],
            [self.second_moment],
            [],
            [self.step],
            lr=learning_rate,
            beta1=BETA_1,
            beta2=BETA_2,
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        """Weights and moments, for a checkpoint."""
        parts = {"weights": self.weights, "first": self.first_moment, "second": self.second_moment}
        return {name: tensor.cpu().numpy() for name, tensor in parts.items()} | {"step": float(self.step)}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint; the memory stays the same, so that views of it stay valid."""
        for tensor, name in (
            (self.weights, "weights"),
            (self.first_moment, "first"),
            (self.second_moment, "second"),
        ):
            tensor.copy_(torch.from_numpy(state[name]))
        self.step.fill_(state["step"])
