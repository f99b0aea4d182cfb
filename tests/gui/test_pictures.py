"""The picture maker: real windows, drawn without a screen."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from gym_gui.theme import theme
from gym_gui.tools.pictures import SIZES, settled, take_empty


def test_a_window_is_drawn_at_every_size_and_in_both_themes(
    var: Path, tmp_path: Path, qapp: QApplication, leak_marks: list[str]
) -> None:
    place = tmp_path / "empty"
    leak_marks.append(str(place))
    take_empty(qapp, place, tmp_path)
    theme.apply(qapp, "dark")
    dark, light = (
        [QImage(str(tmp_path / f"empty-{look}-{width}x{height}.png")) for width, height in SIZES]
        for look in ("dark", "light")
    )
    assert [(image.width(), image.height()) for image in dark] == list(SIZES)
    assert all(one.pixelColor(5, 300).lightness() < 80 for one in dark)
    assert all(one.pixelColor(5, 300).lightness() > 200 for one in light)


def test_a_picture_is_taken_when_nothing_moves_any_more(qtbot: QtBot) -> None:
    label = QLabel("1")
    qtbot.addWidget(label)
    label.show()
    timer = QTimer(label, interval=150)
    timer.timeout.connect(lambda: label.setNum(int(label.text()) + 1))
    timer.timeout.connect(lambda: timer.stop() if label.text() == "6" else None)
    timer.start()
    picture = settled(label)
    assert not timer.isActive()
    assert picture == label.grab().toImage()
