"""A video played in place."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QSlider, QVBoxLayout, QWidget

from gym_gui.models.scales import film_time
from gym_gui.services.video_frames import VideoFrame, VideoFrames
from gym_gui.theme import LABEL, SPACE
from gym_gui.ui.widgets.basics import NumberLabel, button, label
from gym_gui.ui.widgets.frame_view import FrameView

_TICKS = 1000


class VideoPlayer(QWidget):
    """Picture, a button, and where it is; it plays as soon as it is given a file."""

    shown = Signal()
    """A picture has come."""

    def __init__(self) -> None:
        super().__init__()
        self._film: VideoFrames | None = None
        self._length = 0.0
        self._count = 0
        self._playing = False
        self.view = FrameView()
        self.trouble = label("", "error", selectable=True, wraps=True)
        self.trouble.hide()
        self.toggle = button("Pause", "Space")
        # The key is seen to below: as a shortcut of the whole window it would be taken from other buttons.
        self.toggle.setShortcut(QKeySequence())
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _TICKS)
        self.slider.setAccessibleName("Place in the film")
        self.time = NumberLabel("", LABEL, bold=False)
        row = QHBoxLayout()
        row.setSpacing(SPACE[1])
        row.addWidget(self.toggle)
        row.addWidget(self.slider, 1)
        row.addWidget(self.time)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[1])
        column.addWidget(self.view, 1)
        column.addWidget(self.trouble)
        column.addLayout(row)
        self.toggle.clicked.connect(lambda: self.set_playing(not self._playing))
        self.slider.valueChanged.connect(self._seek)

    def open(self, path: Path) -> None:
        """Play a file from its beginning."""
        self.close_film()
        self.trouble.hide()
        self._film = VideoFrames(path)
        self._film.news.connect(self._take)
        self._film.ended.connect(lambda: self._show_playing(False))
        self._film.failed.connect(self._fail)
        self._show_playing(True)
        self._film.start()

    def close_film(self) -> None:
        """Play nothing any more."""
        if self._film is not None:
            self._film.close()
            self._film.deleteLater()
            self._film = None
        self.view.clear()
        self._length = 0.0

    def set_playing(self, playing: bool) -> None:
        """Go on, or stand still."""
        if self._film is not None:
            self._film.play(playing)
            self._show_playing(playing)

    def _show_playing(self, playing: bool) -> None:
        self._playing = playing
        self.toggle.setText("Pause" if playing else "Play")

    def _take(self) -> None:
        frame = self._film.take() if self._film is not None else None
        if frame is not None:
            self._show(frame)

    def _show(self, frame: VideoFrame) -> None:
        self._length = frame.length
        self._count += 1
        self.view.show_pictures([((0, self._count), frame.pixels)])
        self.time.setText(film_time(frame.seconds, frame.length))
        if frame.length and not self.slider.isSliderDown():
            with QSignalBlocker(self.slider):
                self.slider.setValue(round(frame.seconds / frame.length * _TICKS))
        self.shown.emit()

    def _seek(self, value: int) -> None:
        if self._film is not None and self._length:
            self._film.seek(value / _TICKS * self._length)

    def _fail(self, why: str) -> None:
        self.trouble.setText(why)
        self.trouble.show()
        self._show_playing(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            self.set_playing(not self._playing)
        else:
            super().keyPressEvent(event)
