"""Optional sets are installed from a form in a process of their own, with its words as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gym_gui.context import Context
from gym_gui.models.form_choices import Requirement
from gym_gui.ui.widgets.cleanrl_forms import CleanRLTrainForm
from gym_gui.ui.widgets.form_install import InstallCard
from support.forms import WAIT_MS, Told, form_context, open_form

PIP_MS = 180_000
"""pip looks at every package that is installed, which takes its time on a busy machine."""
LINES = "import sys; print('Collecting thing>=1', flush=True); print('Successfully installed thing-1')"
FAILS = "import sys; print('ERROR: no network'); sys.exit(3)"
WAITS = "import time; print('Collecting thing', flush=True); time.sleep(600)"


@pytest.fixture
def context(var: Path, qapp: object) -> Iterator[Context]:
    with form_context(var) as made:
        yield made


@pytest.fixture
def card(qtbot: QtBot) -> Iterator[InstallCard]:
    owner = QWidget()
    qtbot.addWidget(owner)
    made = InstallCard(owner)
    owner.show()
    made.offer([Requirement("thing", "the test")])
    yield made


def test_lines_are_streamed_and_the_end_is_told(qtbot: QtBot, card: InstallCard) -> None:
    with qtbot.waitSignal(card.ended, timeout=WAIT_MS) as caught:
        card.install([sys.executable, "-c", LINES])
        assert card.running
    assert caught.args == [True, "thing is installed."]
    assert card.log.toPlainText().splitlines() == ["Collecting thing>=1", "Successfully installed thing-1"]


def test_a_failure_tells_the_last_words(qtbot: QtBot, card: InstallCard) -> None:
    with qtbot.waitSignal(card.ended, timeout=WAIT_MS) as caught:
        card.install([sys.executable, "-c", FAILS])
    good, text = caught.args
    assert not good and "code 3" in text and "no network" in text
    with qtbot.waitSignal(card.ended, timeout=WAIT_MS) as caught:
        card.install(["/no/such/program"])
    assert not caught.args[0]


def test_an_installation_can_be_stopped(qtbot: QtBot, card: InstallCard) -> None:
    card.install([sys.executable, "-c", WAITS])
    qtbot.waitUntil(lambda: "Looking at thing" in card.step.text(), timeout=WAIT_MS)
    with qtbot.waitSignal(card.ended, timeout=WAIT_MS) as caught:
        card.stop()
    assert not caught.args[0] and not card.running


def test_a_form_stays_open_while_it_installs_and_looks_again_after(qtbot: QtBot, context: Context) -> None:
    form = open_form(qtbot, context, CleanRLTrainForm)
    told = Told(context.notifications)
    form.presenter.take_installed({"box2d": False})
    form.environment.box.setEditText("LunarLander-v3")
    assert form.install.isVisible()
    # The set is there already, so pip has nothing to fetch.
    form.install.button.click()
    assert not form.leave_safely() and any("being installed" in text for text in told.texts)
    try:
        qtbot.waitUntil(lambda: not form.install.isVisible(), timeout=PIP_MS)
    finally:
        form.install.stop()
    assert form.presenter.missing() == [] and form.leave_safely()
    assert "box2d is installed." in told.texts
