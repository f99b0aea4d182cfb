"""Models to and from the hub, saved filters, and what a check has found, in the window."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from gym_gui.models.filters import RunFilter
from mosaic.client import Client, train_config
from mosaic.client.command_line import command_for
from mosaic.client.saved_filters import SavedFilter, SavedFilters
from support.hub import StandInHub, stand_in_hub
from support.runs import script_config
from support.window import Driver

LEAVES = str(Path(__file__).parents[1] / "hub" / "scripts" / "ppo.py")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """All that the window starts asks this hub, as a user who is logged in."""
    with stand_in_hub() as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


def click(button: object) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)  # type: ignore[call-overload]


def test_a_run_is_uploaded_from_its_menu_and_told_in_its_overview(hub: StandInHub, driver: Driver) -> None:
    window, header = driver.window, driver.window.page.header
    driver.submit(train_config(LEAVES, "CartPole-v1", total_timesteps=5))
    driver.until_state("Completed")
    driver.until(lambda: header.entries["push"].isEnabled())
    header.entries["push"].trigger()
    card = header.push_card
    driver.until(card.isVisible)
    assert card.name.placeholderText() == "you/CartPole-v1-ppo-seed1"
    card.name.setText("not a name")
    click(card.go)
    assert card.isVisible() and "is not the name of a model" in card.told.text()
    hub.fails = {"/commit/": 403}
    card.name.setText("team/walker")
    card.private.setChecked(True)
    click(card.go)
    overview = next(view for view in window.page.views.values() if view.title == "Overview")
    told = overview.hub  # type: ignore[attr-defined]
    driver.until(lambda: "team/walker was not uploaded: " in told.text())
    hub.fails = {}
    header.entries["push"].trigger()
    driver.until(card.isVisible)
    assert card.name.text() == "team/walker", "the name that it had the last time"
    click(card.go)
    driver.until(lambda: f"{hub.address}/team/walker" in told.text())
    assert hub.repos["team/walker"].private


def test_an_upload_without_a_token_is_told_and_not_tried(
    hub: StandInHub, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "")
    run = driver.submit(train_config(LEAVES, "CartPole-v1", total_timesteps=5))
    driver.until_state("Completed")
    driver.window.actions_on_runs.push(run, "", False)
    driver.until(lambda: any("There is no token" in text for text in driver.told()))
    assert not (Path(run.run_dir) / "hub.json").exists()


def test_a_model_is_got_and_can_be_evaluated(hub: StandInHub, driver: Driver, var: Path) -> None:
    hub.add("me/x", {"dqn.cleanrl_model": b"PK", "README.md": b"hello"})
    window, card = driver.window, driver.window.pulling
    window._do("pull")
    assert card.isVisible()
    card.name.setText("nobody")
    click(card.get)
    assert "is not the name of a model" in card.told.text()
    card.name.setText("me/y")
    QTest.keyClick(card.name, Qt.Key.Key_Return)
    assert not card.get.isEnabled()
    driver.until(lambda: "The model me/y is not on the hub" in card.told.text())
    card.name.setText(f"{hub.address}/me/x")
    click(card.get)
    driver.until(card.evaluate.isVisible)
    assert card.told.text().startswith("me/x is here: dqn on ?")
    assert (var / "models" / "me" / "x" / "dqn.cleanrl_model").read_bytes() == b"PK"
    click(card.evaluate)
    driver.until(lambda: window.cover.form is not None)
    assert not card.isVisible()


def test_a_model_that_is_being_got_is_dropped_with_its_card(
    hub: StandInHub, driver: Driver, var: Path
) -> None:
    hub.add("me/x", {"dqn.cleanrl_model": b"PK"})
    card = driver.window.pulling
    driver.window._do("pull")
    card.name.setText("me/x")
    click(card.get)
    QTest.keyClick(card, Qt.Key.Key_Escape)
    assert not card.isVisible() and card.get.isEnabled()
    assert not (var / "models" / "me" / "x").exists()


def test_filters_are_saved_used_and_removed_as_on_the_command_line(driver: Driver, var: Path) -> None:
    window = driver.window
    driver.submit(script_config("steps.py"))
    driver.until_state("Completed")
    store, bar = SavedFilters(var), window.panel.filtering
    store.save(SavedFilter("R&D <b>", "name=nothing"))

    def menu() -> QMenu:
        click(bar.star)
        driver.until(lambda: [one for one in bar.findChildren(QMenu) if one.isVisible()])
        return next(one for one in bar.findChildren(QMenu) if one.isVisible())

    shown = menu()
    assert shown.actions()[0].text() == "R&&D <b>\tname=nothing"
    save = next(one for one in shown.actions() if one.text() == "Save this filter…")
    assert not save.isEnabled(), "it would find every run"
    shown.actions()[0].trigger()
    shown.close()
    assert bar.filter == RunFilter("all", "name=nothing") and window.panel.model.rowCount() == 0
    bar.set_filter(RunFilter("failed", "steps>1"))
    shown = menu()
    next(one for one in shown.actions() if one.text() == "Save this filter…").trigger()
    shown.close()
    QTest.keyClicks(window.focusWidget(), "done ones")
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    driver.until(lambda: len(store.all()) == 2)
    assert store.find("done ones") == SavedFilter("done ones", "steps>1", "failed")
    shown = menu()
    (gone,) = list(shown.findChildren(QMenu))
    gone.actions()[0].trigger()
    shown.close()
    driver.until(lambda: [one.name for one in store.all()] == ["R&D <b>"])


def test_what_a_check_has_found_stands_in_the_overview(driver: Driver, client: Client) -> None:
    config = train_config("ppo", "CartPole-v1", total_timesteps=100, params={"eval_episodes": 0})
    config["metadata"]["worker"]["python"] = sys.executable
    config["metadata"]["ui"]["checked"]["rows"].append(["mind", "<b>hostile</b>"])
    driver.submit(config)
    driver.until(lambda: driver.window.page.views)
    overview = next(view for view in driver.window.page.views.values() if view.title == "Overview")
    told = overview.checked.text()  # type: ignore[attr-defined]
    assert "spaces 4 numbers in, 2 actions, up to 500 steps" in told and "mind <b>hostile</b>" in told
    assert overview.checked.textFormat() == Qt.TextFormat.PlainText  # type: ignore[attr-defined]
    driver.until_state("Completed", "Failed")


def test_the_form_asks_for_the_upload(driver: Driver, hub: StandInHub) -> None:
    window = driver.window
    window.open_form("train", {"algo": "ppo", "env_id": "CartPole-v1"})
    driver.until(lambda: hasattr(window.cover.form, "tracking"))
    presenter = window.cover.form.presenter  # type: ignore[union-attr, attr-defined]
    tracking = window.cover.form.tracking  # type: ignore[union-attr, attr-defined]
    assert not tracking.entity.isVisibleTo(tracking)
    presenter.run.put("upload_model", True)
    presenter.run.put("hf_entity", "team")
    tracking.refresh()
    assert tracking.entity.isVisibleTo(tracking)
    (config,) = presenter.order().configs()
    extras = config["metadata"]["worker"]["config"]["extras"]
    assert (extras["upload_model"], extras["hf_entity"]) == (True, "team")
    assert command_for(config).count("--extra") == 2
