"""What people type as numbers, seeds and settings, turned into values."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import select
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mosaic.contract.connection import LAST_PORT
from mosaic.contract.errors import UserError
from mosaic.contract.fsm import MOST_PRIORITY
from mosaic.contract.numbers import SECONDS, parse_seeds, parse_whole
from mosaic.contract.outside import parse_json
from mosaic.contract.paths import named_path

_LARGEST_FILE = 2**20
_PIPE_SECONDS = 10


def count(text: str) -> int:
    """A positive whole number, also as `500k`, `1e6`, `2.5M` or `1_000_000`."""
    try:
        value = parse_whole(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"'{text}' is not a positive whole number (such as 50000, 500k or 1e6)")
    return value


def _whole(least: int, most: int, what: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else most + 1
        if not least <= number <= most:
            raise ArgumentTypeError(f"'{text}' is not {what}")
        return number

    return parse


def _real(fits: Callable[[float], bool], what: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not fits(number):
            raise ArgumentTypeError(f"'{text}' is not {what}")
        return number

    return parse


port = _whole(0, LAST_PORT, f"a port: give 1 to {LAST_PORT}, or 0 for any that is free")
natural = _whole(0, sys.maxsize, "a whole number from 0")
priority = _whole(-MOST_PRIORITY, MOST_PRIORITY, f"a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}")
positive = _real(lambda number: 0 < number < math.inf, "a number above zero")
fraction = _real(lambda number: 0 <= number <= 1, "a number from 0 to 1")


def age(text: str) -> float:
    """A length of time such as `30d`, `12h`, `2w` or `0`, in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *(s|min|h|d|w)|0", text.strip().lower())
    if match is None:
        raise ArgumentTypeError(f"'{text}' is not a length of time (such as 30d, 12h, 2w, or 0 for any)")
    return float(match[1] or 0) * SECONDS[match[2] or "s"]


def size(text: str) -> tuple[float, float]:
    """Width and height such as `6x4` in inches or `15x10cm`, in inches."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*[x×]\s*(\d+(?:\.\d+)?)\s*(in|cm)?", text.strip().lower())
    unit = 2.54 if match and match[3] == "cm" else 1.0
    found = (float(match[1]) / unit, float(match[2]) / unit) if match else (0.0, 0.0)
    if not all(1 <= length <= 50 for length in found):
        raise ArgumentTypeError(f"'{text}' is not a size from 1 to 50 inches (such as 6x4 or 15x10cm)")
    return found


def seeds(text: str) -> list[int]:
    """Seeds such as `1-5`, `1,3,7` or `1-3,10`; the same one twice is a mistake."""
    try:
        return list(parse_seeds(text, f"'{text}' is not a list of seeds (such as 1-5 or 1,3,7)"))
    except UserError as error:
        raise ArgumentTypeError(str(error)) from None


def setting(text: str) -> tuple[str, str]:
    """`name=value` as a pair."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ArgumentTypeError(f"'{text}' is not of the form name=value")
    return name.strip().replace("-", "_"), value.strip()


def variable(text: str) -> tuple[str, str]:
    """A variable of the environment: `NAME=value`, or `NAME` with the value that it has here."""
    name, equals, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ArgumentTypeError(
            f"'{text}' is not a variable such as NAME or NAME=VALUE; an environment to train on is --env-id"
        )
    if not equals and name not in os.environ:
        raise ArgumentTypeError(f"'{name}' is not set here: set it, or give {name}=VALUE")
    return name, value if equals else os.environ[name]


def settings(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Settings by name; one given twice is a mistake."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise UserError(f"'{name}' is given twice: give it once.")
        found[name] = value
    return found


def literal(text: str) -> Any:
    """JSON when it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def curriculum(text: str) -> Any:
    """What is in a JSON file or in the text itself; any other text is a name for the worker to know."""
    if text.lstrip().startswith(("[", "{")):
        source = text
    elif (path := named_path(text)).suffix == ".json" or path.is_file():
        try:
            source = read_given(path).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ArgumentTypeError(f"{text} cannot be read: {reason}") from error
    else:
        return text
    try:
        return parse_json(source)
    except ValueError as error:
        raise ArgumentTypeError(f"{text:.80} is not JSON: {error}") from error


def read_given(path: Path) -> bytes:
    """What is in a file or a pipe that somebody names; an OSError says why that is not to be had.

    Neither a pipe into which nobody writes nor a device without an end holds it up.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data, poller = b"", select.poll()
        poller.register(handle, select.POLLIN)
        while poller.poll(_PIPE_SECONDS * 1000):
            part = os.read(handle, _LARGEST_FILE)
            data += part
            if not part:
                return data
            if len(data) > _LARGEST_FILE:
                raise OSError(errno.EFBIG, f"it has more than {_LARGEST_FILE:,} bytes")
    finally:
        os.close(handle)
    raise OSError(errno.ETIMEDOUT, f"nothing came from it for {_PIPE_SECONDS} s")


def json_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    value = literal(text)
    if not isinstance(value, dict):
        raise ArgumentTypeError(f"{text!r} is not a JSON object (such as '{{\"gravity\": 5.0}}')")
    return value
