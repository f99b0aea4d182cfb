"""Videos played in place."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gym_gui.ui.widgets.frame_view import VideoPlayer
from mosaic.analytics.film import Film
from support.gui_context import shown


def film(path: Path, frames: int = 30) -> Path:
    made = Film(30.0)
    for number in range(frames):
        made.add(np.full((48, 64, 3), number * 2, np.uint8))
    path.write_bytes(made.finish())
    return path


def test_a_video_plays_to_its_end_and_again(tmp_path: Path, qtbot: QtBot) -> None:
    player = VideoPlayer()
    with shown(player, 400, 300):
        player.open(film(tmp_path / "a.mp4"))
        qtbot.waitUntil(lambda: player.view.count == 1)
        qtbot.waitUntil(lambda: player.toggle.text() == "Play", timeout=10_000)
        assert player.time.text() == "1.0 of 1.0 s"
        QTest.mouseClick(player.toggle, Qt.MouseButton.LeftButton)
        assert player.toggle.text() == "Pause"
        with qtbot.waitSignal(player.shown):
            pass
        player.close_film()


def test_a_place_of_the_film_can_be_chosen_while_it_stands(tmp_path: Path, qtbot: QtBot) -> None:
    player = VideoPlayer()
    with shown(player, 400, 300):
        player.open(film(tmp_path / "a.mp4", 90))
        qtbot.waitUntil(lambda: player.view.count == 1)
        player.set_playing(False)
        with qtbot.waitSignal(player.shown):
            player.slider.setValue(900)
        assert player.time.text().startswith("2.7")
        player.close_film()


def test_a_file_that_is_no_video_is_told(tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"not a film")
    player = VideoPlayer()
    with shown(player):
        player.open(tmp_path / "broken.mp4")
        qtbot.waitUntil(lambda: player.trouble.isVisible())
        assert "broken.mp4 cannot be played" in player.trouble.text()
        player.close_film()


def test_without_the_package_it_names_the_command_that_installs_it(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    player = VideoPlayer()
    with shown(player):
        player.open(tmp_path / "any.mp4")
        qtbot.waitUntil(lambda: player.trouble.isVisible())
        assert "mosaic extras install video" in player.trouble.text()
        player.close_film()
