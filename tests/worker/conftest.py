"""What the tests of the worker share."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Torch as training has it: more threads only wait for each other on a machine that is busy."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
