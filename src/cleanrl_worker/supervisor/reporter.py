"""What a supervisor tells of its run: heartbeats with the newest numbers, the manifest and the last word."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.modes import POLICY_EVAL
from cleanrl_worker.config.scripts import OWN_BUDGET, Script
from cleanrl_worker.config.shell_scripts import UNKNOWN_TIMESTEPS
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from cleanrl_worker.supervisor.manifest import write_manifest
from cleanrl_worker.supervisor.stalls import STALLED
from mosaic.analytics.eval_summary import FILE_NAME, EvalSummary, read_eval_summary
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.headline import EVALUATING, STARTING, TRAINING, HeadlineTracker
from mosaic.contract.atomic import drop_spare, insist, is_full, keep_spare
from mosaic.contract.errors import StorageError
from mosaic.contract.events import EventKind
from mosaic.contract.paths import RunPaths
from mosaic.contract.phases import WAITING_FOR_SPACE, is_waiting, read_phase, set_waiting
from mosaic.fastlane.layout import START_PHASES
from mosaic.worker.causes import last_lines
from mosaic.worker.telemetry import LifecycleEmitter

if TYPE_CHECKING:
    from cleanrl_worker.curriculum.stage_progress import StageProgress
    from mosaic.worker.link import TrainerLink

HEARTBEAT_SECONDS = 30.0
NEWS_SECONDS = 1.9
"""Heartbeats with news come every two seconds; the first of a run, which somebody watches, every second."""
FIRST_NEWS_SECONDS = 0.9
_FIRST_BEATS = 9
START_SECONDS = 0.1
"""While it starts, so often a run is looked at for what it does: the first picture is worth waiting for."""
_STDERR_LINES = 20


def complain(text: str) -> None:
    """Tell on stderr, which may be on the same full disk, what could not be written."""
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())


class Reporter:
    """Writes one run's events and manifest; with a line to the daemon it nudges that to read them."""

    def __init__(
        self,
        config: CleanRLWorkerConfig,
        paths: RunPaths,
        script: Script,
        hurried: Callable[[], bool],
        phase: Callable[[], str] = str,
    ) -> None:
        """`phase` tells what the training process does before there are numbers; empty if unknown.

        On a full disk the start and the end of the run wait for space, unless `hurried` says not to.
        """
        self._config = config
        self._paths = paths
        self._script = script
        self._hurried = hurried
        self.status = ""
        """How the run ended, once that was told."""
        self._emitter = LifecycleEmitter(config.run_id, paths.events, self._may_wait)
        keep_spare(paths.manifest)
        shell = script.kind == "shell"
        unknown = config.total_timesteps == (UNKNOWN_TIMESTEPS if shell else OWN_BUDGET)
        counts = script.kind != "mode" and not unknown
        # Each training of a shell script begins at step 0, in a folder of its own.
        self._tracker = HeadlineTracker(config.total_timesteps if counts else None, add_up=shell)
        self._reader = EventReader(paths.run_dir)
        schedule = config.schedule()
        self._stages: StageProgress | None = None
        if schedule is not None:
            # Few runs have one, so what follows it is imported for them only.
            from cleanrl_worker.curriculum.stage_progress import follow_stages

            self._stages = follow_stages(schedule, config.total_timesteps)
        self._started_at = time.time()
        self._began = time.monotonic()
        # A shell script does what it likes before it trains, and says so itself.
        self._phase = str if shell else phase
        self._told: dict[str, Any] = {}
        self._told_at = 0.0
        self._beats = 0
        self._starts = True
        self._old_numbers: tuple[int, int] | None = None
        self._saved = paths.full_checkpoints()[-1:]
        self._evaluation = EvalProgress(paths.run_dir) if config.mode == POLICY_EVAL else None
        self.line: TrainerLink | None = None
        self.look_for_stall: Callable[[bool], dict[str, Any] | None] = lambda paused: None
        """Tells what a training process does that takes no step any more."""
        self._stall: dict[str, Any] | None = None
        self.look_at_trackers: Callable[[], dict[str, str]] = dict
        """Tells what is wrong with the trackers of the run, by their names."""

    def started(self, payload: Mapping[str, Any]) -> None:
        self._emitter.say(EventKind.RUN_STARTED, {**payload, "phase": self._phase() or STARTING})
        self._nudge()

    def beat(self, paused: bool = False, at_once: bool = False) -> float | None:
        """A heartbeat when there is something new, or when the last one is long ago.

        Gives how soon to call again when that is sooner than usual, as it is while the run starts.
        """
        if self._starts and not paused:
            phase = self._phase()
            self._starts = phase in START_PHASES
            at_once = at_once or phase not in ("", self._told.get("phase"))
        before, self._stall = self._stall, self.look_for_stall(paused)
        at_once = at_once or (self._stall is None) != (before is None)
        self._beat(paused, at_once)
        return START_SECONDS if self._starts else None

    def _beat(self, paused: bool, at_once: bool) -> None:
        news = FIRST_NEWS_SECONDS if self._beats < _FIRST_BEATS else NEWS_SECONDS
        if not at_once and time.monotonic() - self._told_at < news:
            return
        saved = self._tell_checkpoint()
        headline = self._headline()
        if paused:
            headline["phase"] = "paused"
        elif is_waiting(self._paths.run_dir):
            headline["phase"] = WAITING_FOR_SPACE
        due = news if headline != self._told else HEARTBEAT_SECONDS
        beats = at_once or time.monotonic() - self._told_at >= due
        if beats:
            self._tell_headline(headline)
        if beats or saved:
            # Also when nothing could be written: that we live is worth a call.
            self._nudge()

    def ended(self, status: str, code: int, cause: str | None = None) -> int:
        """Write the manifest and the last event; gives the exit code of the supervisor."""
        self._tell_checkpoint()
        # What one did that was ended is worth knowing; one that came to its end went on after all.
        self._stall = None if status == "completed" else self._stall
        headline = self._headline()
        # A training process that was killed while it waited could not take this back.
        set_waiting(self._paths.run_dir, False)
        ended_at = time.time()
        result = {
            "status": status,
            "exit_code": code,
            "cause": cause,
            "started_at": self._started_at,
            "ended_at": ended_at,
            "duration_seconds": round(time.monotonic() - self._began, 3),
            "headline": headline,
            **({"curriculum": self._stages.history()} if self._stages is not None else {}),
            **({"evaluation": self._evaluation.manifest()} if self._evaluation is not None else {}),
        }
        payload: dict[str, Any] = {"exit_code": code, "headline": headline}
        try:
            payload["manifest"] = insist(
                lambda: write_manifest(self._config, self._paths, result),
                lambda error: is_full(error) and self._may_wait(),
            )
        except OSError as error:
            trouble = f"the manifest {self._paths.manifest} cannot be written: {error.strerror}"
            if status == "completed":
                status, code, cause = "failed", 1, trouble
            elif status == "failed":
                # A full disk is often what the script died of, and takes its last words too.
                cause = f"{cause}; {trouble}"
        if status == "failed":
            said = last_lines(self._paths.stderr)[-_STDERR_LINES:]
            payload |= {"exit_code": code, "cause": cause, "stderr": said}
        self._say_last(status, payload)
        self.status = status
        drop_spare(self._paths.manifest)
        return code

    def _write_running_manifest(self, headline: dict[str, Any]) -> None:
        """An evaluation is worth reading before it ends: it may go on until it is cancelled."""
        assert self._evaluation is not None
        result = {
            "status": "running",
            "started_at": self._started_at,
            "headline": headline,
            "evaluation": self._evaluation.manifest(),
        }
        try:
            write_manifest(self._config, self._paths, result)
        except OSError as error:
            complain(f"The manifest {self._paths.manifest} cannot be written: {error.strerror}")

    def _headline(self) -> dict[str, Any]:
        """The newest numbers, with what the training process tells by files in the run's folder."""
        chunks = self._reader.poll()
        self._tracker.update(chunks)
        headline = self._tracker.headline().as_json()
        if self._stages is not None:
            self._stages.update(chunks)
            headline["curriculum"] = self._stages.as_json(headline["step"])
            if headline["phase"] == TRAINING:
                headline["phase"] = self._stages.phase()
        if self._evaluation is not None:
            headline |= self._evaluation.headline()
        numbers = headline["step"], headline["episodes"]
        if self._old_numbers is None:
            self._old_numbers = numbers
        # A run that goes on has its old numbers while it starts; with new ones it has started.
        self._starts = self._starts and numbers == self._old_numbers
        if self._starts or headline["phase"] == STARTING:
            headline["phase"] = self._phase() or headline["phase"]
        if self._stall is not None:
            headline |= {"phase": STALLED, "stall": self._stall}
        if trouble := self.look_at_trackers():
            headline["trackers"] = trouble
        phase = read_phase(self._paths.run_dir, self._script.head.phases)
        return headline | ({"script_phase": phase.as_json()} if phase else {})

    def _tell_headline(self, headline: dict[str, Any]) -> None:
        self._told_at = time.monotonic()
        if self._emitter.heartbeat(headline) is None:
            # A full disk: the next heartbeat may find room again.
            return
        self._told = headline
        self._beats += 1
        if self._evaluation is not None and self._evaluation.take_news():
            self._write_running_manifest(headline)

    def _tell_checkpoint(self) -> bool:
        """Tell of a checkpoint that has appeared since the last look; whether that was done."""
        newest = self._paths.full_checkpoints()[-1:]
        if not newest or newest == self._saved:
            return False
        step = int(newest[0].stem.removeprefix("step-"))
        saved = {"path": str(newest[0]), "step": step}
        if self._emitter.try_to_say(EventKind.CHECKPOINT_SAVED, saved) is None:
            return False
        self._saved = newest
        return True

    def _may_wait(self) -> bool:
        """The disk is full: say so, now and then, and whether there is time to wait."""
        due = time.monotonic() - self._told_at >= HEARTBEAT_SECONDS
        if due or self._told.get("phase") != WAITING_FOR_SPACE:
            self._tell_headline({**self._told, "phase": WAITING_FOR_SPACE})
            self._nudge()
        return not self._hurried()

    def _say_last(self, status: str, payload: dict[str, Any]) -> None:
        try:
            self._emitter.say(EventKind(f"run_{status}"), payload)
        except OSError as error:
            reason = payload.get("cause") or f"the run was {status}"
            raise StorageError(
                f"{self._paths.events} cannot be written: {error.strerror}; {reason}."
            ) from error

    def _nudge(self) -> None:
        if self.line is not None:
            self.line.heartbeat(self._emitter.last_seq)


