"""Pictures of any size in a widget of any size, and a video played in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gym_gui.services.frames import VideoFrames
from gym_gui.theme import LABEL, number_font, theme
from gym_gui.ui.widgets.basics import Button, NumberLabel, hbox, label, slider, vbox
from mosaic.analytics.scales import film_time

_WORTH = 0.75
_GAP = 6.0
EDGE = 1.0
"""Room for a line around each picture, also at the border."""
SMALL = 96
"""A picture with fewer pixels to a side is made of blocks that should stay sharp."""
Key = tuple[int, int]
_TICKS = 1000


def arrange(sizes: Sequence[tuple[int, int]], width: float, height: float) -> list[QRectF]:
    """A place for each picture of (width, height): rows and columns that leave them the most room."""
    width, height = width - 2 * EDGE, height - 2 * EDGE
    if not sizes or width <= 0 or height <= 0:
        return []
    wide, high = max(size[0] for size in sizes), max(size[1] for size in sizes)
    scales = {
        count: _scale(len(sizes), count, wide, high, width, height) for count in range(1, len(sizes) + 1)
    }
    # A grid without holes looks better, and is worth somewhat smaller pictures.
    large = [count for count, scale in scales.items() if scale >= max(scales.values()) * _WORTH]
    columns = min(large, key=lambda count: (-len(sizes) % count, -scales[count]))
    rows = math.ceil(len(sizes) / columns)
    scale = scales[columns]
    left = (width - columns * wide * scale - (columns - 1) * _GAP) / 2
    top = (height - rows * high * scale - (rows - 1) * _GAP) / 2
    places = []
    for index, (own_width, own_height) in enumerate(sizes):
        row, column = divmod(index, columns)
        fit = scale * min(wide / own_width, high / own_height)
        x = left + column * (wide * scale + _GAP) + (wide * scale - own_width * fit) / 2
        y = top + row * (high * scale + _GAP) + (high * scale - own_height * fit) / 2
        places.append(QRectF(EDGE + x, EDGE + y, own_width * fit, own_height * fit))
    return places


def _scale(count: int, columns: int, wide: int, high: int, width: float, height: float) -> float:
    rows = math.ceil(count / columns)
    return max(
        1e-3, min((width - (columns - 1) * _GAP) / columns / wide, (height - (rows - 1) * _GAP) / rows / high)
    )


def crisp(scale: float, wide: int, high: int) -> bool:
    """Whether pixels are drawn as blocks: enlarged ones of a small picture, and any that keep their size."""
    return scale >= 2.0 or (scale >= 1.0 and max(wide, high) <= SMALL) or abs(scale - 1.0) < 1e-6


@dataclass(frozen=True)
class FrameImage:
    """A picture ready to be painted: its own size, and pixels that may be fewer."""

    key: tuple[Key, tuple[int, int]]
    size: tuple[int, int]
    image: QImage


class FrameView(QWidget):
    """One picture, or several as a grid that leaves each the most room."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: Sequence[FrameImage] = ()
        self._prepared: dict[tuple[Key, tuple[int, int]], FrameImage] = {}
        self.word = ""
        """What is written over the pictures."""
        self._room = (0, 0, 1.0)
        """Width, height and pixels of the screen for one of ours, for `prepare` in its thread."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(120, 80)

    def sizeHint(self) -> QSize:
        return QSize(480, 320)

    def prepare(self, pictures: Sequence[tuple[Key, Any]]) -> list[FrameImage]:
        """Make pictures of bytes, (height, width, 3), ready for painting; any one thread may do it.

        Making them smaller takes all of their pixels into account, which is too slow for the window's thread.
        """
        width, height, ratio = self._room
        sizes = [(pixels.shape[1], pixels.shape[0]) for _, pixels in pictures]
        places = arrange(sizes, width, height) or [QRectF(0, 0, *size) for size in sizes]
        made = {}
        for (key, pixels), place in zip(pictures, places, strict=True):
            target = round(place.width() * ratio), round(place.height() * ratio)
            known = self._prepared.get((key, target))
            own = (pixels.shape[1], pixels.shape[0])
            made[key, target] = known or FrameImage((key, target), own, _image(pixels, target, ratio))
        self._prepared = made
        return list(made.values())

    def show_images(self, images: Sequence[FrameImage], word: str = "") -> None:
        """Paint what was prepared. `word` is written over it: why it stands still."""
        if word != self.word or [one.key for one in images] != [one.key for one in self._shown]:
            self._shown, self.word = images, word
            self.update()

    def show_pictures(self, pictures: Sequence[tuple[Key, Any]]) -> None:
        """Prepare and paint at once, for who has few of them."""
        self.show_images(self.prepare(pictures))

    @property
    def count(self) -> int:
        """How many pictures are shown."""
        return len(self._shown)

    def clear(self) -> None:
        self._shown, self._prepared, self.word = (), {}, ""
        self.update()

    def places(self) -> list[QRectF]:
        """Where each picture is."""
        return arrange([one.size for one in self._shown], self.width(), self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._room = (self.width(), self.height(), self.devicePixelRatioF())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self.word:
            painter.setOpacity(0.45)
        for one, place in zip(self._shown, self.places(), strict=True):
            wide = place.width() * self.devicePixelRatioF()
            if abs(wide - one.image.width()) < 1.0:
                # It has the right size already, and is only copied.
                painter.drawImage(QPointF(round(place.left()), round(place.top())), one.image)
            else:
                rough = crisp(wide / one.image.width(), one.image.width(), one.image.height())
                painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not rough)
                painter.drawImage(place, one.image)
            # White pictures on a white panel would run together.
            painter.setPen(theme.palette.colour("line"))
            left, top = round(place.left()) - 1, round(place.top()) - 1
            painter.drawRect(QRectF(left, top, place.width() + 1, place.height() + 1))
        if self.word:
            painter.setOpacity(1.0)
            self._paint_word(painter)
        painter.end()

    def _paint_word(self, painter: QPainter) -> None:
        font = number_font(LABEL, QFont.Weight.DemiBold)
        width = QFontMetricsF(font).horizontalAdvance(self.word)
        box = QRectF(0, 0, width + 24, 28)
        box.moveCenter(QRectF(self.rect()).center())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.palette.colour("line"))
        painter.setBrush(theme.palette.colour("raised", 0.95))
        painter.drawRoundedRect(box, 14, 14)
        painter.setPen(theme.palette.colour("warn"))
        painter.setFont(font)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.word)


def _image(pixels: Any, target: tuple[int, int], ratio: float) -> QImage:
    plain = np.ascontiguousarray(pixels)
    height, width, _ = plain.shape
    image = QImage(plain.data, width, height, width * 3, QImage.Format.Format_RGB888)
    # The format of the screen is drawn fastest, and the copy no longer hangs on the pixels' memory.
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    if 0 < target[0] < width:
        # A line of one pixel would vanish if only some of the pixels were taken.
        ways = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        image = image.scaled(*target, *ways)
        image.setDevicePixelRatio(ratio)
    return image


class VideoPlayer(QWidget):
    """Picture, a and where it is; it plays as soon as it is given a file."""

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
        # The key is seen to below: as a shortcut of the whole window it would be taken from other buttons.
        self.toggle = Button("Pause", "Space", do=lambda: self.set_playing(not self._playing), listens=False)
        self.slider = slider(_TICKS, "Position in the video")
        self.time = NumberLabel()
        vbox((self.view, 1), self.trouble, hbox(self.toggle, (self.slider, 1), self.time), on=self)
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
        if frame is None:
            return
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
