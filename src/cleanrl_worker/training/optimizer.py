"""Adam over all parameters of a network at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Adam:
    """Adam whose clipping and step are one operation each, however many parameters there are.

    Parameters and gradients become views of two flat tensors. `torch.optim` would do the same sums one
    parameter at a time, and its first use imports 800 modules, which takes as long as `import torch`.
    """

    def __init__(self, module: nn.Module, eps: float) -> None:
        parameters = list(module.parameters())
        self._weights = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self._gradient = torch.zeros_like(self._weights)
        self._first_moment = torch.zeros_like(self._weights)
        self._second_moment = torch.zeros_like(self._weights)
        self._step = torch.zeros((), device=self._weights.device)
        self._eps = eps
        start = 0
        for parameter in parameters:
            end = start + parameter.numel()
            parameter.data = self._weights[start:end].view_as(parameter)
            parameter.grad = self._gradient[start:end].view_as(parameter)
            start = end

    def update(self, loss: Tensor, learning_rate: float, max_grad_norm: float) -> None:
        """One step down the gradient of `loss`, whose norm is cut to `max_grad_norm`."""
        self._gradient.zero_()
        torch.autograd.backward(loss)
        with torch.no_grad():
            norm = torch.linalg.vector_norm(self._gradient)
            self._gradient.mul_((max_grad_norm / (norm + 1e-6)).clamp_(max=1.0))
            self._step += 1
            torch._fused_adam_(
                [self._weights],
                [self._gradient],
                [self._first_moment],
                [self._second_moment],
                [],
                [self._step],
                lr=learning_rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=0.0,
                eps=self._eps,
                amsgrad=False,
                maximize=False,
            )
