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
from mosaic.contract.paths import VarPaths, resolve_var

_PACKAGES = ("PySide6", "pyqtgraph")
_WITHOUT = (
    "`mosaic train`, `mosaic watch` and `mosaic runs` do the same in this terminal, `ssh -X` brings the "
    "window to your own screen"
)
# The libraries that PySide6 expects of the system, and the Debian packages that hold them.
_SYSTEM = {
    "libGL.so": "libgl1",
    "libEGL.so": "libegl1",
    "libxkbcommon.so": "libxkbcommon0",
    "libxkbcommon-x11.so": "libxkbcommon-x11-0",
    "libdbus-1.so": "libdbus-1-3",
    "libfontconfig.so": "libfontconfig1",
    "libglib-2.0.so": "libglib2.0-0",
    "libxcb-cursor.so": "libxcb-cursor0",
    "libxcb-icccm.so": "libxcb-icccm4",
    "libxcb-image.so": "libxcb-image0",
    "libxcb-keysyms.so": "libxcb-keysyms1",
    "libxcb-randr.so": "libxcb-randr0",
    "libxcb-render-util.so": "libxcb-render-util0",
    "libxcb-shape.so": "libxcb-shape0",
    "libxcb-xinerama.so": "libxcb-xinerama0",
    "libxcb-xkb.so": "libxcb-xkb1",
    "libwayland-client.so": "libwayland-client0",
    "libwayland-cursor.so": "libwayland-cursor0",
    "libwayland-egl.so": "libwayland-egl1",
}
_SCREENLESS = frozenset({"offscreen", "minimal", "vnc", "linuxfb", "eglfs"})


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
    if wayland and asked != "xcb" and _answers(_wayland_sockets(wayland, environ)):
        return "wayland"
    if x11 and asked != "wayland" and _answers(_x11_sockets(x11)):
        return "xcb"
    named = f"WAYLAND_DISPLAY={wayland}" if wayland and not x11 else f"DISPLAY={x11}"
    raise UserError(f"The display {named} does not answer: {_WITHOUT}.")


Address = tuple[socket.AddressFamily, str | tuple[str, int]]


def _wayland_sockets(name: str, environ: Mapping[str, str]) -> list[Address]:
    folder = environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    return [(socket.AF_UNIX, str(Path(folder, name)))]


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
    """Refuse with the command that installs a library of the system that Qt cannot do without.

    Qt itself would end the process without a word that helps.
    """
    try:
        from PySide6 import QtCore, QtGui, QtWidgets  # noqa: F401
    except ImportError as error:
        raise _missing(str(error)) from error
    plugins = Path(QtCore.__file__).parent / "Qt" / "plugins" / "platforms"
    for plugin in sorted(plugins.glob(f"libq{platform}*.so")):
        try:
            ctypes.CDLL(str(plugin))
        except OSError as error:
            raise _missing(str(error)) from error


def _missing(said: str) -> UserError:
    """`libxcb-cursor.so.0: cannot open shared object file` with the package that has it."""
    library = said.partition(":")[0].strip()
    package = next((name for start, name in _SYSTEM.items() if library.startswith(start)), None)
    if package is None:
        return UserError(f"Qt cannot be loaded here: {said}.")
    return UserError(
        f"The window needs the system library {library}: run `apt-get install {package}` (Debian, Ubuntu) "
        "or what your system has for it."
    )
