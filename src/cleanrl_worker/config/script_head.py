"""The head of a shell script: what its first comments say of it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.errors import UserError, closest

_TAG = re.compile(r"#\s*@(\w+)\s*(.*)")
_TEXTS = ("description", "env_family", "author")
_NUMBERS = ("phases", "total_timesteps")
_LINES, _LINE = 200, 10_000
"""A head is short: a file that is all comments, or one line, is not read to its end."""


@dataclass(frozen=True)
class ScriptHead:
    """What a script says of itself; each of it may be missing."""

    description: str | None = None
    env_family: str | None = None
    phases: int | None = None
    total_timesteps: int | None = None
    author: str | None = None
    interpreter: tuple[str, ...] = ("bash",)
    """What runs it: the words of its first line, `#!…`, or bash."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"interpreter": list(self.interpreter)}


def read_head(path: Path) -> ScriptHead:
    """The head of a script; a UserError names the tag that is wrong."""
    found: dict[str, Any] = {}
    lines = _head_lines(path)
    for line in lines:
        tag = _TAG.match(line)
        if tag is None:
            continue
        name, value = tag[1], tag[2].strip()
        if name not in (*_TEXTS, *_NUMBERS):
            hint = closest(name, (*_TEXTS, *_NUMBERS))
            if hint:
                raise UserError(f"{path} has '@{name}' in its head{hint}")
            # Other tools have tags of their own.
            continue
        if name in found:
            raise UserError(f"{path} has '@{name}' twice in its head: keep one.")
        found[name] = _number(path, name, value) if name in _NUMBERS else _text(path, name, value)
    if lines and lines[0].startswith("#!") and lines[0][2:].strip():
        # As the kernel reads it: a program, and everything after it is one argument.
        found["interpreter"] = tuple(lines[0][2:].split(maxsplit=1))
    return ScriptHead(**found)


def _head_lines(path: Path) -> list[str]:
    """The comments before the first command."""
    found: list[str] = []
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for _ in range(_LINES):
                line = file.readline(_LINE)
                text = line.strip()
                if "\0" in line:
                    raise UserError(f"The script {path} is a program, not text that a shell can read.")
                if not line:
                    break
                if text and not text.startswith("#"):
                    break
                found.append(text)
    except OSError as error:
        raise UserError(f"The script {path} cannot be read: {error.strerror}.") from error
    return found


def _text(path: Path, name: str, value: str) -> str:
    if not value:
        raise UserError(f"'@{name}' in the head of {path} is empty: say something, or leave it out.")
    return value


def _number(path: Path, name: str, value: str) -> int:
    plain = re.sub(r"(?<=\d)[_,](?=\d)", "", value)
    if not re.fullmatch(r"\d+", plain, re.ASCII) or int(plain) < 1:
        raise UserError(
            f"'@{name}' in the head of {path} is {value!r:.80}, but it must be a whole number of at least 1."
        )
    return int(plain)
