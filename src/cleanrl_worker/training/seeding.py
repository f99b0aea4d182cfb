"""Making a run repeatable."""

from __future__ import annotations

import os
import random

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from mosaic.contract.errors import UserError

THREADS_VARIABLE = "OMP_NUM_THREADS"
"""Set by the daemon to the number of CPUs that are reserved for the run."""


def seed_everything(seed: int, deterministic: bool) -> None:
    """Seed Python, numpy and torch, and fix the number of CPU threads, on which sums depend."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = deterministic
    torch.set_num_threads(thread_count())
    threadpool_limits(thread_count())


def thread_count() -> int:
    """How many CPU threads torch may use: one for each reserved CPU, else one, best for small nets."""
    text = os.environ.get(THREADS_VARIABLE) or "1"
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"{THREADS_VARIABLE} is '{text}', but must be a whole number of at least 1.")
    return int(text)
