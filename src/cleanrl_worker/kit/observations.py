"""One array out of whatever an environment shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.portable.probe import describe_space
from cleanrl_worker.schemas.spaces import grid_of_dict, is_grid, is_image

Reader = Callable[[Any], NDArray[Any]]


def array_observations(space: Any, flat: bool = False) -> tuple[spaces.Box, Reader | None]:
    """The space of the arrays that algorithms get, and how to read one; None where it is one already.

    Of a grid world with a mission in words it is the picture. All else that is not a picture becomes a vector
    in gymnasium's own order: a number out of n as n numbers of which one is 1, the parts of a dict one after
    the other. With `flat` pictures become vectors too.
    """
    described = describe_space(space)
    if grid_of_dict(described) is not None:
        found, read = array_observations(space["image"], flat)
        return found, (lambda obs: read(obs["image"])) if read else lambda obs: obs["image"]
    pictures = is_grid(described) or is_image(described)
    if isinstance(space, spaces.Box) and (len(space.shape) == 1 or (pictures and not flat)):
        return space, None
    vector = spaces.flatten_space(space)
    assert isinstance(vector, spaces.Box)
    if isinstance(space, spaces.Box):
        return vector, lambda obs: obs.reshape(-1)
    return vector, lambda obs: np.asarray(spaces.flatten(space, obs))
