"""Libraries of the system that the window needs: which are missing, and the command that gets them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

# The libraries that PySide6 expects of the system, and the Debian packages that hold them.
_SYSTEM = {
    "libEGL": "libegl1",
    "libGL": "libgl1",
    "libGLX": "libglx0",
    "libX11": "libx11-6",
    "libX11-xcb": "libx11-xcb1",
    "libdbus-1": "libdbus-1-3",
    "libfontconfig": "libfontconfig1",
    "libfreetype": "libfreetype6",
    "libglib-2.0": "libglib2.0-0",
    "libgssapi_krb5": "libgssapi-krb5-2",
    "libgthread-2.0": "libglib2.0-0",
    "libwayland-client": "libwayland-client0",
    "libwayland-cursor": "libwayland-cursor0",
    "libwayland-egl": "libwayland-egl1",
    "libxcb": "libxcb1",
    "libxcb-cursor": "libxcb-cursor0",
    "libxcb-glx": "libxcb-glx0",
    "libxcb-icccm": "libxcb-icccm4",
    "libxcb-image": "libxcb-image0",
    "libxcb-keysyms": "libxcb-keysyms1",
    "libxcb-randr": "libxcb-randr0",
    "libxcb-render": "libxcb-render0",
    "libxcb-render-util": "libxcb-render-util0",
    "libxcb-shape": "libxcb-shape0",
    "libxcb-shm": "libxcb-shm0",
    "libxcb-sync": "libxcb-sync1",
    "libxcb-util": "libxcb-util1",
    "libxcb-xfixes": "libxcb-xfixes0",
    "libxcb-xinerama": "libxcb-xinerama0",
    "libxcb-xkb": "libxcb-xkb1",
    "libxkbcommon": "libxkbcommon0",
    "libxkbcommon-x11": "libxkbcommon-x11-0",
    "libzstd": "libzstd1",
}
_MODULES = ("QtCore", "QtGui", "QtSvg", "QtWidgets")


def absent_libraries(platform: str = "xcb", folder: Path | None = None) -> list[str]:
    """The libraries of the system that the window needs and that are not there; none without PySide6."""
    folder = folder or qt_folder()
    files = [*(folder / f"{name}.abi3.so" for name in _MODULES), *platform_plugins(folder, platform)]
    try:
        # The loader would stop at the first one; this tells all of them, also what a library's library needs.
        told = subprocess.run(["ldd", *filter(Path.is_file, files)], capture_output=True, text=True).stdout
    except OSError:
        return []
    return sorted({line.split()[0] for line in told.splitlines() if line.endswith("=> not found")})


def advice_for(libraries: Sequence[str]) -> str:
    """One command for all these libraries."""
    packages = [_SYSTEM.get(re.sub(r"\.so.*", "", name), "") for name in libraries]
    others = " or ".join(name for name, package in zip(libraries, packages, strict=True) if not package)
    command = f"run `apt-get install {' '.join(sorted({*packages} - {''}))}` (on Debian and Ubuntu)"
    if not others:
        return command
    return f"{command}, and install what has {others}" if any(packages) else f"install what has {others}"


def qt_folder() -> Path:
    """Where PySide6 lies; an empty path without it."""
    spec = find_spec("PySide6")
    return Path(spec.origin).parent if spec is not None and spec.origin else Path()


def platform_plugins(folder: Path, platform: str) -> list[Path]:
    """What shows Qt's windows on a platform such as `xcb` or `wayland`."""
    return sorted((folder / "Qt" / "plugins" / "platforms").glob(f"libq{platform}*.so"))
