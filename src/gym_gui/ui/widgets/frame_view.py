"""Pictures of any size in a widget of any size: right in their proportions, and sharp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gym_gui.models.frame_layout import Place, arrange, crisp
from gym_gui.theme import LABEL, number_font, theme

Key = tuple[int, int]


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
        self._word = ""
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
        places = arrange(sizes, width, height) or [Place(0, 0, *size) for size in sizes]
        made = {}
        for (key, pixels), place in zip(pictures, places, strict=True):
            target = round(place.width * ratio), round(place.height * ratio)
            known = self._prepared.get((key, target))
            own = (pixels.shape[1], pixels.shape[0])
            made[key, target] = known or FrameImage((key, target), own, _image(pixels, target, ratio))
        self._prepared = made
        return list(made.values())

    def show_images(self, images: Sequence[FrameImage], word: str = "") -> None:
        """Paint what was prepared. `word` is written over it: why it stands still."""
        if word != self._word or [one.key for one in images] != [one.key for one in self._shown]:
            self._shown, self._word = images, word
            self.update()

    def show_pictures(self, pictures: Sequence[tuple[Key, Any]]) -> None:
        """Prepare and paint at once, for who has few of them."""
        self.show_images(self.prepare(pictures))

    @property
    def count(self) -> int:
        """How many pictures are shown."""
        return len(self._shown)

    @property
    def word(self) -> str:
        """What is written over them."""
        return self._word

    def clear(self) -> None:
        self._shown, self._prepared, self._word = (), {}, ""
        self.update()

    def places(self) -> list[Place]:
        """Where each picture is."""
        return arrange([one.size for one in self._shown], self.width(), self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._room = (self.width(), self.height(), self.devicePixelRatioF())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._word:
            painter.setOpacity(0.45)
        for one, place in zip(self._shown, self.places(), strict=True):
            wide = place.width * self.devicePixelRatioF()
            if abs(wide - one.image.width()) < 1.0:
                # It has the right size already, and is only copied.
                painter.drawImage(QPointF(round(place.left), round(place.top)), one.image)
                self._paint_edge(painter, place)
                continue
            rough = crisp(wide / one.image.width(), one.image.width(), one.image.height())
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not rough)
            painter.drawImage(QRectF(place.left, place.top, place.width, place.height), one.image)
            self._paint_edge(painter, place)
        if self._word:
            painter.setOpacity(1.0)
            self._paint_word(painter)
        painter.end()

    def _paint_edge(self, painter: QPainter, place: Place) -> None:
        """White pictures on a white panel would run together."""
        painter.setPen(theme.palette.colour("line"))
        left, top = round(place.left) - 1, round(place.top) - 1
        painter.drawRect(QRectF(left, top, place.width + 1, place.height + 1))

    def _paint_word(self, painter: QPainter) -> None:
        font = number_font(LABEL, QFont.Weight.DemiBold)
        width = QFontMetricsF(font).horizontalAdvance(self._word)
        box = QRectF(0, 0, width + 24, 28)
        box.moveCenter(QRectF(self.rect()).center())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.palette.colour("line"))
        painter.setBrush(theme.palette.colour("raised", 0.95))
        painter.drawRoundedRect(box, 14, 14)
        painter.setPen(theme.palette.colour("warn"))
        painter.setFont(font)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self._word)


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
