"""The Media tab: histograms, pictures, films and texts of a run's event files, step by step.

Scripts wrote them, and may have been told to by anybody: texts stay plain, pictures are of known kinds and of
a size that can be borne, and everything is read beside the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QBuffer, QByteArray, QSignalBlocker, Qt
from PySide6.QtGui import QImage, QImageReader
from PySide6.QtWidgets import QHeaderView, QPlainTextEdit, QTreeWidget, QTreeWidgetItem, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.run_files import RunFacts, metrics_of
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import (
    PAGE,
    Card,
    ElidedLabel,
    gap_splitter,
    hbox,
    label,
    slider,
    stacked,
    tip,
    vbox,
)
from gym_gui.ui.widgets.frame_view import FrameView
from gym_gui.ui.widgets.heat_map import Heat, HeatMap
from mosaic.analytics.media import Histogram, Pictures, as_table, load_medium, shown_name
from mosaic.analytics.store import MediaTrack
from mosaic.client import RunRecord
from mosaic.contract.errors import StorageError

_LOOK_MS = 3000
_BINS = 64
_MOST_COLUMNS = 240
"""So many histograms stand beside each other at most."""
_MOST_PIXELS = 64_000_000
"""Of one picture, or of all frames of a film: more is not decoded."""
_MOST_TEXT = 1_000_000
_KINDS = ((b"\x89PNG", b"png"), (b"\xff\xd8\xff", b"jpeg"), (b"GIF8", b"gif"))
_FRAME_MS = 100
"""Where a film does not say how long it shows a picture."""

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Film:
    """Pictures that are decoded, and how long each is shown; a still one has a single picture."""

    frames: list[Pixels]
    ms: int


Shown = Heat | list[Film] | str


def read_track(folder: Path, track: MediaTrack, at: int) -> Shown:
    """What is to be shown of a track when the slider stands at one of its items."""
    if track.kind == "histogram":
        return _heat(folder, track)
    found = load_medium(folder, track.items[at])
    if isinstance(found, Pictures):
        return [decode(file) for file in found.files]
    assert isinstance(found, str)
    cut = len(found) > _MOST_TEXT
    return found[:_MOST_TEXT] + ("\n\n… the rest is not shown" if cut else "")


def _heat(folder: Path, track: MediaTrack) -> Heat:
    places = np.unique(np.linspace(0, len(track.items) - 1, _MOST_COLUMNS).round().astype(int))
    chosen = [track.items[place] for place in places]
    histograms = [one for one in (load_medium(folder, item) for item in chosen) if isinstance(one, Histogram)]
    edges, counts = as_table(histograms, _BINS)
    return Heat([item.step for item in chosen], edges, counts)


def decode(data: bytes) -> Film:
    """The pictures of a file; StorageError where it is none that is shown here."""
    kind = next((name for magic, name in _KINDS if data.startswith(magic)), None)
    if kind is None:
        raise StorageError("The picture is not a PNG, JPEG or GIF file: it cannot be shown.")
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    buffer.open(QBuffer.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer, QByteArray(kind))
    frames: list[Pixels] = []
    room, ms = _MOST_PIXELS, 0
    while reader.canRead():
        size = reader.size()
        room -= max(1, size.width() * size.height())
        if room < 0:
            if frames:
                break
            raise StorageError(
                f"The picture has {size.width()} × {size.height()} pixels: it is too large to be shown."
            )
        image = reader.read()
        if image.isNull():
            break
        ms = ms or reader.nextImageDelay()
        frames.append(_pixels(image))
    if not frames:
        raise StorageError(f"The picture is damaged ({reader.errorString()}): it cannot be shown.")
    return Film(frames, max(20, ms or _FRAME_MS))


def _pixels(image: QImage) -> Pixels:
    plain = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(plain.constBits(), np.uint8).reshape(plain.height(), plain.bytesPerLine())
    return rows[:, : 3 * plain.width()].reshape(plain.height(), plain.width(), 3).copy()


class MediaView(RunView):
    """What there is on the left; on the right what is chosen, and below it a slider over its steps."""

    title = "Media"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._tracks: list[MediaTrack] = []
        self._track: MediaTrack | None = None
        self._films: list[Film] = []
        self._frame = self._painted = 0
        self._busy = self._again = False
        self.list = QTreeWidget()
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setHeaderLabels(("Name", ""))
        self.list.setAccessibleName("Media of the run")
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.list.currentItemChanged.connect(lambda item: self._choose(self.list.indexOfTopLevelItem(item)))
        self.name = ElidedLabel("", "strong", middle=True)
        self.about = label("", "dim", selectable=True)
        self.trouble = label("", "error", selectable=True, wraps=True)
        self.heat, self.pictures = HeatMap(), FrameView()
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setAccessibleName("Text of the run")
        self.pages = stacked(QWidget(), self.heat, self.pictures, self.text)
        self.slider = slider(0, "Step")
        self.slider.valueChanged.connect(self._moved)
        self._timer = timer(self, _LOOK_MS, self._look)
        self._player = timer(self, _FRAME_MS, self._next_frame)
        foot = hbox((self.slider, 1), self.about, spacing=SPACE[2])
        details = Card(self.name, self.trouble, (self.pages, 1), foot)
        split = gap_splitter(Qt.Orientation.Horizontal, Card(self.list), details)
        split.setStretchFactor(1, 1)
        split.setSizes([400, 640])
        vbox(split, on=self, margins=PAGE)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_media

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._tracks = []
        with QSignalBlocker(self.list):
            self.list.clear()
        self._choose(-1)

    def enter(self) -> None:
        super().enter()
        self._look()
        self._timer.start()
        self._play()

    def leave(self) -> None:
        super().leave()
        self._timer.stop()
        self._player.stop()

    def _look(self) -> None:
        self.read(_tracks_of, self._show_tracks)
        if self.run.ended:
            self._timer.stop()

    def _show_tracks(self, tracks: list[MediaTrack]) -> None:
        if tracks == self._tracks:
            return
        self._tracks = tracks
        chosen = self._track
        keys = [(track.name, track.kind) for track in tracks]
        place = keys.index((chosen.name, chosen.kind)) if chosen and (chosen.name, chosen.kind) in keys else 0
        with QSignalBlocker(self.list):
            self.list.clear()
            for track in tracks:
                texts = [shown_name(track.items[0]), track.kind]
                item = QTreeWidgetItem(self.list, texts)
                item.setToolTip(0, tip(texts[0]))
            row = self.list.topLevelItem(place)
            if row is not None:
                self.list.setCurrentItem(row)
        self._choose(place if tracks else -1)

    def _choose(self, row: int) -> None:
        """Show a track: its last step, or where the slider stands when it is the same one."""
        track = self._tracks[row] if 0 <= row < len(self._tracks) else None
        old, self._track = self._track, track
        if track is None:
            self._forget("")
            self.name.setText("")
            self.about.setText("")
            self.slider.hide()
            return
        same = old is not None and (old.name, old.kind) == (track.name, track.kind)
        at_end = not same or self.slider.value() == self.slider.maximum()
        if not same:
            self._forget("")
        with QSignalBlocker(self.slider):
            self.slider.setMaximum(len(track.items) - 1)
            self.slider.setPageStep(max(1, len(track.items) // 10))
            if at_end:
                self.slider.setValue(len(track.items) - 1)
        self.slider.setVisible(len(track.items) > 1)
        self.name.setText(shown_name(track.items[0]))
        self._load()

    def _moved(self) -> None:
        if self._track is not None and self._track.kind == "histogram" and self.heat.heat is not None:
            self._tell_step()
            self.heat.show_step(self._track.items[self.slider.value()].step)
        else:
            self._load()

    def _tell_step(self) -> None:
        assert self._track is not None
        one = self._track.items[self.slider.value()]
        self.about.setText(f"step {one.step:,} · {words.clock(one.time)}")

    def _load(self) -> None:
        """Read what the slider points at; of many places that it passes only the last is read."""
        if self._track is None:
            return
        self._tell_step()
        if self._busy:
            self._again = True
            return
        self._busy = True
        track, at = self._track, self.slider.value()
        folder = Path(self.run.run_dir)
        self.context.tasks.run(
            lambda: read_track(folder, track, at),
            lambda shown: self._loaded(track, shown),
            lambda error: self._loaded(track, error),
            owner=self,
        )

    def _loaded(self, track: MediaTrack, shown: Shown | Exception) -> None:
        self._busy = False
        if self._again:
            self._again = False
            self._load()
        if track is not self._track:
            return
        if isinstance(shown, Exception):
            self._forget(str(shown))
            return
        self.trouble.hide()
        if isinstance(shown, Heat):
            self.heat.step = track.items[self.slider.value()].step
            self.heat.show_heat(shown)
            self.pages.setCurrentWidget(self.heat)
        elif isinstance(shown, str):
            self.text.setPlainText(shown)
            self.pages.setCurrentWidget(self.text)
        else:
            self._films, self._frame = shown, 0
            self.pages.setCurrentWidget(self.pictures)
            self._show_frame()
            self._play()

    def _forget(self, why: str) -> None:
        """Show nothing but a sentence."""
        self._films = []
        self._player.stop()
        self.heat.show_heat(None)
        self.pictures.clear()
        self.text.clear()
        self.pages.setCurrentIndex(0)
        self.trouble.setText(why)
        self.trouble.setVisible(bool(why))

    def _play(self) -> None:
        """Films play while they are seen, from the beginning again when they end."""
        longest = max(self._films, key=lambda film: len(film.frames), default=None)
        if self._visible and longest is not None and len(longest.frames) > 1:
            self._player.start(longest.ms)
        else:
            self._player.stop()

    def _next_frame(self) -> None:
        self._frame += 1
        self._show_frame()

    def _show_frame(self) -> None:
        shown = [film.frames[self._frame % len(film.frames)] for film in self._films]
        self._painted += 1
        self.pictures.show_pictures([((at, self._painted), pixels) for at, pixels in enumerate(shown)])


def _tracks_of(run: RunRecord) -> list[MediaTrack]:
    metrics = metrics_of(Path(run.run_dir))
    metrics.refresh()
    return metrics.media()
