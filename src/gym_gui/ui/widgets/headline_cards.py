"""The numbers on top of a run's page."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QGridLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.overview import Headline
from gym_gui.ui.widgets.basics import Card, NumberLabel
from gym_gui.ui.widgets.elided import ElidedLabel

_LEAST_WIDTH = 150


class HeadlineCard(Card):
    """One number with its name above and what else is to be said below."""

    def __init__(self) -> None:
        super().__init__(margin=SPACE[2], spacing=2)
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
    """A row of cards; in a narrow window two."""

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
        for index, card in enumerate(self.cards):
            self._grid.addWidget(card, index // fit, index % fit)
        for column in range(len(self.cards)):
            self._grid.setColumnStretch(column, 1 if column < fit else 0)

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._arrange()
