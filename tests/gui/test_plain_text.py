"""The window shows the words of others as they are: none of them is HTML, a link or a picture."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QLabel, QTextEdit, QToolTip, QWidget

from gym_gui.ui.widgets.basics import ElidedLabel, tip
from mosaic.client import Client
from support.gui_context import shown
from support.runs import script_config
from support.window import Driver

_MOST_COLUMNS = 40
HTML = "<img src='http://127.0.0.1:9/x.png'><a href='http://127.0.0.1:9/'>b</a>"


def interpreted(text: str) -> bool:
    """Whether a tooltip would show something else than the words."""
    return "<img" in text or "<a " in text or "<b>" in text


def tooltips(view: QAbstractItemView) -> list[str]:
    model = view.model()
    if model is None:
        return []
    cells = [model.index(row, column) for row in range(model.rowCount()) for column in range(_MOST_COLUMNS)]
    return [str(cell.data(Qt.ItemDataRole.ToolTipRole) or "") for cell in cells if cell.isValid()]


def test_a_run_with_html_in_every_word_is_shown_literally(driver: Driver, client: Client) -> None:
    config = script_config("steps.py", params={"complain": f"ValueError: {HTML}", "exit_code": 3})
    driver.submit({**config, "run_name": HTML, "tags": [HTML.replace(",", "")]})
    run = driver.until_state("Failed")
    assert HTML in (run.reason or "")
    client.label(run.run_id, notes=HTML)
    driver.until(lambda: driver.run.notes == HTML)
    window = driver.window
    seen: set[str] = set()
    for look in (window.open_table, window.close_table):
        look()
        for widget in window.findChildren(QWidget):
            if isinstance(widget, QLabel):
                assert widget.textFormat() != Qt.TextFormat.AutoText, widget.text()
                assert widget.textFormat() != Qt.TextFormat.RichText, widget.text()
                if HTML in widget.text():
                    assert widget.textFormat() == Qt.TextFormat.PlainText
                    seen.add("label")
            if isinstance(widget, QAbstractItemView):
                tips = tooltips(widget)
                assert not any(map(interpreted, tips)), tips
                seen.update("list" for one in tips if "&lt;img" in one)
            assert not isinstance(widget, QTextEdit)
            assert not interpreted(widget.toolTip()), widget.toolTip()
    assert seen == {"label", "list"}


@pytest.mark.parametrize("text", [HTML, "a <b>word</b>", "a < b", "plain", f"two\n{HTML}"])
def test_a_tooltip_shows_the_words(text: str) -> None:
    held = ElidedLabel(text)
    with shown(held, 30, 20):
        assert not interpreted(held.toolTip())
        QToolTip.showText(held.mapToGlobal(held.rect().center()), tip(text), held)
        assert not interpreted(QToolTip.text())
        QToolTip.hideText()
