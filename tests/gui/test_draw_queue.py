"""Plots wait their turn."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from gym_gui.ui.widgets.plot_area import DrawQueue


class Drawing:
    def __init__(self, drawn: list[Drawing]) -> None:
        self._drawn = drawn

    def draw(self) -> None:
        self._drawn.append(self)


def test_each_is_drawn_once_however_often_it_was_asked_for(qtbot: QtBot) -> None:
    drawn: list[Drawing] = []
    queue, one, two = DrawQueue(), Drawing(drawn), Drawing(drawn)
    for plot in (one, two, one, two, one):
        queue.add(plot)
    assert drawn == [], "nothing is drawn at once"
    qtbot.waitUntil(lambda: len(drawn) == 2)
    assert drawn == [one, two]
    assert queue._timer is not None and not queue._timer.isActive()


def test_what_is_hidden_before_its_turn_is_not_drawn(qtbot: QtBot) -> None:
    drawn: list[Drawing] = []
    queue, one, two = DrawQueue(), Drawing(drawn), Drawing(drawn)
    queue.add(one)
    queue.add(two)
    queue.remove(one)
    qtbot.waitUntil(lambda: drawn == [two])
