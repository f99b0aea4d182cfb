"""Finds the event files of a run."""

from __future__ import annotations

import os
from pathlib import Path

SKIPPED_FOLDERS = frozenset({"wandb", "checkpoints", "videos", "bridge"})

Signature = tuple[int, int]
"""Size and time of change: as long as both stay, a file is taken to be unchanged."""


def find_event_files(folder: Path) -> dict[str, dict[str, Signature]]:
    """The event files under `folder`: source (the folder they lie in) → relative path → signature.

    They stand in the order they are to be read. Links are not followed; what cannot be listed is left out.
    """
    found: dict[str, dict[str, Signature]] = {}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(folder / place) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = f"{place}/{entry.name}" if place else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    waiting.append(path)
            elif "tfevents" in entry.name and entry.is_file(follow_symlinks=False):
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                found.setdefault(place or ".", {})[path] = (status.st_size, status.st_mtime_ns)
    return dict(sorted(found.items()))
