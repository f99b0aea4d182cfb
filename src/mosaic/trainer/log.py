"""The daemon's log: each line has a stable short code and, where there is one, the run's id."""

from __future__ import annotations

import logging
import os
import signal
from enum import StrEnum
from logging.handlers import RotatingFileHandler
from pathlib import Path

from mosaic.contract.plain import plain, plain_line

_logger = logging.getLogger("mosaic.trainer")


class Code(StrEnum):
    """Stable names of what can happen, to search a log by."""

    DAEMON_SERVES = "T100"
    DAEMON_STOPS = "T101"
    DAEMON_ERROR = "T109"
    RUN_ACCEPTED = "T200"
    RUN_MOVED = "T201"
    RUN_SIGNALLED = "T203"
    RUN_RECOVERED = "T204"
    RUN_REMOVED = "T205"
    RUN_ADOPTED = "T209"
    RUN_SWEPT = "T206"
    STORAGE_FAILED = "T207"
    DATABASE_REBUILT = "T208"
    CALL_REFUSED = "T300"
    CALL_FAILED = "T309"


class _Plain(logging.Formatter):
    """What others wrote neither commands the terminal that shows the log nor passes for a line of ours."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return plain_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record is about the daemon: gRPC tells of a caller who left during the answer as well."""
    failed = record.exc_info[1] if record.exc_info else None
    return type(failed).__name__ != "ExecuteBatchError"


def set_up(path: Path) -> None:
    """Log to `path`, a few megabytes at most."""
    handler = RotatingFileHandler(path, maxBytes=4_000_000, backupCount=3)
    handler.addFilter(_is_ours)
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def info(code: Code, text: str, run_id: str = "-") -> None:
    _logger.info("%s run=%s %s", code, run_id, text)


def warning(code: Code, text: str, run_id: str = "-") -> None:
    _logger.warning("%s run=%s %s", code, run_id, text)


def exception(code: Code, text: str, run_id: str = "-") -> None:
    """Log an error with the traceback of the exception being handled."""
    _logger.exception("%s run=%s %s", code, run_id, text)


CRASH_VARIABLE = "MOSAIC_CRASH_POINT"


def reach(name: str) -> None:
    """Be killed here, as by `kill -9`, when $MOSAIC_CRASH_POINT says so."""
    if os.environ.get(CRASH_VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
