"""Reading arguments: from a command line, or as a supervisor hands them over."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from cleanrl_worker.kit.describe import field_texts, parameters_of
from cleanrl_worker.schemas.check import check_values
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError

ArgsT = TypeVar("ArgsT")
_INFINITE = ("inf", "infinity")


def parse_args(args_type: type[ArgsT], argv: Sequence[str] | None, name: str) -> ArgsT:
    """The arguments of a command line as `args_type`; a wrong one raises UserError, `--help` prints help and
    exits. `name` is what takes them."""
    words = list(map(_spelled, sys.argv[1:] if argv is None else argv))
    parameters = parameters_of(args_type)
    if "--help" in words or "-h" in words:
        _parser(name, args_type, parameters, field_texts(args_type)).print_help()
        raise SystemExit(0)
    given, others = _parser(name, args_type, parameters, {}).parse_known_args(words)
    said = vars(given)
    for word in others:
        # What nobody knows is refused by its name, as in a config.
        said[word.partition("=")[0].removeprefix("--")] = True
    infinite = {
        one.name: math.inf
        for one in parameters
        if one.type == "float" and one.maximum is None and str(said.get(one.name)).lower() in _INFINITE
    }
    finite = {key: value for key, value in said.items() if key not in infinite}
    return make_args(args_type, finite, name, infinite)


def make_args(
    args_type: type[ArgsT], given: Mapping[str, Any], name: str, checked: Mapping[str, Any] | None = None
) -> ArgsT:
    """Values as `args_type`; one that is missing or wrong raises UserError. Those that are `checked` pass."""
    values = {**check_values(name, parameters_of(args_type), given), **(checked or {})}
    for field in dataclasses.fields(args_type):  # type: ignore[arg-type]
        if field.default is dataclasses.MISSING and field.name not in values:
            raise UserError(f"{name} needs --{field.name.replace('_', '-')}: give it.")
    return args_type(**values)


def _spelled(word: str) -> str:
    """An option with hyphens, however it is written."""
    option, equals, value = word.partition("=")
    return f"{option.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message[:1].upper()}{message[1:]}; --help lists the options.")


def _parser(
    name: str, args_type: type, parameters: Sequence[ParamSchema], texts: Mapping[str, str]
) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=name,
        description=args_type.__doc__,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    for one in parameters:
        option = f"--{one.name.replace('_', '-')}"
        text = f"{texts.get(one.name, '')} (default {one.default})".replace("%", "%%")
        if one.type == "bool":
            parser.add_argument(option, dest=one.name, nargs="?", const=True, metavar="true|false", help=text)
            parser.add_argument(
                f"--no-{option[2:]}", dest=one.name, action="store_false", help=argparse.SUPPRESS
            )
        else:
            parser.add_argument(option, dest=one.name, metavar=one.type.upper(), help=text)
    return parser
