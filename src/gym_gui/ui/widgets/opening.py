"""Showing something in another program: a page in the browser, a folder in the file manager."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices


def open_url(address: str) -> bool:
    """Show a page in the browser; False when there is none."""
    return QDesktopServices.openUrl(QUrl(address))


def open_path(path: Path) -> bool:
    """Show a file or a folder in the program that the system has for it; False when there is none."""
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
