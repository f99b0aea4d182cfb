"""The window's log: each line has a stable short code and, where there is one, the run's id."""

from __future__ import annotations

import logging
from enum import StrEnum
from logging.handlers import RotatingFileHandler
from pathlib import Path

from mosaic.contract.paths import make_folder

_logger = logging.getLogger("gym_gui")


class Code(StrEnum):
    """Stable names of what can happen, to search a log by."""

    WINDOW_OPENED = "G100"
    WINDOW_CLOSED = "G101"
    SETTINGS_LOST = "G102"
    DAEMON_STATE = "G200"
    STREAM_LOST = "G201"
    TOLD = "G300"
    FAULT = "G309"


def set_up(folder: Path) -> logging.Handler:
    """Log to `gym_gui.log` in `folder`, a few megabytes at most; whoever opens it closes it."""
    make_folder(folder)
    handler = RotatingFileHandler(folder / "gym_gui.log", maxBytes=2_000_000, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _logger.addHandler(handler)
    _logger.setLevel(logging.INFO)
    return handler


def take_down(handler: logging.Handler) -> None:
    _logger.removeHandler(handler)
    handler.close()


def info(code: Code, text: str, run_id: str = "-") -> None:
    _logger.info("%s run=%s %s", code, run_id, text)


def warning(code: Code, text: str, run_id: str = "-") -> None:
    _logger.warning("%s run=%s %s", code, run_id, text)


def fault(text: str, error: BaseException, run_id: str = "-") -> None:
    """Something that should not happen, with its traceback."""
    _logger.error("%s run=%s %s", Code.FAULT, run_id, text, exc_info=error)
