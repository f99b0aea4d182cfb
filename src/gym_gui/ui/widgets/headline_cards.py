"""The numbers on top of a run's page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.overview import Headline
from gym_gui.ui.widgets.basics import Card, NumberLabel
from gym_gui.ui.widgets.elided import ElidedLabel

_LEAST_WIDTH = 150


class HeadlineCard(Card):
    """One number with its name above and what else is to be said below."""

    def __init__(self) -> None:
        super().__init__(margin=SPACE[2], spacing=2)
        # As wide as its neighbours, whatever each of them says.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.name = ElidedLabel("", "label")
        self.value = NumberLabel()
        self.detail = ElidedLabel("", "label")
        for part in (self.name, self.value, self.detail):
            self.column.addWidget(part)

    def show_headline(self, headline: Headline) -> None:
        self.name.setText(headline.name)
        self.value.setText(headline.value)
        self.detail.setText(headline.detail)


class HeadlineCards(QWidget):
    """A row of cards; in a narrow window two, each as long as the other."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(SPACE[2])
        self.cards: list[HeadlineCard] = []
        self._columns = 0

    def show_headlines(self, headlines: Sequence[Headline]) -> None:
        while len(self.cards) < len(headlines):
            self.cards.append(HeadlineCard())
            self._columns = 0
        for card, headline in zip(self.cards, headlines, strict=True):
            card.show_headline(headline)
        self._arrange()

    def _arrange(self) -> None:
        count = len(self.cards)
        fit = max(1, min(count, self.width() // _LEAST_WIDTH))
        if fit < count:
            # Two rows of about the same length.
            fit = min(fit, -(-count // 2))
        if fit == self._columns or not self.cards:
            return
        self._columns = fit
        columns = math.lcm(fit, count % fit or fit)
        for index, card in enumerate(self.cards):
            row, place = divmod(index, fit)
            span = columns // min(fit, count - row * fit)
            self._grid.addWidget(card, row, place * span, 1, span)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._arrange()
