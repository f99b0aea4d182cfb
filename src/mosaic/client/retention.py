"""What may go: rules over the records of runs and over what lies in the var folder beside them."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from mosaic.client.client import Client
from mosaic.client.records import RunRecord
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_filter import RunQuery

DAY = 86_400.0
USUAL_AGE = 30 * DAY
_TEMPORARY_AGE = DAY
"""No write takes a day: a temporary file that is older was left by an interrupted one."""

_RUN_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
# What `write_atomic` calls its temporary file, for the kinds of files that we write with it.
_TEMPORARY = re.compile(r"\..+\.(?:json|cleanrl_model|npz)\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Rule:
    """Which ended runs may go: those to which every part of it applies."""

    older_than: float = USUAL_AGE
    """Seconds since the run ended."""
    keep: int = 0
    """So many of the newest ended runs stay, whatever else is said."""
    outcomes: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    not_tags: frozenset[str] = frozenset()

    def covers(self, run: RunRecord) -> bool:
        """Whether outcome and tags fit."""
        tags = frozenset(run.tags)
        fits = not self.outcomes or run.outcome in self.outcomes
        return fits and self.tags <= tags and not self.not_tags & tags


class LeftoverKind(StrEnum):
    LOG = "log"
    """The log of a run that was removed."""
    LINK = "link"
    """A link for TensorBoard that leads nowhere."""
    TEMPORARY = "temporary"
    """The unfinished file of an interrupted write."""


@dataclass(frozen=True)
class Leftover:
    """Something beside the runs that may belong to nobody. `run_id` is the run it was made for, if one is."""

    kind: LeftoverKind
    path: Path
    size: int
    changed_at: float
    run_id: str | None


@dataclass(frozen=True)
class Plan:
    """What goes, with the size of each run's folder."""

    runs: tuple[RunRecord, ...]
    sizes: Mapping[str, int]
    leftovers: tuple[Leftover, ...]

    @property
    def size(self) -> int:
        return sum(self.sizes[run.run_id] for run in self.runs) + sum(item.size for item in self.leftovers)

    @property
    def empty(self) -> bool:
        return not self.runs and not self.leftovers


def ended_at(run: RunRecord) -> float:
    return run.ended_at or run.submitted_at


def surplus_runs(runs: Iterable[RunRecord], rule: Rule, now: float) -> list[RunRecord]:
    """The ended runs that the rule lets go, the longest ended first."""
    ended = sorted((run for run in runs if run.ended), key=lambda run: (ended_at(run), run.run_id))
    old = ended[: max(0, len(ended) - rule.keep)]
    return [run for run in old if now - ended_at(run) >= rule.older_than and rule.covers(run)]


def surplus_leftovers(
    leftovers: Iterable[Leftover], runs: Sequence[RunRecord], going: Collection[str], rule: Rule, now: float
) -> list[Leftover]:
    """What belongs to none of `runs`; what lies in the folder of a run in `going` goes with that."""
    known = {run.run_id for run in runs}
    untouched = {run.run_id for run in runs if not run.ended} | set(going)

    def is_surplus(item: Leftover) -> bool:
        age = now - item.changed_at
        if item.kind == LeftoverKind.LOG:
            return item.run_id not in known and age >= rule.older_than
        if item.run_id in untouched:
            return False
        return item.kind == LeftoverKind.LINK or age >= _TEMPORARY_AGE

    return [item for item in leftovers if is_surplus(item)]


def make_plan(
    ended: Iterable[RunRecord],
    known: Sequence[RunRecord],
    leftovers: Iterable[Leftover],
    rule: Rule,
    now: float,
) -> Plan:
    """What goes by the rule, of runs that `read_ended` gave. `known` are all runs, of which id and status do.

    Find the leftovers before the runs: then each live one has its run there.
    """
    going = surplus_runs(ended, rule, now)
    sizes = {run.run_id: folder_size(Path(run.run_dir)) for run in going}
    return Plan(tuple(going), sizes, tuple(surplus_leftovers(leftovers, known, sizes, rule, now)))


def read_ended(client: Client, rule: Rule, now: float) -> list[RunRecord]:
    """The ended runs that a rule may let go, and the newest that it keeps: of the others it needs nothing."""
    fields = ("run_id", "run_name", "status", "outcome", "tags", "submitted_at", "ended_at", "run_dir")
    ended = RunQuery(statuses=("TERM",), order_by="ended", fields=(*fields, "brief_json"))
    old = replace(
        ended,
        outcomes=sorted(rule.outcomes),
        tags=sorted(rule.tags),
        without_tags=sorted(rule.not_tags),
        ended_before=math.nextafter(max(0.0, now - rule.older_than), math.inf),
    )
    newest = client.each(ended, rule.keep) if rule.keep else ()
    return list({run.run_id: run for run in (*newest, *client.each(old))}.values())


def find_leftovers(paths: VarPaths) -> list[Leftover]:
    """Everything beside the runs that could belong to nobody, in a settled order."""
    found = [*_logs(paths), *_links(paths), *_temporaries(paths)]
    return sorted(found, key=lambda item: (item.kind, item.path))


def remove_leftover(item: Leftover) -> None:
    """Remove it; that somebody else has done so already is not an error."""
    with contextlib.suppress(FileNotFoundError):
        if item.kind == LeftoverKind.LOG:
            shutil.rmtree(item.path)
        else:
            item.path.unlink()


def folder_size(folder: Path) -> int:
    """The bytes of all files below; 0 when there is no such folder."""
    return sum(about.st_size for _, about in _files(folder))


def _logs(paths: VarPaths) -> Iterator[Leftover]:
    for folder in _folders(paths.logs / "trainer"):
        files = [about for _, about in _files(folder)]
        # One without files was made by a run that is just starting.
        changed = max((about.st_mtime for about in files), default=time.time())
        size = sum(about.st_size for about in files)
        yield Leftover(LeftoverKind.LOG, folder, size, changed, folder.name)


def _links(paths: VarPaths) -> Iterator[Leftover]:
    for name, about in _files(paths.tensorboard):
        path = Path(name)
        if stat.S_ISLNK(about.st_mode) and not path.exists():
            run_id = path.relative_to(paths.tensorboard).parts[0]
            yield Leftover(LeftoverKind.LINK, path, about.st_size, about.st_mtime, run_id)


def _temporaries(paths: VarPaths) -> Iterator[Leftover]:
    places: list[tuple[Path, str | None]] = [(folder, folder.name) for folder in _folders(paths.runs)]
    places += [(folder, None) for folder in (paths.trainer, paths.configs, paths.secrets)]
    for folder, run_id in places:
        for path, about in _files(folder, deep=run_id is not None):
            if _TEMPORARY.fullmatch(os.path.basename(path)) and stat.S_ISREG(about.st_mode):
                yield Leftover(LeftoverKind.TEMPORARY, Path(path), about.st_size, about.st_mtime, run_id)


def _folders(parent: Path) -> list[Path]:
    """The folders named like a run."""
    if not parent.is_dir():
        return []
    with os.scandir(parent) as entries:
        return [Path(one.path) for one in entries if _RUN_ID.fullmatch(one.name) and not one.is_symlink()]


def _files(folder: str | Path, deep: bool = True) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in a folder and is none itself; with `deep` also below. No link is followed."""
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        # Somebody may remove it while we look.
        with contextlib.suppress(FileNotFoundError):
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, entry.stat(follow_symlinks=False)
            elif deep:
                yield from _files(entry.path)
