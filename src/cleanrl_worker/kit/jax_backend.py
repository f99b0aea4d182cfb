"""Networks in JAX: seeds, trees of arrays by their names, model files that Flax reads."""

from __future__ import annotations

import os
from typing import Any, Generic, TypeVar

import jax
import numpy as np
import optax
from flax import serialization, traverse_util

from cleanrl_worker.kit.backend import Backend
from cleanrl_worker.kit.spec import Misfit, compare_weights
from cleanrl_worker.kit.state import State

TreeT = TypeVar("TreeT")


class JaxBackend(Backend):
    """Model files as CleanRL's scripts for JAX write them. JAX has no random state of its own, only keys.

    JAX takes up flags and the number of threads with the first thing that it computes: a module must not
    compute anything when it is imported.
    """

    file_kind = "Flax"

    def __init__(self, seed: int, deterministic: bool = True, cuda: bool = False) -> None:
        super().__init__(seed, deterministic, cuda)
        if not cuda:
            jax.config.update("jax_platforms", "cpu")
        elif deterministic:
            _add_flag("--xla_gpu_deterministic_ops=true")
        # What is asked for is needed at once: handing it to a thread only takes time.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        self.device = jax.devices()[0]

    def encode_model(self, content: Any) -> bytes:
        data: bytes = serialization.msgpack_serialize(content)
        return data

    @staticmethod
    def limit_threads(count: int) -> None:
        Backend.limit_threads(count)
        # The size of XLA's pool of threads, and whether one operation is spread over it.
        os.environ["NPROC"] = str(count)
        _add_flag(f"--xla_cpu_multi_thread_eigen={'true' if count > 1 else 'false'}")

    @staticmethod
    def decode_model(data: bytes) -> Any:
        return serialization.msgpack_restore(data)


BACKEND = JaxBackend


def _add_flag(flag: str) -> None:
    name = flag.partition("=")[0]
    others = [one for one in os.environ.get("XLA_FLAGS", "").split() if one.partition("=")[0] != name]
    # Ours stands first: XLA takes a text that does not begin with "--" for the name of a file, and ends.
    os.environ["XLA_FLAGS"] = " ".join([flag, *others])


class Tree(Generic[TreeT]):
    """A tree of arrays that a checkpoint holds by their names: parameters, or the state of an optimizer."""

    def __init__(self, value: TreeT) -> None:
        self.value = value

    def state(self) -> State:
        held: State = jax.tree.map(np.asarray, serialization.to_state_dict(self.value))
        return held

    def load(self, state: State) -> None:
        self.value = load_tree(self.value, state)


class Target(Tree[TreeT]):
    """A copy of a network's parameters that follows them slowly."""

    def __init__(self, followed: Tree[TreeT]) -> None:
        super().__init__(followed.value)
        self._followed = followed

    def follow(self, tau: float) -> None:
        """Go the share `tau` of the way to the network."""
        if tau == 1.0:
            self.value = self._followed.value
        else:
            self.value = optax.incremental_update(self._followed.value, self.value, tau)


def apply(network: Any, params: Any, *inputs: Any) -> Any:
    """What a network of Flax gives for inputs in rows."""
    return network.apply(params, *inputs)


def shapes_of(network: Any, *inputs: tuple[int, ...]) -> Any:
    """The tree of a network's parameters without their values, for inputs of these shapes."""
    rows = [jax.ShapeDtypeStruct((1, *shape), np.float32) for shape in inputs]
    return jax.eval_shape(network.init, jax.ShapeDtypeStruct((2,), np.uint32), *rows)


def load_tree(tree: TreeT, content: Any) -> TreeT:
    """The tree with these arrays; else Misfit says which of them it lacks or cannot take.

    Of `tree` only the shapes count: it may be what `jax.eval_shape` gives.
    """
    named = traverse_util.flatten_dict(serialization.to_state_dict(tree), keep_empty_nodes=True, sep=".")
    wanted = {name: leaf for name, leaf in named.items() if leaf is not traverse_util.empty_node}
    given = traverse_util.flatten_dict(content, sep=".") if isinstance(content, dict) else {"": content}
    if not all(isinstance(array, np.ndarray) for array in given.values()):
        raise Misfit("it does not hold the weights of one network by their names")
    compare_weights(
        {name: array.shape for name, array in given.items()},
        {name: tuple(leaf.shape) for name, leaf in wanted.items()},
    )
    arrays = {
        name: jax.device_put(given[name].astype(leaf.dtype).reshape(leaf.shape))
        for name, leaf in wanted.items()
    }
    loaded: TreeT = serialization.from_state_dict(tree, traverse_util.unflatten_dict(named | arrays, sep="."))
    return loaded
