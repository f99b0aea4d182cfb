"""From the words on the command line to the command that does the work, and from its errors to a line."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mosaic.cli.catalog import Command, find_command, overview
from mosaic.cli.output import plain_streams
from mosaic.cli.words import as_typed
from mosaic.contract.errors import MosaicError, UntrustedModuleError, UserError, is_text
from mosaic.contract.paths import VAR_VARIABLE
from mosaic.contract.process import open_closed_streams

_LEADING_FLAGS = frozenset({"--debug", "--json"})
_LEADING_OPTIONS = frozenset({"--var"})
DEBUG_VARIABLE = "MOSAIC_DEBUG"
INTERRUPTED = 130
_LONGEST = 1500
_BEGINNING = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code. Every error is one line on stderr."""
    open_closed_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    # gRPC tells of forks that are none of ours to mend; a person at a terminal can do nothing with that.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode gets question marks instead of an exception.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    with plain_streams():
        return _answer(words)


def _answer(words: list[str]) -> int:
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0
    except BaseException as error:
        return exit_code_for(error, debug=_wants_debug(words))


def _dispatch(words: list[str]) -> int:
    for word in words:
        if not is_text(word):
            raise UserError(f"{word!r} is not text in UTF-8: rename what it means.")
    leading, rest = _split(words)
    if leading and leading[-1] in _LEADING_OPTIONS:
        raise UserError(f"{leading[-1]} needs a value.")
    if not rest or rest[0] in ("-h", "--help") or rest == ["help"]:
        print(overview())
        return 0
    if rest[0] in ("-V", "--version"):
        from mosaic import __version__

        print(f"mosaic {__version__}")
        return 0
    if rest[0] == "help":
        rest = [rest[1], "--help"]
    return _run(find_command(rest[0]), [*leading, *rest[1:]])


def _run(command: Command, arguments: list[str]) -> int:
    args = command.parser(arguments).parse_args(arguments)
    try:
        with _in_var(args.var):
            return command.run(args)
    except UntrustedModuleError as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        print(f"{error}\nImport '{error.module}'? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return error.exit_code
        module_named = error.module
    return _run(command, ["--trust", module_named, *arguments])


@contextmanager
def _in_var(var: Path | None) -> Iterator[None]:
    """Whatever looks for the usual folder meanwhile finds the one that was named."""
    before = os.environ.get(VAR_VARIABLE)
    if var is not None:
        os.environ[VAR_VARIABLE] = os.path.abspath(var)
    try:
        yield
    finally:
        if var is not None and before is None:
            del os.environ[VAR_VARIABLE]
        elif var is not None:
            os.environ[VAR_VARIABLE] = str(before)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The options in front of the command, which every command also takes, and the rest."""
    at = 0
    while at < len(words):
        if words[at] in _LEADING_OPTIONS:
            at += 2
        elif words[at] in _LEADING_FLAGS or words[at].partition("=")[0] in _LEADING_OPTIONS:
            at += 1
        else:
            break
    return words[:at], words[at:]


def _wants_debug(argv: Sequence[str]) -> bool:
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
