"""The one place that turns an exception into a line for the user and an exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from mosaic.cli.program import program
from mosaic.contract.errors import MosaicError, UserError

DEBUG_VARIABLE = "MOSAIC_DEBUG"
INTERRUPTED = 130
TERMINATED = 143


def wants_debug(argv: Sequence[str]) -> bool:
    """Whether tracebacks are asked for, also when the rest of the line cannot be parsed."""
    return "--debug" in argv or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def exit_code_for(error: BaseException, debug: bool) -> int:
    """Tell the user what happened; gives the code to leave with."""
    if isinstance(error, BrokenPipeError):
        # The reader of our output has gone; the interpreter's last flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    sentence, code = _describe(error)
    print(f"mosaic: {as_typed(' '.join(sentence.split()))}", file=sys.stderr)
    return code


def as_typed(sentence: str) -> str:
    """The sentence with our commands as the user can type them; the daemon does not know from where."""
    return re.sub(r"`(?:\./)?mosaic ", lambda _: f"`{program()} ", sentence)


def _describe(error: BaseException) -> tuple[str, int]:
    if isinstance(error, MosaicError):
        return str(error), error.exit_code
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"{os.fsdecode(error.filename)} cannot be used ({error.strerror}): "
            "correct that, or choose another folder with --var.",
            UserError.exit_code,
        )
    return (
        f"Something unexpected went wrong ({type(error).__name__}: {error}); "
        "the same command with --debug shows where.",
        1,
    )