class EvalProgress:
    """The summary of one run, read again when it has changed."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._seen: tuple[int, int] | None = None
        self._summary: EvalSummary | None = None
        self._has_news = False

    def _look(self) -> None:
        with contextlib.suppress(OSError, StorageError):
            about = os.stat(self._run_dir / FILE_NAME)
            seen = about.st_ino, about.st_mtime_ns
            if seen != self._seen:
                self._summary = read_eval_summary(self._run_dir)
                self._seen, self._has_news = seen, True

    def take_news(self) -> bool:
        """Whether a batch has ended since this was last asked."""
        news, self._has_news = self._has_news, False
        return news

    def headline(self) -> dict[str, Any]:
        """What it adds to the run's headline; steps are those that were played."""
        self._look()
        if self._summary is None:
            return {}
        overall, target = self._summary.overall, self._summary.target_episodes
        newest = self._summary.batches[-1].as_json()
        seconds = overall.duration_seconds
        return {
            "step": overall.steps,
            "sps": overall.steps / seconds if seconds else None,
            "mean_return": overall.as_json()["mean"],
            "episodes": overall.episodes,
            "progress": min(1.0, overall.episodes / target) if target else None,
            "phase": EVALUATING,
            "evaluation": {**newest, "target_episodes": target},
        }

    def manifest(self) -> dict[str, Any] | None:
        """What the manifest says of it: all episodes together, the newest batch, and what was played."""
        if self._summary is None:
            return None
        return {
            "overall": self._summary.overall.as_json(),
            "newest_batch": self._summary.batches[-1].as_json(),
            "policy": self._summary.policy,
            "summary": str(self._run_dir / FILE_NAME),
        }
