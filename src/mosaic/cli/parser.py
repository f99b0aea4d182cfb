"""argparse with our manners: an error is one sentence, and help reads like a page."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mosaic.cli.output import program
from mosaic.contract.errors import UserError, closest
from mosaic.contract.paths import named_path

_WIDTH = 100
RUN_HELP = "a run id, the beginning of one, or 'last'"


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns, _WIDTH) - 2
        super().__init__(prog, max_help_position=30, width=width)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-n, --lines N` and `--[no-]clip-vloss`: each value and each name once."""
        names = action.option_strings
        if len(names) == 2 and names[1] == f"--no-{names[0][2:]}":
            return f"--[no-]{names[0][2:]}"
        if not names or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(names)} {self._format_args(action, action.dest.upper())}"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Sentences broken to the width; indented lines, such as examples, as they are."""
        paragraphs: list[str] = []
        for line in text.splitlines():
            if paragraphs and not line.startswith(" ") and not paragraphs[-1].startswith(" "):
                paragraphs[-1] += f" {line}"
            else:
                paragraphs.append(line)
        filled = [line if line.startswith(" ") else textwrap.fill(line, width) for line in paragraphs]
        return "\n".join(textwrap.indent(line, indent) for line in filled)

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


Addition = Callable[[argparse._ActionsContainer], object]
"""What adds an argument, an option or a group of them to a parser."""


def option(names: str, metavar: str, help: str, **how: Any) -> Addition:
    """An argument, or an option with a value; several `names` of one have spaces between."""
    return lambda place: place.add_argument(*names.split(), metavar=metavar, help=help, **how)


def flag(names: str, help: str, action: str = "store_true", **how: Any) -> Addition:
    """An option without a value."""
    return lambda place: place.add_argument(*names.split(), help=help, action=action, **how)


def number(names: str, type: Callable[[str], float], help: str, **how: Any) -> Addition:
    """An option whose value is a number."""
    return option(names, "N", help, type=type, **how)


def repeated(names: str, metavar: str, help: str, **how: Any) -> Addition:
    """An option that may be given several times; its values are a list."""
    return option(names, metavar, f"{help}; may be repeated", action="append", default=[], **how)


def group(title: str, *options: Addition) -> Addition:
    """Options that stand together in the help."""
    return lambda place: add(place.add_argument_group(title), *options)


def one_of(*options: Addition) -> Addition:
    """Options of which only one may be given."""
    return lambda place: add(place.add_mutually_exclusive_group(), *options)


def add(place: argparse._ActionsContainer, *options: Addition) -> None:
    for one in options:
        one(place)


RUNS = option("runs", "RUN", RUN_HELP, nargs="+")
RUN = option("run", "RUN", RUN_HELP)


def general(json: str | None = None) -> Addition:
    """The options of every command; `json` says what --json gives, if there is one."""
    printed = [] if json is None else [flag("--json", f"print only JSON: {json}")]
    folder = "the folder that holds all data (default: $MOSAIC_VAR, or var/ in the checkout)"
    return group(
        "General",
        *printed,
        option("--var", "PATH", folder, type=named_path),
        flag("--debug", "show the traceback of an error"),
        flag("-h --help", "show this page", action="help"),
    )


class Parser(argparse.ArgumentParser):
    """The parser of one command."""

    def __init__(self, command: str, usage: str, description: str, examples: Sequence[str] = ()) -> None:
        self.command = command
        lines = "\n".join(f"  {program()} {command} {example}".rstrip() for example in examples)
        super().__init__(
            prog=f"{program()} {command}",
            usage=f"{program()} {command} {usage}",
            description=description,
            epilog=f"Examples:\n{lines}" if examples else None,
            add_help=False,
            allow_abbrev=False,
            formatter_class=_Formatter,
        )
        self._positionals.title = "Arguments"
        self._optionals.title = "Options"

    def has_option(self, name: str) -> bool:
        return name in self._option_string_actions

    def takes_value(self, word: str) -> bool:
        """Whether the word after `word` is its value."""
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs != 0

    def spelled(self, words: Sequence[str]) -> list[str]:
        """The words with `--learning_rate` as `--learning-rate`: names of parameters have underscores."""
        end = words.index("--") if "--" in words else len(words)
        found = []
        for word in words[:end]:
            name, equals, value = word.partition("=")
            dashed = name.replace("_", "-")
            known = name.startswith("--") and not self.has_option(name) and self.has_option(dashed)
            found.append(dashed + equals + value if known else word)
        return [*found, *words[end:]]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        args = self.spelled(args or ())
        for word in args:
            if word == "--":
                break
            name = word.partition("=")[0]
            if re.match(r"--\w", word) and not self.has_option(name):
                self.refuse_option(name)
        found, rest = super().parse_known_args(args, namespace)
        if rest and rest[0].startswith("-"):
            self.refuse_option(rest[0])
        if rest:
            raise UserError(f"'{rest[0]}' is one word too many for {self.command}{self._see()}")
        return found, rest

    def refuse_option(self, name: str) -> NoReturn:
        """Say that `name` is not an option, and which one is nearest."""
        hint = closest(name, self._option_string_actions)
        raise UserError(f"{self.command} has no option '{name}'{hint or self._see()}")

    def error(self, message: str) -> NoReturn:
        missing = re.fullmatch(r"the following arguments are required: (.*)", message)
        if missing:
            raise UserError(f"{self.command} needs {missing[1].replace(', ', ' and ')}{self._see()}")
        wrong = re.fullmatch(r"argument (\S+?): (.*)", message, re.DOTALL)
        if wrong:
            name = wrong[1].partition("/")[0]
            raise UserError(f"{name}: {wrong[2].rstrip('.')}{self._see()}")
        raise UserError(f"{message[:1].upper()}{message[1:].rstrip('.')}{self._see()}")

    def _see(self) -> str:
        return f": see `{self.prog} --help`."


def page(
    usage: str, description: str, examples: Sequence[str], *options: Addition, json: str | None = None
) -> Callable[[str], Parser]:
    """What makes the parser of a command, given the command's name."""

    def make(command: str) -> Parser:
        parser = Parser(command, usage, description, examples)
        add(parser, *options, general(json))
        return parser

    return make
