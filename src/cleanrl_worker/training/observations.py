"""One array out of whatever an environment shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.probe import describe_space
from cleanrl_worker.schemas.spaces import grid_of_dict


def array_observations(space: Any) -> tuple[spaces.Box, Callable[[Any], NDArray[Any]] | None]:
    """The space of the arrays that algorithms get, and how to read one; None where it is one already.

    Of a grid world with a mission in words it is the picture. All else that is no `Box` becomes a vector in
    gymnasium's own order: a number out of n as n numbers of which one is 1, the parts of a dict one after
    the other.
    """
    if isinstance(space, spaces.Box):
        return space, None
    if grid_of_dict(describe_space(space)) is not None:
        return space["image"], _read_image
    flat = spaces.flatten_space(space)
    assert isinstance(flat, spaces.Box)
    return flat, lambda obs: np.asarray(spaces.flatten(space, obs))


def _read_image(obs: Any) -> NDArray[Any]:
    image: NDArray[Any] = obs["image"]
    return image
