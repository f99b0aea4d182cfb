"""Saving the state of a run as plain data: arrays and JSON, never code.

A state is a tree of dicts with text keys; its leaves are arrays, numbers, texts, None, or lists of them. It
becomes one `.npz` file without pickle; the tree's shape is JSON inside it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mosaic.contract.errors import StorageError
from mosaic.contract.outside import parse_json

State = dict[str, Any]

_SHAPE = "__shape__"
_ARRAY = "__array__"


@runtime_checkable
class Stateful(Protocol):
    """A part of a run that a checkpoint holds."""

    def state(self) -> State: ...
    def load(self, state: State) -> None: ...


@runtime_checkable
class Chunked(Stateful, Protocol):
    """A part too large to be written whole each time: most of it lies in files beside the checkpoints.

    Its state names them, relative to that folder, as `chunks`; a file that no checkpoint names is removed.
    """

    def store(self, folder: Path) -> None: ...
    def fetch(self, folder: Path, state: State) -> None: ...


class Held:
    """Values of a training loop that a checkpoint holds as they are: counters and arrays, by name."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def state(self) -> State:
        return self.values

    def load(self, state: State) -> None:
        self.values.update(state)


def encode(state: Mapping[str, Any]) -> bytes:
    """A state as the bytes of an `.npz` file."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    shape = json.dumps(_take_arrays(state, arrays), allow_nan=True)
    data = io.BytesIO()
    np.savez(data, **{_SHAPE: np.frombuffer(shape.encode(), dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    return data.getvalue()


def decode(path: Path) -> State:
    """The state in a file; one that is broken or not ours is named."""
    try:
        with np.load(path, allow_pickle=False) as file:
            state = _put_arrays(parse_json(file[_SHAPE].tobytes()), file)
    except OSError as error:
        raise StorageError(f"The checkpoint {path} cannot be read: {error.strerror}.") from error
    except Exception as error:
        # A broken archive can fail in any way.
        raise StorageError(f"The checkpoint {path} cannot be read: {error}.") from error
    if not isinstance(state, dict):
        raise StorageError(f"The checkpoint {path} cannot be read: it has no parts.")
    return state


def _take_arrays(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, Mapping):
        return {str(key): _take_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_take_arrays(item, arrays) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _put_arrays(value: Any, file: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return file[value[_ARRAY]]
        return {key: _put_arrays(item, file) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_arrays(item, file) for item in value]
    return value
