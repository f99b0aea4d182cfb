"""Trackers: where else a run's curves, videos and model go (Weights & Biases, MLflow, trackio).

A run that asks for a tracker has one light process more: `mosaic.tracking.process`, started by the run's
supervisor, reads the run's event files and passes on what is new. The training process knows nothing of it.

What each tracker does is in a small file in the run's folder, `tracking/<name>.json`, which has no secrets
and is written whole or not at all. `links(run_dir)` reads them, with nothing but the standard library:

    for link in links(run_dir):
        link.name       "wandb", "mlflow", "trackio"
        link.title      "Weights & Biases", …
        link.state      "starting", "online" (sent as it comes), "offline" (kept here, to be sent with
                        `command`), "local" (kept on this machine, to be looked at with `command`), "failed"
        link.url        the page of the run; empty when there is none (yet)
        link.folder     where the tracker's own files lie; empty when there are none
        link.command    what sends an offline run, or shows a local one; empty when nothing need be done
        link.problem    one sentence for the user; empty when all is well. A tracker with a problem may still
                        be "online" or "offline": then the sentence says what is missing there
        link.finished   whether everything that the run has left has arrived
        link.details    project, entity, run_name, group, tags, notes: those that are known
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_json
from mosaic.contract.outside import read_json

TITLES: Mapping[str, str] = {"wandb": "Weights & Biases", "mlflow": "MLflow", "trackio": "trackio"}
"""The trackers by the names of their optional sets."""
FOLDER = "tracking"
_PASSWORD = re.compile(r"//[^/\s]*@")
STARTING, ONLINE, OFFLINE, LOCAL, FAILED = "starting", "online", "offline", "local", "failed"


@dataclass(frozen=True)
class TrackerLink:
    """Where one tracker of a run stands."""

    name: str
    state: str = STARTING
    url: str = ""
    folder: str = ""
    command: str = ""
    problem: str = ""
    finished: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What people call it."""
        return TITLES.get(self.name, self.name)

    @property
    def text(self) -> str:
        """Where the run can be seen there, what has to be done for that, and what is wrong, line by line."""
        where = {FAILED: "", STARTING: "starts", OFFLINE: "kept here", LOCAL: "kept on this machine"}
        told = [self.url or where.get(self.state, self.state), f"`{self.command}`" if self.command else ""]
        lines = [": ".join(part for part in (self.title, *told) if part)]
        # A problem may name the same command.
        return "\n".join([*lines, self.problem] if self.problem else lines)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def links(run_dir: Path) -> list[TrackerLink]:
    """Every tracker that the run was asked for, in the order of `TITLES`; none when it has none."""
    return [link for name in TITLES if (link := read_link(run_dir, name)) is not None]


def read_link(run_dir: Path, name: str) -> TrackerLink | None:
    """One tracker of a run; None when it has none of that name, or its file is damaged."""
    try:
        told = read_json(run_dir / FOLDER / f"{name}.json")["link"]
        known = {one.name: told[one.name] for one in fields(TrackerLink) if one.name in told}
        kinds = {"finished": bool, "details": Mapping}
        sound = all(isinstance(value, kinds.get(key, str)) for key, value in known.items())
        return TrackerLink(**{**known, "name": name}) if sound else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_link(run_dir: Path, link: TrackerLink, progress: Mapping[str, Any]) -> None:
    """Keep where a tracker stands, and `progress`, by which it goes on after a restart.

    What a client says of an address may have a password in it: none is kept.
    """
    problem, url = (_PASSWORD.sub("//", text) for text in (link.problem, link.url))
    link = replace(link, problem=problem, url=url)
    folder = run_dir / FOLDER
    folder.mkdir(exist_ok=True)
    write_json(folder / f"{link.name}.json", {"link": link.as_json(), "progress": dict(progress)})


def read_progress(run_dir: Path, name: str) -> dict[str, Any]:
    """How far a tracker had come when it last wrote; empty when it begins."""
    try:
        progress = read_json(run_dir / FOLDER / f"{name}.json")["progress"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return progress if isinstance(progress, dict) else {}
