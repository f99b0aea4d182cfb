"""The frame around an algorithm: arguments in, exit code out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from cleanrl_worker.kit.stopping import Stopped, StopSignals
from mosaic.contract.errors import MosaicError

ArgsT = TypeVar("ArgsT")


def run_script(read: Callable[[], ArgsT], train: Callable[[ArgsT, StopSignals], None]) -> int:
    """Train with the arguments that `read` gives, and return the exit code: 0, 2 for a wrong argument, 143
    after SIGTERM."""
    try:
        args = read()
        with StopSignals() as stop:
            train(args, stop)
    except Stopped as stopped:
        return stopped.exit_code
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0
