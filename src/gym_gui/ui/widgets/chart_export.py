"""A chart as a file: a picture, a drawing, or its points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from gym_gui.models.charting import Key, keys_of, to_csv
from gym_gui.theme import LABEL, TEXT, number_font, theme
from gym_gui.ui.widgets.legend import paint_key
from gym_gui.ui.widgets.plot_area import PlotArea
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError, UserError

SUFFIXES = (".png", ".svg", ".csv")
_SCALE = 2.0
_MARGIN, _TITLE, _KEY = 14.0, 26.0, 18.0
_MOST_KEYS = 12


def exporter(plot: PlotArea, title: str, path: Path) -> Callable[[], Path]:
    """What writes the chart to `path`, as the end of its name says: to be called in another thread.

    The painting is done here, as only the thread of the window may do it.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        lines, options = list(plot.lines), plot.options
        return lambda: _write(path, to_csv(title, lines, options).encode())
    if suffix == ".svg":
        drawing = as_svg(plot, title)
        return lambda: _write(path, drawing)
    if suffix == ".png":
        picture = as_image(plot, title)
        return lambda: _write(path, _png(picture))
    raise UserError(f"{path.name} is not a name for a chart: it must end in {', '.join(SUFFIXES)}.")


def as_image(plot: PlotArea, title: str) -> QImage:
    """The chart with its title, twice as sharp as the screen."""
    size = _size(plot)
    image = QImage(size * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    painter = QPainter(image)
    _paint(painter, plot, title, size)
    painter.end()
    return image


def as_svg(plot: PlotArea, title: str) -> bytes:
    """The chart as a drawing that stays sharp at any size."""
    size = _size(plot)
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    painter = QPainter(generator)
    _paint(painter, plot, title, size)
    painter.end()
    buffer.close()
    return bytes(data.data())


def _keys(plot: PlotArea) -> list[Key]:
    return keys_of(plot.lines)[:_MOST_KEYS]


def _size(plot: PlotArea) -> QSize:
    height = plot.height() + _TITLE + 2 * _MARGIN + len(_keys(plot)) * _KEY
    return QSize(int(plot.width() + 2 * _MARGIN), int(height))


def _paint(painter: QPainter, plot: PlotArea, title: str, size: QSize) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, size.width(), size.height()), theme.palette.colour("panel"))
    painter.setPen(theme.palette.colour("text"))
    painter.setFont(number_font(TEXT, QFont.Weight.DemiBold))
    row = QRectF(_MARGIN, _MARGIN - 4, size.width() - 2 * _MARGIN, _TITLE - 4)
    painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, title)
    target = QRectF(_MARGIN, _MARGIN + _TITLE - 4, plot.width(), plot.height())
    plot.render(painter, target, plot.viewport().rect())
    painter.setFont(number_font(LABEL))
    top = target.bottom() + 4
    for key in _keys(plot):
        paint_key(painter, key, QPointF(_MARGIN, top + _KEY / 2))
        painter.setPen(theme.palette.colour("dim"))
        place = QRectF(_MARGIN + 22, top, size.width() - 2 * _MARGIN - 22, _KEY)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, key.text)
        top += _KEY


def _png(image: QImage) -> bytes:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    buffer.close()
    return bytes(data.data())


def _write(path: Path, content: bytes) -> Path:
    try:
        write_atomic(path, content)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    return path
