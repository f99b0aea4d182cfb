"""Putting a theme on, and remembering it."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from gym_gui.context import Context
from gym_gui.theme import theme


def put_on(name: str | None) -> None:
    """Change the theme of the running application; None follows the system."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        theme.apply(app, name)


def next_theme() -> str:
    """The theme that is not on."""
    return "dark" if theme.name == "light" else "light"


def choose(context: Context, name: str | None) -> None:
    """Change the theme now and for the next start."""
    put_on(name)
    context.settings.set("theme", name)
    context.tasks.run(context.settings.save, lambda _: None)
