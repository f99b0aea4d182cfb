"""Making a run repeatable."""

from __future__ import annotations

import os
import random

import numpy as np
import torch

from mosaic.contract.errors import UserError


def seed_everything(seed: int, deterministic: bool) -> None:
    """Seed Python, numpy and torch, and fix the number of CPU threads, on which sums depend."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = deterministic
    torch.set_num_threads(thread_count())


def thread_count() -> int:
    """How many CPU threads torch may use: `CLEANRL_NUM_THREADS`, else one, the fastest for small nets."""
    text = os.environ.get("CLEANRL_NUM_THREADS") or "1"
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"CLEANRL_NUM_THREADS is '{text}', but must be a whole number of at least 1.")
    return int(text)
