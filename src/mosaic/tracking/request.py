"""What a tracker is told of a run, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mosaic.contract.errors import MosaicError
from mosaic.tracking import TrackerLink
from mosaic.tracking.feed import Point


@dataclass(frozen=True)
class Request:
    """One run as a tracker shall show it; no secrets."""

    tracker: str
    run_id: str
    run_dir: str
    var: str
    """Where trackers that keep their data on this machine have those of all runs."""
    run_name: str
    mode: str = "train"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tags: Sequence[str] = ()
    notes: str = ""
    training_pid: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def folder(self) -> Path:
        return Path(self.run_dir)

    def setting(self, *names: str) -> str:
        """The first of these settings that has a value; else empty."""
        return next((str(self.settings[name]) for name in names if self.settings.get(name)), "")

    @property
    def all_tags(self) -> list[str]:
        """The run's tags, and those that are for this tracker."""
        return list(dict.fromkeys([*self.tags, *self.settings.get("tags", ())]))

    @property
    def title(self) -> str:
        """The run's name in the tracker."""
        return self.setting("run_name") or self.run_name


class TrackerProblem(MosaicError):
    """A tracker cannot do what it is asked for; the message is one sentence for the user."""

    def __init__(self, message: str, passing: bool = False) -> None:
        """What is `passing`, such as a server that does not answer, is tried again."""
        super().__init__(message)
        self.passing = passing


def first_line(error: BaseException) -> str:
    """What went wrong, as the end of a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".") + "."


class Tracker(Protocol):
    """Where a run is passed on to. Each call may raise `TrackerProblem`; nothing else is expected."""

    def open(self, kept: dict[str, Any]) -> TrackerLink:
        """Begin the run there, or go on with it. `kept` is written to the run's folder, now and later."""

    def log(self, points: Sequence[Point]) -> None:
        """Pass on numbers, in the order of time."""

    def has(self) -> int | None:
        """How many rows of earlier processes it has (`kept["rows"]` says how many it was given); None when it
        keeps all that it is given."""

    def add_video(self, path: Path, name: str, step: int) -> None:
        """Pass on a video that was whole when training was at `step`."""

    def add_model(self, files: Sequence[Path]) -> None:
        """Pass on the model files that the run has left."""

    def close(self, outcome: str) -> TrackerLink:
        """The run has ended `completed`, `failed` or `cancelled`: hand in what is left, and return."""
