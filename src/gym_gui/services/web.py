"""Whether pages can be shown within the window. It is tried beside it: what is wrong may end the process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import invalidate_caches

from mosaic.contract.extras import absent_for_web, advice_for, is_installed

LOOPBACK = ("127.0.0.1", "localhost", "::1")
NO_SANDBOX = "--no-sandbox"
PROBE_SECONDS = 20.0
VARIABLE = "MOSAIC_WEB"
"""`0` has the window show no pages: for a slow connection to the screen."""
_PAGE = "gym_gui.ui.widgets.web_page"


@dataclass(frozen=True)
class Web:
    """How pages are shown here: not at all because of a problem, or with or without Chromium's sandbox."""

    problem: str = ""
    installable: bool = False
    sandboxed: bool = True


@cache
def look_for_web() -> Web:
    """Find it out; this starts a process and takes a second."""
    if os.environ.get(VARIABLE) == "0":
        return Web(f"Pages within the window are switched off by {VARIABLE}=0.")
    if not is_installed("web"):
        return Web("The optional set 'web' brings pages into the window.", installable=True)
    absent = absent_for_web()
    if absent:
        return Web(f"Pages within the window need {', '.join(absent)}: {advice_for(absent)}.")
    # Chromium refuses to run as root in its sandbox.
    sandboxed = os.geteuid() != 0
    said = _try(sandboxed)
    if said and sandboxed:
        # Some systems allow no sandbox to anybody; then only pages of this machine are shown.
        sandboxed, said = False, _try(False)
    if said:
        return Web(f"QtWebEngine does not run here: {said}")
    return Web(sandboxed=sandboxed)


def look_again() -> None:
    """Forget what was found: a set was installed."""
    invalidate_caches()
    look_for_web.cache_clear()


def _try(sandboxed: bool) -> str:
    """What is wrong, empty when a page was drawn."""
    command = [sys.executable, "-P", "-m", _PAGE, *([] if sandboxed else [NO_SANDBOX])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return "it did not answer in time."
    except OSError as error:
        return f"it could not be started: {error.strerror}."
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"it ended with code {done.returncode}."
