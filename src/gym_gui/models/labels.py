"""Name, tags and notes: what runs have in common, and what changes for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gym_gui.models.run_rows import shared_tags
from mosaic.client import RunRecord


@dataclass(frozen=True)
class Labels:
    """What people call one run or several; None where several differ."""

    name: str | None = ""
    tags: tuple[str, ...] = ()
    """Those that all of them have."""
    notes: str | None = ""

    @classmethod
    def of_texts(cls, name: str, tags: str, notes: str, before: Labels) -> Labels:
        """What stands in the fields now; where several differ an empty field leaves each its own."""
        split = (tag.strip().removeprefix("#") for tag in tags.split(","))
        return cls(
            # A run always has a name: without one it keeps that which it has.
            name.strip() or before.name,
            tuple(dict.fromkeys(filter(None, split))),
            None if before.notes is None and not notes.strip() else notes.strip(),
        )


@dataclass(frozen=True)
class LabelChange:
    """What one run gets; None where it keeps what it has."""

    run_id: str
    name: str | None
    tags: list[str] | None
    notes: str | None


def shared_labels(runs: Sequence[RunRecord]) -> Labels:
    """What the runs have in common."""
    names, notes = {run.run_name for run in runs}, {run.notes for run in runs}
    return Labels(
        names.pop() if len(names) == 1 else None,
        tuple(shared_tags(runs)),
        notes.pop() if len(notes) == 1 else None,
    )


def changes_for(runs: Sequence[RunRecord], before: Labels, after: Labels) -> list[LabelChange]:
    """What each run gets. Tags that are not shared by all stay where they are."""
    made = []
    for run in runs:
        tags = list(dict.fromkeys([*(tag for tag in run.tags if tag not in before.tags), *after.tags]))
        change = LabelChange(
            run.run_id,
            after.name if after.name != before.name else None,
            tags if after.tags != before.tags and tags != run.tags else None,
            after.notes if after.notes != before.notes else None,
        )
        if change != LabelChange(run.run_id, None, None, None):
            made.append(change)
    return made
