"""Shell scripts that run as runs: where they lie, what their first comments say, and how they are started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.capabilities import NO_ENVIRONMENT
from mosaic.contract.errors import NotFoundError, UserError, closest
from mosaic.contract.paths import named_path

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
        if name in _TEXTS and not value:
            raise UserError(f"'@{name}' in the head of {path} is empty: write something, or leave it out.")
        found[name] = _number(path, name, value) if name in _NUMBERS else value
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
                if not line or (text and not text.startswith("#")):
                    break
                found.append(text)
    except OSError as error:
        raise UserError(f"The script {path} cannot be read: {error.strerror}.") from error
    return found


def _number(path: Path, name: str, value: str) -> int:
    plain = re.sub(r"(?<=\d)[_,](?=\d)", "", value)
    if not re.fullmatch(r"\d+", plain, re.ASCII) or int(plain) < 1:
        raise UserError(
            f"'@{name}' in the head of {path} is {value!r:.80}, but it must be a whole number of at least 1."
        )
    return int(plain)


SUFFIX = ".sh"
FOLDER_VARIABLE = "MOSAIC_CUSTOM_SCRIPTS_DIR"
SHIPPED = Path(__file__).parents[1] / "custom_scripts"
UNKNOWN_TIMESTEPS = 1
"""Stands for the budget of a script that names none: no progress is shown of it."""
_CHECKED_SHELLS = frozenset({"bash", "sh", "dash"})
_CHECK_SECONDS = 5.0


def is_shell_script(algo: str) -> bool:
    """Whether a config's `algo` names a shell script."""
    return algo.endswith(SUFFIX)


def find_shell_script(algo: str, folder: Path | None) -> Path:
    """The file that a name means: a path, counted from `folder`; else one of the user's own, or of ours."""
    path = named_path(algo, folder)
    if path.is_file():
        return path.resolve()
    if "/" not in algo:
        for place in _folders():
            if (place / algo).is_file():
                return (place / algo).resolve()
    known = [script["name"] for script in list_scripts()]
    hint = closest(algo, known) or ": check the path; `mosaic scripts` lists those that are found by name."
    raise NotFoundError(f"The script {path} does not exist{hint}")


def fill_in_script(fields: Mapping[str, Any], algo: str, folder: Path) -> dict[str, Any]:
    """A config's fields with what the script says of itself in place of what is not given."""
    if fields.get("env_id") is not None and fields.get("total_timesteps") is not None:
        return dict(fields)
    head = read_head(find_shell_script(algo, folder))
    known = {
        "env_id": head.env_family or NO_ENVIRONMENT,
        "total_timesteps": head.total_timesteps or UNKNOWN_TIMESTEPS,
    }
    return {**fields} | {name: value for name, value in known.items() if fields.get(name) is None}


def names_environment(head: ScriptHead, env_id: str) -> bool:
    """Whether somebody has named an environment for a script, or the name only fills the place."""
    return env_id not in (head.env_family, NO_ENVIRONMENT)


def list_scripts() -> list[dict[str, Any]]:
    """The user's own scripts, then the shipped ones that no script of the user's hides, as JSON."""
    found: dict[str, dict[str, Any]] = {}
    for place in _folders():
        for path in sorted(place.glob(f"*{SUFFIX}")):
            if path.is_file():
                found.setdefault(path.name, _listed(path))
    return list(found.values())


def describe_script(name: str, folder: Path) -> dict[str, Any]:
    """What one script's head says, by the script's name or path; UserError when there is none."""
    return _listed(find_shell_script(name, folder))


def check_shell_script(path: Path, head: ScriptHead) -> None:
    """Raise UserError when the program that runs a script is missing or the shell cannot read it."""
    program = head.interpreter[0]
    if shutil.which(program) is None:
        raise UserError(f"The script {path} is for {program}, which is not installed: install it.")
    words = " ".join(head.interpreter).split()
    shell = Path(words[-1] if Path(words[0]).name == "env" else words[0]).name
    if shell not in _CHECKED_SHELLS:
        return
    try:
        done = subprocess.run(
            [shell, "-n", str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CHECK_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{shell} has not read the script {path} in {_CHECK_SECONDS:.0f} s.") from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no word"])[0]
        raise UserError(f"{shell} cannot read the script: {said}.")


def _folders() -> Iterator[Path]:
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        yield named_path(named)
    yield SHIPPED


def _listed(path: Path) -> dict[str, Any]:
    """A script that `mosaic train NAME.sh` finds by its name; a head that is wrong is told, not raised."""
    found = {"name": path.name, "path": str(path), "shipped": path.parent == SHIPPED}
    try:
        return {**found, **read_head(path).as_json(), "problem": None}
    except UserError as error:
        return {**found, "problem": str(error)}
