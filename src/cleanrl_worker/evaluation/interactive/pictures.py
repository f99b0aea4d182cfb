"""An environment that can be drawn, and its pictures as text."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.drawing import absent_package, as_picture, choose_drawing
from mosaic.contract.extras import install_advice
from mosaic.fastlane.layout import lacks_package
from mosaic.fastlane.png import encode_png

MAX_DIM = 1024
"""Pictures with a longer side are shrunk by a whole number."""


def make_drawable(env_id: str, kwargs: dict[str, Any]) -> Any:
    """The environment, drawing pictures when asked to if it can."""
    choose_drawing()
    try:
        return probe.make_environment(env_id, {**kwargs, "render_mode": "rgb_array"})
    except probe.ProbeError:
        # Not every class knows the word.
        return probe.make_environment(env_id, kwargs)


def can_draw(env: Any) -> bool:
    """Whether `draw` has a chance."""
    return bool(env.render_mode == "rgb_array")


def draw(env: Any) -> dict[str, Any]:
    """The fields of a message that tell what the environment looks like now, or why that cannot be seen."""
    if not can_draw(env):
        return {"frame": None, "frame_problem": "this environment draws no pictures"}
    try:
        picture = as_picture(env.render(), MAX_DIM)
    except Exception as error:
        # A drawing library may be missing, which says nothing about the environment's steps.
        package = absent_package(error)
        why = f"{lacks_package(package)}; {install_advice(package)}" if package else ""
        said = why or " ".join(f"{type(error).__name__}: {error}".split())
        return {"frame": None, "frame_problem": said}
    if picture is None:
        return {"frame": None, "frame_problem": "what this environment draws is not a picture"}
    # Made once, sent through a pipe and forgotten: time matters more than size.
    return {"frame": base64.b64encode(encode_png(_coloured(picture), level=1)).decode()}


def _coloured(picture: Any) -> Any:
    """Three colours, also for what is grey or has a fourth channel."""
    if picture.ndim == 2:
        picture = picture[:, :, None]
    channels = 1 if picture.shape[2] == 1 else 3
    return np.ascontiguousarray(np.broadcast_to(picture[:, :, :channels], (*picture.shape[:2], 3)))
