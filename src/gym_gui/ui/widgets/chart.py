"""A chart: its title, its plot, its legend, what can be done with it, as a file, and enlarged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QGuiApplication, QImage, QKeyEvent, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog, QFrame, QMenu, QSizePolicy, QWidget

from gym_gui.context import Context
from gym_gui.models.charting import ChartOptions, Key, Line, above_zero, keys_of, to_csv
from gym_gui.theme import LABEL, SPACE, TEXT, number_font, theme
from gym_gui.ui.widgets.basics import Button, Card, ElidedLabel, fill, hbox, label, named, restyle, vbox
from gym_gui.ui.widgets.plot_area import PlotArea
from gym_gui.ui.widgets.plot_parts import Legend, paint_key
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError, UserError

_SCALE = 2.0
_MARGIN, _TITLE, _KEY = 14.0, 26.0, 18.0
_MOST_KEYS = 12
READING = "Reading…"
_KINDS = {
    ".png": ("Save as PNG…", "Picture (*.png)"),
    ".svg": ("Save as SVG…", "Drawing (*.svg)"),
    ".csv": ("Save points as CSV…", "Table (*.csv)"),
}
"""By the end of a file's name: the words of the menu, and the filter of the dialog."""
_LEGEND_ROWS = 3


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
    raise UserError(f"{path.name} is not a name for a chart: it must end in {', '.join(_KINDS)}.")


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
    size, buffer = _size(plot), QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setTitle(title)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    painter = QPainter(generator)
    _paint(painter, plot, title, size)
    painter.end()
    return bytes(buffer.data().data())


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
    buffer = QBuffer()
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def _write(path: Path, content: bytes) -> Path:
    try:
        write_atomic(path, content)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    return path


