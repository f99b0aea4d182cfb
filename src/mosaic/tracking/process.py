"""`python -m mosaic.tracking.process`: the process that passes one run on to one tracker.

Its first line of stdin is the `Request` as JSON, the next `{"end": "completed"}` (or another outcome) when
the run has ended: then it hands in what is left, and ends. With `--parent PID` it ends with that process.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mosaic.contract.errors import MosaicError
from mosaic.tracking import FAILED, TITLES, TrackerLink, read_link, read_progress, write_link
from mosaic.tracking.feed import Feed, Point, model_files, new_videos, rows, without_rows
from mosaic.tracking.request import Request, Tracker, TrackerProblem, first_line

LOOK_SECONDS = 2.0
"""How often what is new is passed on."""
AGAIN_SECONDS = 15.0
"""How soon what has failed in passing is tried again."""
_SAVE_SECONDS = 5.0
_MARK_SECONDS, _MOST_MARKS = 15.0, 5
_ALONE_SECONDS = 60
"""For the end of a run whose training process has died without a word."""
_PR_SET_PDEATHSIG = 1
_NICENESS = 10


def make_tracker(request: Request) -> Tracker:
    """The tracker that a request names; only its own library is imported."""
    if request.tracker == "wandb":
        from mosaic.tracking.wandb import WandbTracker

        return WandbTracker(request)
    if request.tracker == "mlflow":
        from mosaic.tracking.mlflow import MlflowTracker

        return MlflowTracker(request)
    from mosaic.tracking.trackio import TrackioTracker

    return TrackioTracker(request)


class Orders:
    """What comes by stdin, line by line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        self._closed = False

    def next(self, seconds: float | None) -> dict[str, Any] | None:
        """The next line; None when none has come within `seconds`. When nobody is there any more, the end."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._text and not self._closed:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._descriptor], [], [], left)[0]:
                return None
            data = os.read(self._descriptor, 65536)
            self._closed = not data
            self._text += data
        line, _, self._text = self._text.partition(b"\n")
        if not line:
            # Nobody waits for us, and nobody would end us either.
            signal.alarm(_ALONE_SECONDS)
        order = json.loads(line) if line else {"end": "failed"}
        return order if isinstance(order, dict) else {}


class Passing:
    """One run on its way to one tracker."""

    def __init__(self, request: Request, orders: Orders) -> None:
        self._request = request
        self._orders = orders
        self._tracker = make_tracker(request)
        progress = read_progress(request.folder, request.tracker)
        self._kept: dict[str, Any] = dict(progress.get("tracker") or {})
        self._sent = {str(path) for path in progress.get("files", ())}
        self._feed = Feed(request.folder, progress)
        # Points that the tracker could not take: they come before all newer ones.
        self._waiting: list[Point] = []
        self._mark = self._feed.progress()
        # Where the feed stood some time ago, by the rows that were passed on until then: see `_go_back`.
        self._marks = [dict(mark) for mark in progress.get("marks", ())]
        self._skip = 0
        self._link = TrackerLink(request.tracker)
        self._saved: tuple[Any, ...] = ()
        self._saved_at = self._marked_at = 0.0

    def run(self) -> int:
        """Pass on what comes, until the run has ended; gives the exit code."""
        outcome = self._until_open()
        opened = self._link.state != FAILED
        while opened and outcome is None:
            self._try(self._pass_on)
            self._save()
            outcome = self._wait(AGAIN_SECONDS if self._waiting else LOOK_SECONDS)
        if opened:
            assert outcome is not None
            self._finish(outcome)
        return 0

    def _until_open(self) -> str | None:
        """Open the tracker, again and again while it cannot be reached; gives the outcome of a run that has
        ended meanwhile."""
        self._save()
        outcome: str | None = None
        while True:
            try:
                self._link = self._tracker.open(self._kept)
            except TrackerProblem as error:
                self._link = replace(self._link, state=FAILED, problem=str(error))
                self._save(now=True)
                if not error.passing or outcome is not None:
                    return outcome
                outcome = self._wait(AGAIN_SECONDS)
            else:
                self._go_back()
                self._save(now=True)
                return outcome

    def _go_back(self) -> None:
        """Stand where the tracker stands: what an earlier process handed over and could not note is not
        passed on again, and what it noted and could not hand over before it was killed is."""
        has = self._tracker.has()
        if has is None:
            return
        rows = self._kept.get("rows", 0)
        before = [mark for mark in self._marks if mark["rows"] <= has]
        if has < rows and before:
            rows = before[-1]["rows"]
            self._feed = Feed(self._request.folder, before[-1]["feed"])
            self._mark = self._feed.progress()
        videos = self._kept.setdefault("videos", {})
        self._skip = max(0, has - rows - sum(rows <= row < has for row in videos.values()))
        for path in [path for path, row in videos.items() if row >= has]:
            self._sent.discard(path)
            del videos[path]
        self._kept["rows"] = has

    def _wait(self, seconds: float) -> str | None:
        order = self._orders.next(seconds)
        return None if order is None else str(order.get("end") or "failed")

    def _try(self, what: Any, *arguments: Any) -> bool:
        """Do it; what goes wrong is told in the run's folder, and no reason to end."""
        try:
            what(*arguments)
        except TrackerProblem as error:
            self._link = replace(self._link, problem=str(error))
            return False
        return True

    def _pass_on(self, ended: bool = False) -> None:
        had_trouble = bool(self._waiting)
        if not self._waiting:
            found = self._feed.take(ended)
            self._waiting = without_rows(found, self._skip)
            self._skip -= min(self._skip, len(rows(found)))
        if self._waiting:
            self._tracker.log(self._waiting)
        self._waiting = []
        self._mark = self._feed.progress()
        if had_trouble:
            # It is back.
            self._link = replace(self._link, problem="")
        for file in new_videos(self._request.folder, self._sent, ended):
            # First noted: a video that the tracker cannot take is not offered again and again.
            self._sent.add(file.path)
            if "rows" in self._kept:
                self._kept.setdefault("videos", {})[file.path] = self._kept["rows"]
            name = f"videos/{Path(file.path).stem}"
            self._tracker.add_video(self._request.folder / file.path, name, self._feed.step)
            # Its row is not one of the feed's: who counts rows must know of it.
            self._save(now=True)
        if problems := self._feed.problems:
            self._link = replace(self._link, problem=problems[0])

    def _finish(self, outcome: str) -> None:
        while not self._try(self._pass_on, True) and self._waiting:
            # Whoever has started us sets the limit.
            self._save(now=True)
            time.sleep(1.0)
        files = model_files(self._request.folder)
        if files:
            self._try(self._tracker.add_model, files)
        self._save(now=True)
        while True:
            try:
                link = self._tracker.close(outcome)
            except TrackerProblem as error:
                self._link = replace(self._link, problem=str(error))
                self._save(now=True)
                if not error.passing:
                    return
                time.sleep(1.0)
            else:
                self._link = replace(link, problem=self._link.problem)
                self._save(now=True)
                return

    def _save(self, now: bool = False) -> None:
        """Write where we stand, when that has changed and was not written a moment ago."""
        progress = {
            **self._mark,
            "files": sorted(self._sent),
            "tracker": self._kept,
            "marks": self._marks,
        }
        state = (self._link, json.dumps(progress))
        due = now or time.monotonic() - self._saved_at >= _SAVE_SECONDS
        if state == self._saved or not due:
            return
        if "rows" in self._kept and time.monotonic() - self._marked_at >= _MARK_SECONDS:
            self._marks = [*self._marks[1 - _MOST_MARKS :], {"rows": self._kept["rows"], "feed": self._mark}]
            self._marked_at = time.monotonic()
        with contextlib.suppress(OSError):
            write_link(self._request.folder, self._link, progress)
            self._saved, self._saved_at = state, time.monotonic()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mosaic.tracking.process", description=__doc__)
    parser.add_argument("--parent", type=int, help="end when this process ends")
    parser.add_argument(
        "--look", action="store_true", help="only report, as JSON, whether Weights & Biases can be reached"
    )
    options = parser.parse_args(argv)
    if options.look:
        from mosaic.tracking.wandb import look

        print(json.dumps(asdict(look())))
        return 0
    parent = options.parent
    if parent is not None:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return 1
    # Training comes first; and a Ctrl-C in its terminal is not for us.
    os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = Orders(0)
    request = Request(**(orders.next(None) or {}))
    try:
        return Passing(request, orders).run()
    except MosaicError as error:
        print(error, file=sys.stderr)
        problem = str(error)
    except ImportError as error:
        traceback.print_exc()
        problem = (
            f"Tracking with {TITLES[request.tracker]} needs the optional set '{request.tracker}' "
            f"({first_line(error).rstrip('.')}): run `mosaic extras install {request.tracker}`."
        )
    except Exception as error:
        traceback.print_exc()
        problem = f"{TITLES[request.tracker]} has failed: {first_line(error)}"
    with contextlib.suppress(OSError):
        progress = read_progress(request.folder, request.tracker)
        link = read_link(request.folder, request.tracker) or TrackerLink(request.tracker)
        write_link(request.folder, replace(link, state=FAILED, problem=problem), progress)
    return 1


if __name__ == "__main__":
    sys.exit(main())
