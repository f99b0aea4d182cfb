"""The random states of a process, as a part of a checkpoint."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from cleanrl_worker.training.state import State


class Randomness:
    """Python's, numpy's and torch's global generators."""

    def state(self) -> State:
        version, words, gauss = random.getstate()
        name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
        found: State = {
            "python": {"version": version, "words": np.array(words, dtype=np.uint64), "gauss": gauss},
            "numpy": {
                "name": name,
                "keys": keys,
                "position": position,
                "has_gauss": has_gauss,
                "cached": cached,
            },
            "torch": torch.get_rng_state().numpy(),
        }
        if torch.cuda.is_available():
            found["cuda"] = [state.numpy() for state in torch.cuda.get_rng_state_all()]
        return found

    def load(self, state: State) -> None:
        python: Any = state["python"]
        random.setstate((python["version"], tuple(int(word) for word in python["words"]), python["gauss"]))
        held = state["numpy"]
        np.random.set_state((held["name"], held["keys"], held["position"], held["has_gauss"], held["cached"]))
        torch.set_rng_state(torch.from_numpy(state["torch"]))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([torch.from_numpy(one) for one in state["cuda"]])
