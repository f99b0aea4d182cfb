"""The window used again and again: it forgets what it has closed, on its own thread, and never fails."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gym_gui.app import Collector
from gym_gui.services.tasks import Notification, Notifications, Tasks
from gym_gui.ui.widgets.form_frame import ChoosingFrame, FormFrame
from mosaic.contract.paths import VarPaths
from support.policies import save_cartpole
from support.window import PATIENCE_MS, Driver, made_run

Visit = Callable[..., None]
KEYS = {"train": Qt.Key.Key_T, "policy": Qt.Key.Key_E, "resume": Qt.Key.Key_R, "script": Qt.Key.Key_J}


@pytest.fixture
def model(var: Path) -> Path:
    """A model that the forms find by themselves."""
    folder = VarPaths(var).runs / "01AAAA" / "runs" / "results"
    folder.mkdir(parents=True)
    return save_cartpole(folder)


@pytest.fixture
def visit(driver: Driver) -> Visit:
    """Opens a form, by its key unless it is filled, clicks a file that it offers, and leaves it by Esc."""
    cover = driver.window.cover

    def choose(form: ChoosingFrame[Any]) -> None:
        view = form.source_picker.list.view
        if view.model().rowCount():
            row = view.visualRect(view.model().index(0, 0))
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=row.center())
            driver.until(lambda: form.has_changes)

    def visited(purpose: str, prefill: dict[str, Any] | None = None) -> None:
        if prefill is None:
            QTest.keyClick(driver.window, KEYS[purpose], Qt.KeyboardModifier.ControlModifier)
        else:
            driver.window.open_form(purpose, prefill)
        driver.until(lambda: isinstance(cover.form, FormFrame) and cover.form.footer.submit.isEnabled())
        if isinstance(cover.form, ChoosingFrame):
            choose(cover.form)
        QTest.keyClick(cover.currentWidget(), Qt.Key.Key_Escape)
        driver.until(lambda: cover.form is None)

    return visited


def living() -> Counter[str]:
    """How many objects of the window's own kinds there are."""
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)  # type: ignore[arg-type]
    QApplication.processEvents()
    gc.collect()
    kinds = [type(one) for one in gc.get_objects()]
    counts = Counter(str(kind) for kind in kinds if str(kind.__module__).startswith(("gym_gui", "PySide6")))
    counts["widgets"] = len(QApplication.allWidgets())
    return counts


def forms_in_memory() -> int:
    return sum(issubclass(type(one), FormFrame) for one in gc.get_objects())


def more_than(before: Counter[str]) -> dict[str, int]:
    """What has become more, but for a few: a form that stayed each time would be dozens of each kind."""
    now = living()
    # What was told is kept, up to a number.
    del now[str(Notification)]
    return {kind: count for kind, count in (now - before).items() if count > 10}


def test_a_form_that_is_opened_and_closed_leaves_nothing(driver: Driver, model: Path, visit: Visit) -> None:
    for purpose in KEYS:
        visit(purpose)
    before = living()
    for _ in range(3):
        for purpose in KEYS:
            visit(purpose)
    driver.until(lambda: forms_in_memory() <= 5)
    assert not more_than(before)


def test_a_checkpoint_is_chosen_and_left_again_and_again(driver: Driver, model: Path, visit: Visit) -> None:
    visit("resume")
    before = living()
    for _ in range(31):
        visit("resume", {"checkpoint": str(model)})
    assert not more_than(before)


def test_a_comparison_that_is_opened_and_closed_leaves_nothing(driver: Driver) -> None:
    def compare() -> None:
        cover.compare([made_run(1), made_run(2, seed=2)])
        driver.qtbot.wait(20)
        QTest.keyClick(cover.currentWidget(), Qt.Key.Key_Escape)
        driver.until(lambda: cover.comparison is None)

    cover = driver.window.cover
    compare()
    before = living()
    for _ in range(12):
        compare()
    assert not more_than(before)


def test_garbage_that_another_thread_could_find_is_collected_by_the_window(qtbot: QtBot) -> None:
    class Knot:
        def __init__(self) -> None:
            self.me = self

    threads: list[threading.Thread] = []
    collector = Collector()
    try:
        weakref.finalize(Knot(), lambda: threads.append(threading.current_thread()))
        kept: list[list[int]] = []
        other = threading.Thread(target=lambda: kept.extend([number] for number in range(100_000)))
        other.start()
        other.join()
        assert not threads
        qtbot.waitUntil(lambda: bool(threads), timeout=PATIENCE_MS)
    finally:
        collector.close()
    assert threads == [threading.main_thread()]
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_what_threads_have_freed_goes_back_to_the_system(qtbot: QtBot) -> None:
    libc, process = ctypes.CDLL(None), psutil.Process()
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    begin, kept = threading.Barrier(4), list[int]()

    def use() -> None:
        begin.wait()
        blocks = [libc.malloc(4096) for _ in range(4000)]
        for number, block in enumerate(blocks):
            ctypes.memset(block, 1, 4096)
            kept.append(block) if number % 100 == 0 else libc.free(block)

    before = process.memory_info().rss
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    collector = Collector()
    try:
        qtbot.waitUntil(lambda: process.memory_info().rss < before + 16 * 2**20, timeout=PATIENCE_MS)
    finally:
        collector.close()
        for block in kept:
            libc.free(block)


def test_no_thread_that_works_for_the_window_is_the_last_to_know_a_widget(qtbot: QtBot) -> None:
    class Owner(QObject):
        def take(self, _: object) -> None:
            pass

        def fail(self, _: Exception) -> None:
            pass

    threads: list[threading.Thread] = []

    def ask(good: bool) -> None:
        owner = Owner()
        weakref.finalize(owner, lambda: threads.append(threading.current_thread()))
        tasks.run(lambda: owner.objectName() if good else 1 / 0, owner.take, owner.fail)

    gc.disable()
    tasks = Tasks(Notifications())
    try:
        for number in range(40):
            ask(good=number % 2 == 0)
        qtbot.waitUntil(lambda: len(threads) == 40, timeout=PATIENCE_MS)
    finally:
        gc.enable()
        tasks.close()
    assert set(threads) == {threading.main_thread()}


def test_a_window_that_is_used_at_random_neither_crashes_nor_complains() -> None:
    """The benchmark's soak, in short: on a screen of its own where Xvfb and xdotool are installed."""
    gui = Path(__file__).parents[2] / "benchmarks" / "gui.py"
    command = [sys.executable, str(gui), "--soak", "0.15", "--short"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
