"""Data of others: read so that what comes out of it can be stored, sent and shown, whatever it holds."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mosaic.contract.errors import UserError


def bytes_text(count: float) -> str:
    """`812 B`, `3.4 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


MOST_DEPTH = 64
"""Lists and objects within each other: what recurses over them must not run out of stack."""
MOST_VALUES = 1_000_000
_TOO_DEEP = f"is nested too deep: at most {MOST_DEPTH} levels are allowed"
_LARGEST = 2**63 - 1
"""The largest whole number that the database and the wire can hold."""
_LARGEST_FILE = 64 * 2**20
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_NO_CHARACTER = re.compile("(?!)")
_ANY_PROBLEM = re.compile("[\0\ud800-\udfff]")
"""The database cannot hold texts with either; files cannot hold halves."""


def read_json(path: Path) -> Any:
    """The value in a JSON file; an OSError or a ValueError says why there is none.

    What is not a file is not waited for, and what is too large to be one of ours is not read.
    """
    # Without O_NONBLOCK the open itself would wait for somebody to write to a pipe.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a file")
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise ValueError(f"it is larger than {_LARGEST_FILE:,} bytes")
    return parse_json(data)


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; a ValueError says why there is none.

    Refused as well is what no file or message could hold again: nesting without end, half a character.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"it {_TOO_DEEP}") from None
    problem = _problem(value)
    if problem is not None:
        raise ValueError(f"it {problem}")
    return value


def take_json(text: str, what: str, most: int) -> Any:
    """The value of a text of at most so many characters; `what` begins the sentence that refuses it."""
    if len(text) > most:
        raise UserError(too_large(what, len(text), most))
    try:
        value = json.loads(text)
    except RecursionError:
        raise UserError(f"{what} {_TOO_DEEP}.") from None
    except ValueError as error:
        raise UserError(f"{what} is not JSON: {error}.") from None
    check_plain(value, what)
    return value


def check_plain(value: Any, what: str) -> None:
    """Refuse what is nested too deep, and text that neither a file nor the database can hold."""
    problem = _problem(value, _ANY_PROBLEM)
    if problem is not None:
        raise UserError(f"{what} {problem}.")


def check_depth(value: Any, what: str) -> None:
    """Refuse what is nested too deep, whatever its texts are."""
    problem = _problem(value, _NO_CHARACTER)
    if problem is not None:
        raise UserError(f"{what} {problem}.")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What stands in lists and objects, with its place: names, and numbers as texts."""
    if isinstance(value, Mapping | list | tuple):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(item, (*path, str(key)))
    else:
        yield path, value


def too_large(what: str, size: int, most: int) -> str:
    return (
        f"{what} has {bytes_text(size)}: at most {bytes_text(most)} are allowed. Put large data into a "
        "file, and name that."
    )


def _problem(value: Any, bad: re.Pattern[str] = _HALF_CHARACTER) -> str | None:
    """Why a value of JSON types cannot be stored, as the end of a sentence; None when it can.

    No text in it may have a match of `bad`.
    """
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > MOST_DEPTH:
            return _TOO_DEEP
        if len(layer) > MOST_VALUES:
            return f"has more than {MOST_VALUES:,} values: put large data into a file"
        below: list[Any] = []
        for one in layer:
            if isinstance(one, Mapping):
                below += one.keys()
                below += one.values()
            elif isinstance(one, list | tuple):
                below += one
            elif isinstance(one, str) and (match := bad.search(one)):
                shown = ascii(one[:40])
                if match[0] == "\0":
                    return f"has the text {shown} with a NUL character, which text cannot contain"
                return f"has the text {shown}, which is not valid Unicode"
        layer = below
    return None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _small(value: Any) -> bool:
    return _whole(value) and abs(value) < 2**31


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _has(**parts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether an object has these parts, each of its kind."""
    return lambda value: (
        isinstance(value, Mapping) and all(kind(value.get(name)) for name, kind in parts.items())
    )


def _maybe(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or kind(value)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "step": _whole,
    "total_steps": _maybe(_whole),
    "sps": _maybe(_number),
    "last_return": _maybe(_number),
    "mean_return": _maybe(_number),
    "episodes": _whole,
    "progress": _maybe(_number),
    "phase": _text,
    "time_shares": lambda value: isinstance(value, Mapping) and all(map(_number, value.values())),
    "trackers": lambda value: isinstance(value, Mapping) and all(map(_text, value.values())),
    "script_phase": _has(number=_whole, of=_maybe(_whole), text=_text),
    "curriculum": _has(stage=_whole, stages=_whole, env_id=_text, progress=_maybe(_number)),
    "evaluation": _has(
        target_episodes=_maybe(_whole),
        batch=_whole,
        **dict.fromkeys(("mean", "std", "min", "max"), _maybe(_number)),
    ),
    "training_pid": lambda value: _small(value) and value > 0,
    "exit_code": _small,
    "cause": _text,
}
"""What a worker tells of a run that others count on."""


def sound(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker tells of a run, without what is not of its kind: who shows it need not ask again."""
    kept = {name: value for name, value in payload.items() if name not in _KINDS or _KINDS[name](value)}
    if "headline" in kept:
        kept["headline"] = sound(kept["headline"]) if isinstance(kept["headline"], Mapping) else {}
    return kept
