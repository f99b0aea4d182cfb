"""Filters of runs under names of the user's own: one store for the command line and the window."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_json
from mosaic.contract.errors import NotFoundError, StorageError, UserError, closest
from mosaic.contract.outside import read_json
from mosaic.contract.paths import make_folder
from mosaic.contract.run_filter import RUN_STATES, parse_terms

_FORMAT = 1
_LONGEST_NAME, _LONGEST_TEXT = 60, 2_000


@dataclass(frozen=True)
class SavedFilter:
    """Which runs somebody wants to find again."""

    name: str
    text: str = ""
    """Words and conditions: `cartpole return>400`."""
    state: str = "all"
    """One of `RUN_STATES`."""

    def checked(self) -> SavedFilter:
        """The same without blanks around it; UserError when it cannot be kept."""
        name, text = " ".join(self.name.split()), " ".join(self.text.split())
        if not name or name.startswith("@") or not name.isprintable():
            raise UserError(f"A filter cannot be called '{self.name}': write a word or a few, without @.")
        if len(name) > _LONGEST_NAME or len(text) > _LONGEST_TEXT:
            raise UserError(
                f"The filter is too long: its name has at most {_LONGEST_NAME} characters, "
                f"what it looks for {_LONGEST_TEXT:,}."
            )
        if self.state not in RUN_STATES:
            raise UserError(f"'{self.state}' is not one of {', '.join(RUN_STATES)}.")
        problem = next(filter(None, (term.problem for term in parse_terms(text))), "")
        if problem:
            raise UserError(problem)
        if not text and self.state == "all":
            raise UserError(f"The filter '{name}' would find every run: add words or conditions.")
        return SavedFilter(name, text, self.state)


class SavedFilters:
    """The store of a var folder. Each change reads what others have written meanwhile, and keeps it."""

    def __init__(self, var: Path) -> None:
        self.path = var / "filters.json"

    def all(self) -> list[SavedFilter]:
        """Every filter, by name."""
        try:
            kept = read_json(self.path)
            found = [SavedFilter(one["name"], one["text"], one["state"]).checked() for one in kept["filters"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
            raise StorageError(
                f"The saved filters in {self.path} cannot be read ({error}): "
                "correct the file, or remove it to start again."
            ) from error
        return sorted({one.name: one for one in found}.values(), key=lambda one: one.name.lower())

    def find(self, name: str) -> SavedFilter:
        """The filter that is called so, with or without @; small and large letters are the same."""
        return _find(self.all(), name)

    def save(self, wanted: SavedFilter) -> SavedFilter | None:
        """Keep a filter; gives the one of the same name that it took the place of."""
        wanted, replaced = wanted.checked(), list[SavedFilter]()

        def change(kept: list[SavedFilter]) -> list[SavedFilter]:
            replaced.extend(one for one in kept if one.name.lower() == wanted.name.lower())
            return [*(one for one in kept if one not in replaced), wanted]

        self._change(change)
        return replaced[0] if replaced else None

    def remove(self, names: Sequence[str]) -> list[SavedFilter]:
        """Forget filters, all or none; gives what they were."""
        gone: list[SavedFilter] = []

        def change(kept: list[SavedFilter]) -> list[SavedFilter]:
            gone.extend(_find(kept, name) for name in names)
            return [one for one in kept if one not in gone]

        self._change(change)
        return gone

    def _change(self, change: Callable[[list[SavedFilter]], list[SavedFilter]]) -> None:
        make_folder(self.path.parent)
        with self._locked():
            kept = [asdict(one) for one in change(self.all())]
            written: dict[str, Any] = {"format": _FORMAT, "filters": kept}
            try:
                write_json(self.path, written)
            except OSError as error:
                reason = error.strerror or error
                raise StorageError(f"{self.path} cannot be written ({reason}): make room for it.") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else changes the file meanwhile. The lock ends with the process, whatever happens to it."""
        try:
            with self.path.with_name(".filters.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise StorageError(f"{self.path} cannot be changed ({error.strerror}): correct that.") from error


def _find(kept: Sequence[SavedFilter], name: str) -> SavedFilter:
    wanted = " ".join(name.removeprefix("@").split())
    for one in kept:
        if one.name.lower() == wanted.lower():
            return one
    hint = closest(wanted, [one.name for one in kept]) or "."
    raise NotFoundError(f"No filter is saved as '{wanted}'{hint} `mosaic filters` lists them.")
