"""The one place that turns an exception into a line for the user and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence

from mosaic.cli.program import program
from mosaic.contract.errors import MosaicError, UserError

DEBUG_VARIABLE = "MOSAIC_DEBUG"
INTERRUPTED = 130
TERMINATED = 143
_LONGEST = 1500
_BEGINNING = 1000


def wants_debug(argv: Sequence[str]) -> bool:
    """Whether tracebacks are asked for, also when the rest of the line cannot be parsed."""
    return "--debug" in argv or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def exit_code_for(error: BaseException, debug: bool) -> int:
    """Tell the user what happened; gives the code to leave with."""
    if isinstance(error, BrokenPipeError):
        # The reader of our output has gone; the interpreter's last flush must not complain about it.
        _forget_output()
        return 1
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    sentence, code = _describe(error)
    print(f"mosaic: {shortened(as_typed(' '.join(sentence.split())))}", file=sys.stderr)
    return code


def _forget_output() -> None:
    """What could not be printed is not tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shortened(sentence: str) -> str:
    """A sentence that can be read, though what it names is as long as a book."""
    cut = len(sentence) - _LONGEST
    return sentence if cut <= 0 else f"{sentence[:_BEGINNING]} … {sentence[_BEGINNING + cut :]}"


def as_typed(sentence: str) -> str:
    """The sentence with our commands as the user can type them; the daemon does not know from where."""
    return re.sub(r"`(?:\./)?mosaic ", lambda _: f"`{program()} ", sentence)


def _describe(error: BaseException) -> tuple[str, int]:
    if isinstance(error, MosaicError):
        return str(error), error.exit_code
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "The current folder is no longer there: change to another one.", UserError.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        _forget_output()
        return "The output cannot be written: there is no space left where it goes.", 1
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
