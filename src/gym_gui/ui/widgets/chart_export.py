"""A chart as a file: a picture, a drawing, or its points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from gym_gui.models.charting import Axis, Line, to_csv
from gym_gui.theme import LABEL, TEXT, number_font, theme
from gym_gui.ui.widgets.line_colours import line_colour
from gym_gui.ui.widgets.plot_area import PlotArea
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError, UserError

SUFFIXES = (".png", ".svg", ".csv")
_SCALE = 2.0
_MARGIN, _TITLE, _KEY = 14.0, 26.0, 18.0
_MOST_KEYS = 12


def exporter(plot: PlotArea, title: str, axis: Axis, path: Path) -> Callable[[], Path]:
    """What writes the chart to `path`, as the end of its name says: to be called in another thread.

    The painting is done here, as only the thread of the window may do it.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        lines = list(plot.lines)
        return lambda: _write(path, to_csv(title, lines, axis).encode())
    if suffix == ".svg":
        drawing = as_svg(plot, title)
        return lambda: _write(path, drawing)
    if suffix == ".png":
        picture = as_image(plot, title)
        return lambda: _write(path, _png(picture))
    raise UserError(f"{path.name} is no name for a chart: it must end in {', '.join(SUFFIXES)}.")


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


def _keys(plot: PlotArea) -> list[Line]:
    return [line for line in plot.lines if line.label][:_MOST_KEYS]


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
    for line in _keys(plot):
        painter.fillRect(QRectF(_MARGIN, top + _KEY / 2 - 1, 14, 2.5), line_colour(line.colour))
        painter.setPen(theme.palette.colour("dim"))
        place = QRectF(_MARGIN + 22, top, size.width() - 2 * _MARGIN - 22, _KEY)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, line.label)
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
