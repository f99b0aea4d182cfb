"""The commands: from the words on the command line to what does the work, from its errors to a line."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mosaic.cli.output import as_typed, plain_streams, program
from mosaic.contract.errors import MosaicError, UntrustedModuleError, UserError, closest, is_text
from mosaic.contract.paths import VAR_VARIABLE
from mosaic.contract.process import open_closed_streams

if TYPE_CHECKING:
    import argparse

    from mosaic.cli.parser import Parser

_LEADING_FLAGS = frozenset({"--debug", "--json"})
_LEADING_OPTIONS = frozenset({"--var"})
DEBUG_VARIABLE = "MOSAIC_DEBUG"
INTERRUPTED = 130
_LONGEST = 1500
_BEGINNING = 1000


@dataclass(frozen=True)
class Command:
    """One command. What it takes is imported to parse it, what it does only when it is done."""

    name: str
    summary: str
    module: str

    def parser(self, argv: Sequence[str]) -> Parser:
        """What it takes; `argv` is there for a parser that depends on what was typed."""
        starts = self.name in ("train", "rerun", "eval", "play")
        module = import_module("mosaic.cli.starting" if starts else "mosaic.cli.parsers")
        made = module.train_parser(argv) if self.name == "train" else module.PAGES[self.name](self.name)
        return cast("Parser", made)

    def run(self, args: argparse.Namespace) -> int:
        """Do it; gives the exit code."""
        module = import_module(f"mosaic.cli.commands.{self.module}")
        return int(getattr(module, f"run_{self.name}")(args))


_GROUPS = {
    "Train": (
        ("train", "train an algorithm on an environment and watch it learn", "train"),
        ("rerun", "train again with the settings of an earlier run, changed as you like", "train"),
        ("sweep", "search for good parameters with Optuna", "sweep"),
        (
            "benchmark",
            "train algorithms on environments with several seeds, and compare them",
            "benchmark",
        ),
        ("scripts", "list the shell scripts that `train` can start by name", "lists"),
        ("phase", "announce a phase (used inside such a script)", "phase"),
        ("pause", "pause runs; they keep their CPUs, memory and GPUs", "control"),
        ("resume", "continue paused runs (for a checkpoint: `train --resume`)", "control"),
        ("cancel", "end waiting or training runs", "control"),
        ("eval", "evaluate a trained policy over many episodes", "train"),
    ),
    "Look": (
        ("gui", "open the window: train, watch, compare and play", "gui"),
        ("runs", "list runs, newest first", "lists"),
        (
            "compare",
            "compare runs: returns with intervals, what differs, the curves",
            "compare",
        ),
        ("plot", "draw learning curves as a figure for a paper or slides", "plot"),
        (
            "report",
            "write an HTML report about runs",
            "report",
        ),
        ("filters", "list, save and remove named filters of runs", "filters"),
        ("queue", "show running and waiting runs; change their order", "daemon"),
        ("show", "show everything about one run: numbers, history, files", "show"),
        ("watch", "follow runs live", "show"),
        ("snapshot", "save a picture of a run's environments as they are now", "pictures"),
        ("record", "save a video of a run's environments", "pictures"),
        ("play", "step through a trained policy by key, or play an environment by hand", "play"),
        ("envs", "list the environments, how to install them, and what trains on them", "envs"),
        ("policies", "list every trained model and checkpoint", "lists"),
        ("pull", "download a model from the Hugging Face Hub", "hub"),
        ("logs", "show what a run has printed", "show"),
        ("tensorboard", "open the curves of runs in TensorBoard", "tensorboard"),
    ),
    "Keep in order": (
        ("export", "export runs with all their files to an archive", "export"),
        ("import", "import the runs of such an archive, from any machine", "export"),
        ("tag", "change the tags, name and notes of runs", "control"),
        ("push", "upload a run's model to the Hugging Face Hub", "hub"),
        ("rm", "remove ended runs and their files", "control"),
        ("gc", "remove old runs and leftovers by rules, after asking", "gc"),
        ("extras", "list or install optional sets of packages", "doctor"),
        ("doctor", "check the installation and say how to fix it", "doctor"),
        ("daemon", "start, stop or inspect the daemon", "daemon"),
    ),
}
"""The commands by purpose: their names, what they are for, and the module of `commands` that does them."""
COMMANDS = tuple(Command(*row) for rows in _GROUPS.values() for row in rows)


def find_command(name: str) -> Command:
    """The command called `name`, or an error with the nearest one."""
    for command in COMMANDS:
        if command.name == name:
            return command
    if name.startswith("-"):
        hint = closest(name, ["--help", "--version", "--debug", "--var"])
        raise UserError(
            f"'{name}' is not an option{hint or '.'} A command comes first: see `{program()} --help`."
        )
    hint = closest(name, [command.name for command in COMMANDS])
    raise UserError(f"'{name}' is not a command{hint or '.'} All of them: `{program()} --help`.")


def overview() -> str:
    """All commands by purpose, and examples to start from."""
    name, width = program(), max(len(command.name) for command in COMMANDS) + 2
    lines = [
        "MOSAIC trains reinforcement learning agents and keeps track of every run.",
        "",
        f"Usage: {name} COMMAND [options]",
    ]
    for group, rows in _GROUPS.items():
        lines += ["", group, *(f"  {command:<{width}}{summary}" for command, summary, _ in rows)]
    lines += [
        "",
        "Examples",
        f"  {name} train ppo CartPole-v1",
        f"  {name} train ppo Acrobot-v1 --seeds 1-5 --set learning_rate=1e-3",
        f"  {name} show last",
        "",
        f"`{name} COMMAND --help` explains a command; `{name} train ppo --help` lists ppo's parameters.",
        "Every command takes --var PATH (the folder with all data) and --debug (show tracebacks).",
    ]
    return "\n".join(lines)


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
    sentences, code = _describe(error)
    for sentence in sentences:
        print(f"mosaic: {shortened(as_typed(' '.join(sentence.split())))}", file=sys.stderr)
    return code


def _forget_output() -> None:
    """What could not be printed is not tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shortened(sentence: str) -> str:
    """A sentence that can be read, though what it names is as long as a book."""
    cut = len(sentence) - _LONGEST
    return sentence if cut <= 0 else f"{sentence[:_BEGINNING]} … {sentence[_BEGINNING + cut :]}"


def _describe(error: BaseException) -> tuple[list[str], int]:
    if isinstance(error, MosaicError):
        return error.sentences, error.exit_code
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return ["The current folder is no longer there: change to another one."], UserError.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        _forget_output()
        return ["The output cannot be written: there is no space left where it goes."], 1
    if isinstance(error, OSError) and error.filename is not None:
        sentence = (
            f"{os.fsdecode(error.filename)} cannot be used ({error.strerror}): "
            "correct that, or choose another folder with --var."
        )
        return [sentence], UserError.exit_code
    sentence = (
        f"Something unexpected went wrong ({type(error).__name__}: {error}); "
        "the same command with --debug shows where."
    )
    return [sentence], 1
