"""Pictures out of environments: how they are drawn without a screen, and what counts as one."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any

import numpy as np


class _Scratch(threading.local):
    """Memory for pictures on their way, for each thread its own: getting it anew costs more than the work."""

    def __init__(self) -> None:
        self._bytes = np.empty((3, 0), np.uint8)

    def of(self, height: int, width: int) -> Any:
        """Three tables of this size, with anything in them."""
        if self._bytes.shape[1] < height * width:
            self._bytes = np.empty((3, height * width), np.uint8)
        return self._bytes[:, : height * width].reshape(3, height, width)


_scratch = _Scratch()


def shrink(pixels: Any, step: int) -> Any:
    """Every `step`-th pixel of bytes, each mixed with its neighbours: thin lines would often be lost."""
    height, width = (side - side % step for side in pixels.shape[:2])
    if not (height and width):
        return pixels[::step, ::step]
    rows = pixels[:height, :width].reshape(height, -1)
    depth = rows.shape[1] // width
    mixed, across, spare = _scratch.of(height // step, rows.shape[1])
    _mean(rows[::step], rows[1::step], mixed, spare)
    # Each pixel with the next one. The last of a row has none; it is not taken below.
    across, spare = across[:, :-depth], spare[:, :-depth]
    _mean(mixed[:, :-depth], mixed[:, depth:], across, spare)
    small = np.empty((height // step, width // step, depth), np.uint8)
    for channel in range(depth):
        # By channels the loops are long; by pixels of three bytes it takes seven times as long.
        small[:, :, channel] = across[:, channel :: step * depth]
    return small if pixels.ndim == 3 else small[:, :, 0]


def _mean(one: Any, other: Any, out: Any, spare: Any) -> None:
    """The mean of bytes, without leaving them for a wider type."""
    np.bitwise_xor(one, other, out=out)
    np.right_shift(out, 1, out=out)
    np.bitwise_and(one, other, out=spare)
    np.add(out, spare, out=out)


_EGL_OWNERS = ("mujoco.egl", "dm_control._render.pyopengl.egl_renderer")


def choose_drawing() -> None:
    """Have MuJoCo draw with EGL and SDL with nothing where there is no screen.

    MuJoCo chooses when it is imported, and once; where EGL is not installed this would break that very
    import, so there it keeps its own choice. SDL would look for a screen and complain.
    """
    if any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if os.environ.get("MUJOCO_GL"):
        return
    if os.environ.get("PYOPENGL_PLATFORM", "egl") != "egl":
        return
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return
    os.environ["MUJOCO_GL"] = "egl"


class _Fork:
    """Whether this process was forked from one that had begun to draw with EGL: drawing here would hang."""

    harmful = False

    @classmethod
    def note(cls) -> None:
        owners = (sys.modules.get(name) for name in _EGL_OWNERS)
        cls.harmful = any(getattr(owner, "EGL_DISPLAY", None) is not None for owner in owners)


os.register_at_fork(after_in_child=_Fork.note)


def draw_in_vain() -> str | None:
    """Why this process must not draw; None when it may."""
    return "its process was forked from one that had begun to draw" if _Fork.harmful else None


def failed_import(error: BaseException | None) -> ImportError | None:
    """The import that failed behind an error; None where it is another one."""
    while error is not None and not isinstance(error, ImportError):
        error = error.__cause__ or error.__context__
    return error


def absent_package(error: BaseException) -> str:
    """The package whose absence is behind an error; empty where it is another one."""
    found = failed_import(error)
    absent = isinstance(found, ModuleNotFoundError)
    return found.name.partition(".")[0] if found is not None and absent and found.name else ""


def as_picture(drawn: Any, max_dim: int) -> Any:
    """What a `render()` gave, in bytes and not larger than `max_dim`; None when that is not a picture."""
    pixels = np.asarray(drawn)
    if pixels.ndim not in (2, 3) or pixels.size == 0 or pixels.dtype.kind not in "buif":
        return None
    if pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4):
        return None
    if pixels.dtype != np.uint8:
        pixels = _as_bytes(pixels)
    step = -(-max(pixels.shape[:2]) // max_dim)
    return pixels if step == 1 else shrink(pixels, step)


def _as_bytes(pixels: Any) -> Any:
    """Pixels of another kind: up to 1 for fractions and truth values, up to 255 for the others."""
    values = np.nan_to_num(pixels.astype(np.float64))
    if pixels.dtype.kind == "b" or (pixels.dtype.kind == "f" and values.max() <= 1.0):
        values *= 255.0
    return np.clip(values, 0.0, 255.0).astype(np.uint8)
