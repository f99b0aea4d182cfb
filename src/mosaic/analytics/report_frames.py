"""A few pictures of the films that runs have left, for a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.analytics.artifacts import list_artifacts
from mosaic.analytics.report_data import Progress
from mosaic.client.records import RunRecord
from mosaic.contract import words
from mosaic.contract.capabilities import EVALUATES
from mosaic.fastlane.png import encode_png

if TYPE_CHECKING:
    from av.container import InputContainer

_FRAMES = 6
_HEIGHT = 160
"""Pixels; a page shows them a little smaller."""
_WIDEST = 480
_MOST_FILMS = 3
_MOST_DECODED = 2_000
"""Frames between a key frame and the one that is wanted."""


@dataclass(frozen=True)
class Film:
    """A film of a run as pictures (PNG), each with its time in words; or why there are none."""

    label: str
    frames: tuple[tuple[str, bytes], ...] = ()
    problem: str = ""


def films_of(runs: Sequence[RunRecord], progress: Progress) -> list[Film]:
    """A film of each environment, at most three: the last one of an evaluation where there is one."""
    chosen: dict[str, tuple[RunRecord, Path]] = {}
    for run in sorted(runs, key=lambda run: (run.mode == EVALUATES, run.submitted_at)):
        videos = [file for file in list_artifacts(Path(run.run_dir)) if file.kind == "video" and file.size]
        if videos:
            last = max(videos, key=lambda file: (file.modified, file.path))
            chosen[str(run.worker_config.get("env_id"))] = run, Path(run.run_dir, last.path)
    found = list(chosen.items())[:_MOST_FILMS]
    made = []
    for number, (env_id, (run, path)) in enumerate(found):
        progress(number, len(found), "reads films")
        made.append(_film(f"{env_id}, {run.run_name}", path))
    return made


def _film(label: str, path: Path) -> Film:
    try:
        import av
    except ImportError:
        return Film(
            label, problem=f"{path.name} is not shown: `./mosaic extras install video` lets a report do it."
        )
    try:
        with av.open(str(path)) as container:
            return Film(label, tuple(_pictures(container)))
    except (OSError, ValueError, IndexError, av.FFmpegError) as error:
        return Film(label, problem=f"{path} is not a video that can be read ({type(error).__name__}).")


def _pictures(container: InputContainer) -> Iterator[tuple[str, bytes]]:
    stream = container.streams.video[0]
    base = float(stream.time_base or 0.04)
    length = float(stream.duration) * base if stream.duration else float(container.duration or 0) / 1e6
    shown = set[int]()
    for number in range(_FRAMES):
        wanted = length * number / _FRAMES
        container.seek(int(wanted / base), stream=stream)
        frame = _at(container, wanted, base)
        if frame is None or frame.pts in shown:
            continue
        shown.add(frame.pts)
        scale = min(1.0, _HEIGHT / frame.height, _WIDEST / frame.width)
        small = frame.reformat(
            width=max(1, round(frame.width * scale)),
            height=max(1, round(frame.height * scale)),
            format="rgb24",
        )
        yield words.duration((frame.pts or 0) * base), encode_png(small.to_ndarray())


def _at(container: InputContainer, wanted: float, base: float) -> Any:
    """The frame at a time, or the last one before the end."""
    frame = None
    for number, frame in enumerate(container.decode(video=0)):
        if (frame.pts or 0) * base >= wanted - 1e-6 or number >= _MOST_DECODED:
            break
    return frame
