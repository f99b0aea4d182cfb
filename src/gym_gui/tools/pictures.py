"""Pictures of every view and form, at two sizes and in both themes, from runs that are trained for it.

python -m gym_gui.tools.pictures FOLDER [--only NAME …] [--var FOLDER]

It needs no screen. Without --var the runs are trained in a folder that is removed again, which takes a few
minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from gym_gui.app import Desktop
from gym_gui.theme import theme
from gym_gui.tools.sample_runs import end_runs, make_runs
from gym_gui.tools.scenes import scenes, wait_until
from mosaic.client import Client
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VarPaths
from mosaic.fastlane.layout import FOLDER_VARIABLE

SIZES = ((1440, 900), (1024, 700))
THEMES = ("dark", "light")
_REDRAW_MS = 400
_MOST_LOOKS = 8


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_options(argv)
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault(FOLDER_VARIABLE, scratch)
        if not options.only or "empty" in options.only:
            take_empty(app, Path(scratch, "empty"), options.folder)
        var = options.var or Path(scratch, "var")
        take_all(app, var.resolve(), options.folder, options.only)
    return 0


def take_all(app: QApplication, var: Path, folder: Path, only: Sequence[str]) -> None:
    """Train what is missing, then show and take everything."""
    var.mkdir(parents=True, exist_ok=True)
    with Client.connect(var) as client:
        try:
            runs = make_runs(client, var)
            desktop = Desktop(var)
            desktop.window.show()
            try:
                for scene in scenes(desktop.window, runs):
                    if not only or scene.name in only:
                        scene.put_on()
                        QTest.qWait(scene.settle_ms)
                        take(app, desktop, folder, scene.name)
            finally:
                desktop.window.close()
                desktop.close()
        finally:
            end_runs(client)
            stop_daemon(client.paths)


def take_empty(app: QApplication, var: Path, folder: Path) -> None:
    """The window before the first run."""
    var.mkdir()
    desktop = Desktop(var)
    desktop.window.show()
    try:
        wait_until(lambda: desktop.link.listed, "the daemon has answered")
        take(app, desktop, folder, "empty")
    finally:
        desktop.window.close()
        desktop.close()
        stop_daemon(VarPaths(var))


def take(app: QApplication, desktop: Desktop, folder: Path, name: str) -> None:
    """What is to be seen now, at every size and in every theme."""
    for look in THEMES:
        theme.apply(app, look)
        for width, height in SIZES:
            desktop.window.resize(width, height)
            path = folder / f"{name}-{look}-{width}x{height}.png"
            settled(desktop.window).save(str(path))
            print(path, flush=True)


def settled(window: QWidget) -> QImage:
    """The window once it looks the same twice; one that goes on moving, after a while."""
    picture = QImage()
    for _ in range(_MOST_LOOKS):
        before = picture
        QTest.qWait(_REDRAW_MS)
        picture = window.grab().toImage()
        if picture == before:
            break
    return picture


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gym_gui.tools.pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these, such as play")
    parser.add_argument("--var", type=Path, help="a var folder whose sample runs are kept and used again")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