class Chart(Card):
    """One metric. Drag to zoom, Shift-drag to move, double-click for all; arrows, + and − do the same."""

    enlarge = Signal()
    """The person wants to see it larger, or if it is large, as it was."""
    news = Signal()
    """It shows something else."""

    def __init__(self, context: Context, height: int = 240, explains: bool = False) -> None:
        """With `explains` it has a legend whatever it shows; else of several lines, if there is room."""
        super().__init__(spacing=SPACE[0])
        self._context = context
        self._explains = explains
        self.title = ElidedLabel("", "strong", middle=True)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.note = ElidedLabel("", "label")
        self.note.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.menu_button = named(Button("⋯", role="quiet"), "Save, copy, enlarge")
        self.menu_button.setStyleSheet("min-height: 20px; max-height: 20px; padding: 0 6px;")
        self.plot = PlotArea()
        self.legend = Legend(_LEGEND_ROWS, cuts=explains)
        self._empty = label("", "dim")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setParent(self)
        self.setMinimumHeight(height)
        self.head = hbox(self.title, (self.note, 1), self.menu_button)
        fill(self.column, self.head, (self.plot, 1), self.legend)
        self.menu_button.setMenu(self._menu())
        self.plot.focused.connect(lambda there: restyle(self, focused=there))
        self.show_lines("", [], ChartOptions())

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for kind, (words, _) in _KINDS.items():
            menu.addAction(words).triggered.connect(lambda _=False, kind=kind: self.ask_and_save(kind))
        menu.addAction("Copy picture").triggered.connect(self.copy_picture)
        menu.addSeparator()
        menu.addAction("Show all\t0").triggered.connect(lambda: self.plot.zoom_to(None))
        menu.addAction("Enlarge\tEnter").triggered.connect(self.enlarge.emit)
        return menu

    def show_lines(
        self,
        title: str,
        lines: Sequence[Line],
        options: ChartOptions,
        note: str = "",
        empty: str = "No points yet",
    ) -> None:
        """Draw lines under a title; without a point `empty` says so."""
        self.title.setText(title)
        self.plot.show_lines(lines, options)
        self.legend.show_keys(keys_of(lines) if self._explains or len(lines) > 1 else [])
        linear = options.log_y and not above_zero(lines)
        self.note.setText(f"not log: ≤ 0 · {note}".removesuffix(" · ") if linear else note)
        nothing = not any(len(line.x) for line in lines)
        self._empty.setText(empty)
        self._empty.raise_()
        self._empty.setVisible(nothing)
        self.menu_button.setEnabled(not nothing)
        self.news.emit()

    def show_note(self, note: str) -> None:
        """Say something else beside the title."""
        if note != self.note.text():
            self.note.setText(note)
            self.news.emit()

    def show_loading(self, title: str, empty: str = READING) -> None:
        """Another run: nothing of the one before stands here while its points are on their way."""
        self.plot.zoom_to(None)
        self.show_lines(title, [], self.plot.options, empty=empty)
        # Not at the next turn of the queue: the old lines would stand under the new title until then.
        self.plot.draw()

    @property
    def empty_text(self) -> str:
        """What is said in place of lines."""
        return "" if self._empty.isHidden() else self._empty.text()

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._empty.setGeometry(QRect(0, self.height() // 2 - 14, self.width(), 28))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.enlarge.emit()
        else:
            super().keyPressEvent(event)

    def ask_and_save(self, kind: str) -> None:
        """Ask for a name and write the chart there."""
        name = self.title.text().replace("/", "-").replace(" ", "-") or "chart"
        title, (_, files) = f"Save {self.title.text()}", _KINDS[kind]
        asked, _ = QFileDialog.getSaveFileName(self.window(), title, f"{name}{kind}", files)
        if asked:
            path = Path(asked)
            self.save(path if path.suffix else path.with_suffix(kind))

    def save(self, path: Path) -> None:
        """Write the chart as the end of the name says: .png, .svg or .csv."""
        self._context.tasks.run(exporter(self.plot, self.title.text(), path), self._saved)

    def _saved(self, path: Path) -> None:
        self._context.notifications.tell(f"Saved {path}.", "good")

    def copy_picture(self) -> None:
        """Put the chart on the clipboard."""
        QGuiApplication.clipboard().setImage(as_image(self.plot, self.title.text()))
        self._context.notifications.tell(f"Copied the picture of {self.title.text()}.", "good")


class LargeChart(QFrame):
    """A chart that is enlarged: it lies over a part of a page and shows what the small one shows."""

    opened = Signal(bool)
    """Whether it is there now."""

    def __init__(self, context: Context, page: QWidget, over: QWidget, margin: int = 0, top: int = 0) -> None:
        """It covers `over`, a part of `page`, with room around it where the charts have some."""
        super().__init__(page)
        self.setProperty("role", "page")
        self._page, self._over = page, over
        self.source: Chart | None = None
        self.chart = Chart(context, explains=True)
        self.back = Button("Close", "Esc", do=self.close_chart)
        self.chart.head.addWidget(self.back)
        vbox(self.chart, on=self, margins=(margin, top, margin, margin))
        self.hide()
        self.chart.enlarge.connect(self.close_chart)
        over.installEventFilter(self)

    def open_chart(self, source: Chart) -> None:
        """Show a chart large, in the piece that is zoomed into."""
        self.close_chart()
        self.source = source
        source.news.connect(self._mirror)
        source.installEventFilter(self)
        self._mirror()
        self.chart.plot.zoom_to(source.plot.piece)
        self._cover()
        self.show()
        self.raise_()
        self.chart.plot.setFocus()
        self.opened.emit(True)

    def close_chart(self) -> None:
        """Show the page again."""
        source, self.source = self.source, None
        if source is None:
            return
        source.news.disconnect(self._mirror)
        source.removeEventFilter(self)
        self.hide()
        self.opened.emit(False)
        source.plot.setFocus()

    def _mirror(self) -> None:
        source = self.source
        if source is not None:
            shown = (source.title.text(), source.plot.lines, source.plot.options)
            self.chart.show_lines(*shown, source.note.text(), source.empty_text)

    def _cover(self) -> None:
        self.setGeometry(QRect(self._over.mapTo(self._page, QPoint(0, 0)), self._over.size()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._over and event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._cover()
        elif watched is self.source and event.type() == QEvent.Type.HideToParent:
            # Another run may not have this metric.
            self.close_chart()
        return super().eventFilter(watched, event)
