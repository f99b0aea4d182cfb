"""Where the network lives."""

from __future__ import annotations

import torch


def pick_device(cuda: bool) -> torch.device:
    """The GPU when it is wanted and there is one, else the CPU."""
    return torch.device("cuda" if cuda and torch.cuda.is_available() else "cpu")
