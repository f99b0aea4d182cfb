"""Showing something in another program: a page in the browser, a folder in the file manager."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from gym_gui.services.notifications import Notifications


def open_url(address: str, notifications: Notifications) -> None:
    """Show a page in the browser, or say where it is."""
    if not QDesktopServices.openUrl(QUrl(address)):
        notifications.tell(f"No browser could be opened; the page is at {address}", "warn")


def open_path(path: Path, notifications: Notifications) -> None:
    """Show a file or a folder in the program that the system has for it, or say where it is."""
    if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
        notifications.tell(f"No program here shows {path}", "warn")
