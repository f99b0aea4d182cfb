"""Optional sets that a choice needs: which are missing, and what installs them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mosaic.contract.extras import PURPOSES, extra_sets

_PACKAGE = re.compile(r"(Collecting|Requirement already satisfied:) ([\w.\-]+)")
_FILE = re.compile(r"(?:Downloading|Using cached) ([\w.\-]+)")
_INSTALLING = re.compile(r"Installing collected packages: (.+)")


@dataclass(frozen=True)
class Requirement:
    """A set that is not installed, and what asks for it."""

    name: str
    needed_by: str

    @property
    def command(self) -> str:
        return f"mosaic extras install {self.name}"

    @property
    def sentence(self) -> str:
        what = PURPOSES.get(self.name, self.name)
        return f"{self.needed_by} needs the optional set '{self.name}' ({what})."


def installed_sets() -> dict[str, bool]:
    """Of each optional set whether it is there now."""
    importlib.invalidate_caches()
    return {one.name: one.installed for one in extra_sets()}


def missing(needs: Iterable[tuple[str, str]], installed: Mapping[str, bool]) -> list[Requirement]:
    """The sets among `needs`, pairs of a set and what asks for it, that are not there; each once."""
    found: dict[str, Requirement] = {}
    for name, needed_by in needs:
        if name and not installed.get(name, True):
            found.setdefault(name, Requirement(name, needed_by))
    return list(found.values())


def install_command(names: Iterable[str]) -> list[str]:
    """The command that installs sets with the packages of this interpreter."""
    return [sys.executable, "-u", "-m", "mosaic", "extras", "install", *names]


class InstallProgress:
    """What pip's lines say, in a few words."""

    def __init__(self) -> None:
        self.step = "Asking the package index…"
        self.last = ""
        self._seen: set[str] = set()

    def take(self, line: str) -> str:
        """The step after one more line."""
        plain = line.strip()
        self.last = plain or self.last
        if found := _INSTALLING.match(plain):
            self.step = f"Installing {len(found[1].split(','))} packages…"
        elif found := _PACKAGE.match(plain):
            self._seen.add(found[2].lower())
            self.step = f"Looking at {found[2]}, package {len(self._seen)}…"
        elif found := _FILE.match(plain):
            self.step = f"Fetching {found[1]}…"
        elif plain.startswith("Successfully installed"):
            self.step = plain
        return self.step

    def verdict(self, names: Iterable[str], code: int) -> str:
        """How it ended."""
        listed = ", ".join(names)
        if code == 0:
            return f"{listed} is installed."
        return f"{listed} could not be installed (code {code}): {self.last or 'pip said nothing'}"
