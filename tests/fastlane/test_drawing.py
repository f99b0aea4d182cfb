"""Pictures are drawn where there is no screen, and never where drawing would harm."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.portable.fastlane.drawing import as_picture, choose_drawing

CHOICES = ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY", "PYOPENGL_PLATFORM", "SDL_VIDEODRIVER")


def has_egl() -> bool:
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("drawn", "seen"),
    [
        (np.full((4, 6, 3), 7, np.uint8), 7),
        (np.full((4, 6, 3), 0.5), 127),
        (np.full((4, 6, 3), 300.0), 255),
        (np.full((4, 6), np.nan, np.float32), 0),
        (np.ones((4, 6, 1), bool), 255),
        (np.full((4, 6, 4), -5, np.int64), 0),
    ],
)
def test_pictures_of_other_kinds_become_bytes(drawn: Any, seen: int) -> None:
    picture = as_picture(drawn, 512)
    assert picture.dtype == np.uint8
    assert picture.shape == drawn.shape
    assert (picture == seen).all()


@pytest.mark.parametrize(
    "drawn",
    [None, "text", [], np.zeros((3, 40, 60), np.uint8), np.full((4, 6, 3), None), np.zeros((0, 4, 3))],
)
def test_what_is_no_picture_is_none(drawn: Any) -> None:
    assert as_picture(drawn, 512) is None


@pytest.mark.parametrize(
    ("shape", "smaller"),
    [
        ((1030, 20, 3), (343, 6, 3)),
        ((1030, 20), (343, 6)),
        ((20, 1030, 4), (6, 343, 4)),
        ((1030, 2, 1), (344, 1, 1)),
    ],
)
def test_a_large_picture_is_made_smaller(shape: tuple[int, ...], smaller: tuple[int, ...]) -> None:
    picture = as_picture(np.full(shape, 255, np.uint8), 512)
    assert picture.shape == smaller
    assert (picture == 255).all()


@pytest.mark.parametrize("at", range(300, 304))
def test_a_line_of_one_pixel_stays_in_a_picture_of_half_the_size(at: int) -> None:
    lines = np.full((400, 600, 3), 255, np.uint8)
    lines[at], lines[:, at] = 0, 0
    picture = as_picture(lines, 512)
    assert picture.shape == (200, 300, 3)
    assert picture[at // 2, 10, 0] == 127 == picture[10, at // 2, 0], "as dark as its share of the pixel"
    assert (picture == 255).mean() > 0.98


def test_a_first_picture_without_a_screen_is_drawn_without_a_word() -> None:
    hidden = {*CHOICES, "XDG_RUNTIME_DIR"}
    script = (
        "from cleanrl_worker.portable.fastlane.drawing import choose_drawing\n"
        "import gymnasium, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "choose_drawing()\n"
        "env = gymnasium.make('CartPole-v1', render_mode='rgb_array')\n"
        "env.reset()\n"
        "assert env.render() is not None"
    )
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, "egl" if has_egl() else None),
        ({"DISPLAY": ":0"}, None),
        ({"WAYLAND_DISPLAY": "wayland-0"}, None),
        ({"PYOPENGL_PLATFORM": "osmesa"}, None),
        ({"MUJOCO_GL": "osmesa"}, "osmesa"),
    ],
)
def test_egl_is_chosen_only_where_nothing_else_is(
    given: dict[str, str], chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CHOICES:
        # Set first, so that what is chosen is taken back at the end.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    choose_drawing()
    assert os.environ.get("MUJOCO_GL") == chosen


FORKED = """
import os
from cleanrl_worker.portable.fastlane import drawing
import mujoco.egl
before = os.fork()
if before == 0:
    os._exit(0 if drawing.draw_in_vain() is None else 1)
context = mujoco.egl.GLContext(64, 64)
after = os.fork()
if after == 0:
    os._exit(0 if drawing.draw_in_vain() is None else 1)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in (before, after)]
print(codes, drawing.draw_in_vain())
os._exit(0)
"""


@pytest.mark.skipif(not has_egl(), reason="needs EGL")
def test_a_process_forked_from_one_that_draws_with_egl_draws_nothing() -> None:
    pytest.importorskip("mujoco")
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        env={**os.environ, "MUJOCO_GL": "egl"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[0, 1] None\n" or "Cannot initialize a EGL device" in done.stderr, done.stderr
