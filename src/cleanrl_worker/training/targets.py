"""Target networks: copies that follow what is learned, slowly."""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

import torch
from torch import nn

from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.state import State

NetT = TypeVar("NetT", bound=nn.Module)


class Target(Generic[NetT]):
    """A copy of a network whose parameters are views of one flat tensor, as those in its optimizer are."""

    def __init__(self, net: NetT, optimizer: Adam) -> None:
        self.net: NetT = copy.deepcopy(net).requires_grad_(False)
        self.weights = optimizer.weights.clone()
        self._followed = optimizer.weights
        start = 0
        for parameter in self.net.parameters():
            end = start + parameter.numel()
            parameter.data = self.weights[start:end].view_as(parameter)
            start = end

    def follow(self, tau: float) -> None:
        """Go the share `tau` of the way to the network."""
        self.weights.lerp_(self._followed, tau)

    def state(self) -> State:
        return {"weights": self.weights.cpu().numpy()}

    def load(self, state: State) -> None:
        self.weights.copy_(torch.from_numpy(state["weights"]))
