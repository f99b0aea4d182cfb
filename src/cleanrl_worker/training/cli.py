"""Reading an algorithm's arguments from its command line."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import sys
import typing
from collections.abc import Sequence
from typing import Any, TypeVar

import tyro

from cleanrl_worker.kit.args import Bounds
from cleanrl_worker.schemas.check import check_limit
from mosaic.contract.errors import UserError, closest

ArgsT = TypeVar("ArgsT")


def parse_args(args_type: type[ArgsT], argv: Sequence[str] | None = None) -> ArgsT:
    """The arguments as `args_type`; a wrong one raises UserError, `--help` prints help and exits."""
    flags = list(sys.argv[1:] if argv is None else argv)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            args = tyro.cli(args_type, args=flags)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UserError(_one_sentence(complaint.getvalue(), args_type)) from None
    check_bounds(args)
    return args


def check_bounds(args: Any) -> None:
    """Raise UserError when a value is outside the bounds its annotation states."""
    for name, hint in typing.get_type_hints(type(args), include_extras=True).items():
        value = getattr(args, name)
        check_limit("--" + name.replace("_", "-"), value)
        for bounds in typing.get_args(hint)[1:]:
            if isinstance(bounds, Bounds) and value is not None:
                _check_value(name, value, bounds)


def _check_value(name: str, value: float, bounds: Bounds) -> None:
    flag = "--" + name.replace("_", "-")
    # Written so that nan, which compares false with everything, is refused too.
    if bounds.minimum is not None and not value >= bounds.minimum:
        raise UserError(f"{flag} is {value}, but must be at least {bounds.minimum:g}.")
    if bounds.maximum is not None and not value <= bounds.maximum:
        raise UserError(f"{flag} is {value}, but must be at most {bounds.maximum:.10g}.")


def _one_sentence(complaint: str, args_type: Any) -> str:
    """What tyro says between its title and its advice, in whichever characters it draws its frame."""
    paragraphs: list[list[str]] = [[]]
    for line in complaint.splitlines():
        text = line.strip("│ ")
        if text.startswith(("╭", "╰", "──", "----")):
            paragraphs.append([])
        elif text:
            paragraphs[-1].append(text)
    sentence = " ".join(paragraphs[1] if len(paragraphs) > 1 else paragraphs[0]).rstrip(".")
    unknown = re.match(r"Unrecognized options: --(?:no-)?([\w-]+)", sentence)
    if unknown:
        known = ["--" + field.name.replace("_", "-") for field in dataclasses.fields(args_type)]
        hint = closest("--" + unknown[1].replace("_", "-"), known)
        return f"There is no option '--{unknown[1]}'{hint or '; --help lists the options.'}"
    return f"{sentence}; --help lists the options."
