"""What a run asks of the library that computes its networks: seeds, random states, named arrays."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cleanrl_worker.kit.state import State, Stateful
from mosaic.contract.errors import NotFoundError, StorageError, UserError

THREADS_VARIABLE = "OMP_NUM_THREADS"
"""Set by the daemon to the number of CPUs that are reserved for the run."""
_MODULES = {"torch": "cleanrl_worker.kit.torch_backend", "jax": "cleanrl_worker.kit.jax_backend"}


class Backend(ABC):
    """Python's and numpy's random numbers; what a library has of its own is added by its backend."""

    device: Any = "cpu"
    file_kind: str
    """Whose files models are, as part of a sentence."""

    def __init__(self, seed: int, deterministic: bool = True, cuda: bool = False) -> None:
        """Seed everything that draws random numbers, and fix the number of threads, on which sums depend."""
        random.seed(seed)
        np.random.seed(seed % 2**32)
        self.limit_threads(thread_count())

    def adapt(self, part: Any) -> Stateful:
        """A part of an algorithm as a checkpoint holds it."""
        if isinstance(part, Stateful):
            return part
        raise TypeError(f"{type(part).__name__} cannot be kept: it needs state() and load(state)")

    def permutation(self, size: int) -> NDArray[np.int64]:
        """The numbers below `size` in a new random order."""
        order: NDArray[np.int64] = np.random.permutation(size)
        return order

    def key(self) -> NDArray[np.uint32]:
        """A new key for JAX, whose random numbers are made from keys: splitting one would be compiled."""
        drawn: NDArray[np.uint32] = np.random.randint(0, 2**32, 2, np.uint32)
        return drawn

    @abstractmethod
    def encode_model(self, content: Any) -> bytes:
        """The bytes of a model file."""

    @staticmethod
    @abstractmethod
    def decode_model(data: bytes) -> Any:
        """The content of such bytes, without running any code that may be in them."""

    @staticmethod
    def limit_threads(count: int) -> None:
        """Use so many CPU threads from here on."""
        threadpool_limits(count)

    @classmethod
    def read_model(cls, path: Path) -> Any:
        """The content of a model file; a MosaicError says why it cannot be read."""
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise NotFoundError(f"There is no model file {path}.") from error
        except OSError as error:
            raise StorageError(f"The model file {path} cannot be read: {error.strerror}.") from error
        try:
            return cls.decode_model(data)
        except Exception as error:
            # No library has one error for a file that is broken, foreign, or holds code.
            raise UserError(
                f"{path} is not a {cls.file_kind} file of plain weights, so it cannot be loaded."
            ) from error

    @staticmethod
    def decode_weights(content: Any) -> Any:
        """The content of a model, made of a checkpoint's arrays, as it would be read from its file."""
        return content

    @staticmethod
    def unfilled() -> contextlib.AbstractContextManager[Any]:
        """Networks that are made in here get their weights in here: drawing others first is left out."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def untouched(self) -> Iterator[None]:
        """What is drawn from the process's generators in here does not count."""
        before = self.state()
        try:
            yield
        finally:
            self.load(before)

    # The random states are a part of every checkpoint.

    def state(self) -> State:
        version, words, gauss = random.getstate()
        name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
        held = {"name": name, "keys": keys, "position": position, "has_gauss": has_gauss, "cached": cached}
        python = {"version": version, "words": np.array(words, dtype=np.uint64), "gauss": gauss}
        return {"python": python, "numpy": held}

    def load(self, state: State) -> None:
        python, held = state["python"], state["numpy"]
        random.setstate((python["version"], tuple(int(word) for word in python["words"]), python["gauss"]))
        np.random.set_state((held["name"], held["keys"], held["position"], held["has_gauss"], held["cached"]))


def find_backend(name: str) -> type[Backend]:
    """The backend of that name, which imports its library."""
    backend: type[Backend] = importlib.import_module(_MODULES[name]).BACKEND
    return backend


def thread_count() -> int:
    """How many CPU threads may be used: one for each reserved CPU, else one, best for small networks."""
    text = os.environ.get(THREADS_VARIABLE) or "1"
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"{THREADS_VARIABLE} is '{text}', but must be a whole number of at least 1.")
    return int(text)
