"""From the words on the command line to the command that does the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mosaic.cli.catalog import find_command
from mosaic.cli.failures import exit_code_for, wants_debug
from mosaic.cli.overview import overview

_LEADING_FLAGS = frozenset({"--debug", "--json"})
_LEADING_OPTIONS = frozenset({"--var"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code. Every error is one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    # gRPC tells of forks that are none of ours to mend; a person at a terminal can do nothing with that.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode gets question marks instead of an exception.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0
    except BaseException as error:
        return exit_code_for(error, debug=wants_debug(words))


def _dispatch(words: list[str]) -> int:
    leading, rest = _split(words)
    if not rest or rest[0] in ("-h", "--help") or rest == ["help"]:
        print(overview())
        return 0
    if rest[0] in ("-V", "--version"):
        from mosaic import __version__

        print(f"mosaic {__version__}")
        return 0
    if rest[0] == "help":
        rest = [rest[1], "--help"]
    command = find_command(rest[0])
    module = command.load()
    arguments = [*leading, *rest[1:]]
    parser = module.parser(arguments)
    return module.run(parser.parse_args(arguments))


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
