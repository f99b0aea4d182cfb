"""Environments with image observations are shown by one call of the training core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cleanrl_worker.fastlane.images import ImageRow, picture_of
from cleanrl_worker.fastlane.lane import SEGMENT_VARIABLE
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.segment import create_segment


@pytest.mark.parametrize(
    ("shape", "picture"),
    [
        ((84, 84), (84, 84)),
        ((64, 64, 3), (64, 64, 3)),
        ((3, 64, 64), (64, 64, 3)),
        ((4, 84, 84), (84, 84)),
        ((84, 84, 4), (84, 84)),
        ((1, 84, 84), (84, 84)),
    ],
)
def test_the_newest_picture_of_an_observation(shape: tuple[int, ...], picture: tuple[int, ...]) -> None:
    assert picture_of(np.zeros(shape, np.uint8)).shape == picture


def test_ataris_own_vector_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vector_env = pytest.importorskip("ale_py.vector_env")
    with monkeypatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path))
        patch.setenv(SEGMENT_VARIABLE, str(create_segment("ATARI", "grid")))
        patch.setattr("cleanrl_worker.fastlane.lane._opened", {})
        row = ImageRow(2, "breakout")
        grid = LiveGrid("ATARI")
    envs = vector_env.AtariVectorEnv("breakout", num_envs=2)
    observations, _ = envs.reset(seed=1)
    with grid:
        while len(grid.shown) < 2:
            observations, rewards, terminated, truncated, _ = envs.step(np.zeros(2, np.int64))
            row.after_step(observations, rewards, terminated | truncated)
            grid.look()
        assert grid.picture().shape == (84, 2 * 84 + 2, 3)
        assert grid.picture().any()
    envs.close()
