"""Opening the window, or one line about why it cannot open here; no Qt is imported before that is known."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from mosaic.contract.errors import UserError
from mosaic.contract.extras import absent_libraries, advice_for, platform_plugins, qt_folder
from mosaic.contract.paths import VarPaths, resolve_var

_PACKAGES = ("PySide6", "pyqtgraph")
_WITHOUT = (
    "`mosaic train`, `mosaic watch` and `mosaic runs` do the same in this terminal, `ssh -X` brings the "
    "window to your own screen"
)
_SCREENLESS = frozenset({"offscreen", "minimal", "vnc", "linuxfb", "eglfs"})
Address = tuple[socket.AddressFamily, str | tuple[str, int]]


def launch(var: Path | None) -> int:
    """Show the window until it is closed; gives the exit code."""
    paths = VarPaths((var or resolve_var()).resolve())
    paths.make()
    platform = check_display(os.environ)
    check_packages()
    check_libraries(platform)
    from gym_gui.app import run

    return run(paths.root, sys.argv[:1])


def check_packages() -> None:
    """Refuse with the command that helps when the packages of the window are missing."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UserError(
            f"The window needs {' and '.join(missing)}, which is not installed: "
            "run `./mosaic gui` from the checkout, or `mosaic extras install gui`."
        )


def check_display(environ: Mapping[str, str]) -> str:
    """The plug-in that Qt will show the window with; a UserError where there is no screen for it."""
    asked = environ.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if asked in _SCREENLESS:
        return asked
    wayland, x11 = environ.get("WAYLAND_DISPLAY"), environ.get("DISPLAY")
    if not wayland and not x11:
        raise UserError(f"There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set): {_WITHOUT}.")
    folder = environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    if wayland and asked != "xcb" and _answers([(socket.AF_UNIX, str(Path(folder, wayland)))]):
        return "wayland"
    if x11 and asked != "wayland" and _answers(_x11_sockets(x11)):
        return "xcb"
    named = f"WAYLAND_DISPLAY={wayland}" if wayland and not x11 else f"DISPLAY={x11}"
    raise UserError(f"The display {named} does not answer: {_WITHOUT}.")


def _x11_sockets(name: str) -> list[Address]:
    """Where the server of `:0`, `:10.0` or `host:10` listens."""
    host, _, rest = name.rpartition(":")
    number = rest.partition(".")[0]
    if not number.isdigit():
        return []
    if host and host != "unix":
        return [(socket.AF_INET, (host, 6000 + int(number)))]
    path = f"/tmp/.X11-unix/X{number}"
    return [(socket.AF_UNIX, f"\0{path}"), (socket.AF_UNIX, path)]


def _answers(addresses: list[Address]) -> bool:
    for family, address in addresses:
        with socket.socket(family) as probe:
            probe.settimeout(5)
            try:
                probe.connect(address)
            except OSError:
                continue
            return True
    return False


def check_libraries(platform: str) -> None:
    """Refuse with the command that installs all libraries of the system which Qt needs and does not find.

    Qt itself would end the process without a word that helps.
    """
    folder = qt_folder()
    try:
        from PySide6 import QtCore, QtGui, QtSvg, QtWidgets  # noqa: F401

        for plugin in platform_plugins(folder, platform):
            ctypes.CDLL(str(plugin))
    except (ImportError, OSError) as error:
        absent = absent_libraries(platform, folder)
        if not absent:
            raise UserError(f"Qt cannot be loaded here: {error}.") from error
        raise UserError(f"The window needs {', '.join(absent)}: {advice_for(absent)}.") from error
