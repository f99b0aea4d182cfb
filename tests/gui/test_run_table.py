"""The table of runs: columns, order, selection, and the queue put in order by dragging."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from pytestqt.qtbot import QtBot

from gym_gui.models.filters import RunFilter
from gym_gui.models.run_table import RunTable, before_in_queue
from gym_gui.models.runs import RunBook
from gym_gui.ui.widgets.run_header import run_menu
from gym_gui.ui.widgets.run_table import RunTableModel, RunTableView
from mosaic.client import Client
from support.runs import end, long_config
from support.window import Driver, live, made_run

LEFT = Qt.MouseButton.LeftButton


def scored(number: int, value: float | None, **changes: Any) -> Any:
    headline = {} if value is None else {"mean_return": value, "step": number}
    return replace(made_run(number, **changes), headline=headline)


def table_of(*runs: Any) -> tuple[RunBook, RunTable]:
    book = RunBook()
    book.update(runs)
    table = RunTable(book)
    table.look_again()
    return book, table


def numbers(table: RunTable) -> list[int]:
    return [int(run_id) for run_id in table.ids]


def test_nothing_is_kept_of_runs_that_were_removed() -> None:
    runs = [made_run(at, total_timesteps=at) for at in (1, 2)]
    book, table = table_of(*runs)
    for run in runs:
        table.cell(run.run_id, "name")
    table.update(book.remove([run.run_id for run in runs]))
    assert not table.ids and not table._cells and not table._settings


def test_columns_are_those_chosen_and_the_settings_that_differ_within_an_algorithm() -> None:
    params = [{"learning_rate": 0.1, "num_envs": 4}, {"learning_rate": 0.2, "num_envs": 4}]
    runs = [made_run(at, total_timesteps=9, extras={"algo_params": one}) for at, one in enumerate(params)]
    other = made_run(7, algo="dqn", total_timesteps=9, extras={"algo_params": {"tau": 1}})
    book, table = table_of(*runs, other)
    assert [column.key for column in table.columns if column.setting] == ["learning_rate"]
    keys = [column.key for column in table.columns]
    assert keys.index("learning_rate") == keys.index("return") + 1
    assert table.cell(made_run(0).run_id, "learning_rate").text == "0.1"
    book.set_defaults({"ppo": {"learning_rate": 0.1}})
    table.look_again()
    assert table.cell(made_run(0).run_id, "learning_rate").role == "faint"
    table.set_filter(RunFilter(text="learning_rate=0.2"))
    assert numbers(table) == [1]
    assert not any(column.setting for column in table.columns)
    table.set_columns(["seed", "name"], False)
    assert [column.key for column in table.columns] == ["name", "seed"]


def test_what_is_not_known_stands_last_whichever_way_it_is_sorted() -> None:
    _, table = table_of(scored(1, 5.0), scored(2, None), scored(3, 50.0), scored(4, 5.0))
    assert numbers(table) == [4, 3, 2, 1]
    table.sort("return", True)
    assert numbers(table)[:1] + numbers(table)[-1:] == [3, 2]
    table.sort("return", False)
    assert numbers(table)[-2:] == [3, 2]


def test_news_leave_the_order_and_what_is_new_is_put_in_its_place() -> None:
    book, table = table_of(scored(1, 10.0), scored(2, 20.0), scored(3, 30.0))
    table.sort("return", True)
    stale = table.update(book.update([scored(1, 99.0)]))
    assert (numbers(table), stale) == ([3, 2, 1], [made_run(1).run_id])
    table.update(book.update([scored(5, 25.0)]))
    assert numbers(table) == [3, 5, 2, 1]
    table.update(book.remove([made_run(2).run_id]))
    assert numbers(table) == [3, 5, 1]
    table.sort("return", True)
    assert numbers(table) == [1, 3, 5]


def test_waiting_runs_stand_in_the_order_of_the_queue() -> None:
    waiting = [live(made_run(at, place=float(at)), "INIT", reason="waits") for at in (1, 2, 3)]
    book, table = table_of(*waiting, made_run(9))
    table.set_filter(RunFilter("waiting"))
    assert numbers(table) == [1, 2, 3]
    assert table.columns[0].key == "queue"
    table.update(book.update([replace(waiting[2], place=0.5)]))
    assert numbers(table) == [3, 1, 2]
    table.set_filter(RunFilter())
    assert numbers(table)[0] == 9


def test_moves_in_the_queue() -> None:
    assert before_in_queue("abcd", "d", "b") == [("d", "b")]
    assert before_in_queue("abcd", ["c", "d"], "a") == [("c", "a"), ("d", "a")]
    assert before_in_queue("abcd", "a", None) == [("a", "d"), ("d", "a")]
    assert before_in_queue("ab", "ab", None) == []


def test_the_qt_model_and_the_selection_follow_every_change(qtbot: QtBot) -> None:
    book, table = table_of(*(scored(at, float(at % 7)) for at in range(30)))
    model = RunTableModel(table)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    view = RunTableView(model)
    qtbot.addWidget(view)
    chosen = [made_run(4).run_id, made_run(11).run_id]
    view.select(chosen)
    model.sort(model.columnCount() - 1)
    model.sort(next(at for at, one in enumerate(table.columns) if one.key == "return"))
    assert set(view.chosen_ids()) == set(chosen)
    model.update(book.update([scored(at, 3.0) for at in (31, 32, 4)]))
    model.update(book.remove([made_run(at).run_id for at in range(0, 30, 3)]))
    assert set(view.chosen_ids()) == set(chosen)
    model.set_filter(RunFilter(text="return<5"))
    model.set_filter(RunFilter())
    assert set(view.chosen_ids()) == set(chosen)
    assert [model.run_id(at) for at in range(model.rowCount())] == table.ids
    model.update(book.remove(chosen))
    assert view.chosen_ids() == []


def test_the_table_has_the_filter_of_the_list_and_opens_a_run(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, table = driver.window, driver.window.table
    window._runs_changed([made_run(at, algo="dqn" if at % 2 else "ppo") for at in range(10)])
    window.panel.field.setText("algo=dqn")
    driver.until(lambda: window.panel.model.rowCount() == 5)
    QTest.mouseClick(window.panel.table, LEFT)
    assert window.cover.currentWidget() is table
    assert (table.model.rowCount(), table.filtering.field.text()) == (5, "algo=dqn")
    table.filtering.set_filter(RunFilter(text="algo=ppo return>400"))
    assert window.panel.model.rowCount() == 5
    table.view.selectAll()
    assert table.info.text() == "5 runs · 5 chosen"
    assert window.toolbar.compare.text() == "Compare 5 runs"
    assert table.remove.text() == "Remove 5 runs"
    QTest.mouseClick(table.remove, LEFT)
    assert table.confirm.isVisible()
    # What is chosen after the question is not what it was about.
    done: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(
        table._actions, "do", lambda name, run, runs: done.append((name, [one.run_id for one in runs]))
    )
    asked = table.view.chosen_ids()
    table.view.select([made_run(4).run_id])
    QTest.mouseClick(table.confirm.go, LEFT)
    assert [(name, set(ids)) for name, ids in done] == [("remove", set(asked))]
    table.view.setFocus()
    QTest.keyClick(table.view, Qt.Key.Key_Return)
    assert window.cover.currentWidget() is window.splitter
    assert driver.run.run_id == made_run(4).run_id
    assert window.panel.field.text() == "algo=ppo return>400"
    window.open_table()
    QTest.keyClick(table.view, Qt.Key.Key_Escape)
    assert window.cover.currentWidget() is window.splitter


def test_a_right_click_offers_what_makes_sense_for_all_chosen(driver: Driver) -> None:
    window = driver.window
    window._runs_changed([made_run(1), made_run(2), live(made_run(3))])
    window.panel.list.selectAll()
    asked: list[str] = []
    menu = run_menu(window, window.panel.marked_runs(), 3, asked.append)
    texts = [action.text() for action in menu.actions() if action.text()]
    assert "Compare 3 runs" in texts and "Remove 2 runs…" in texts and "Open" not in texts
    next(action for action in menu.actions() if action.text() == "Cancel…").trigger()
    assert asked == ["cancel"]
    menu.deleteLater()
    window._ask("cancel")
    assert window.page.header.confirm.isVisible()


def test_the_queue_is_put_in_order_by_dragging(driver: Driver, client: Client) -> None:
    window, table = driver.window, driver.window.table
    cpus = len(os.sched_getaffinity(0))
    holder = client.submit(long_config(cpus=cpus))
    waiting = [client.submit(long_config(cpus=cpus, seed=seed)) for seed in (1, 2, 3)]
    first, second, third = (run.run_id for run in waiting)
    driver.until(lambda: window.context.runs.queue() == [first, second, third])
    window.open_table()
    table.filtering.set_filter(RunFilter("waiting"))
    model = table.model
    drag = model.mimeData([model.index(2, 0)])
    model.dropMimeData(drag, Qt.DropAction.MoveAction, 0, 0, QModelIndex())
    driver.until(lambda: table.table.ids == [third, first, second])
    model.dropMimeData(drag, Qt.DropAction.MoveAction, 3, 0, QModelIndex())
    driver.until(lambda: table.table.ids == [first, second, third])
    table.view.select([second])
    table.ask("first")
    driver.until(lambda: table.table.ids == [second, first, third])
    for run in (*waiting, holder):
        end(client, run)
