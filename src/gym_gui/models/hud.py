"""The words beside the live picture."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gym_gui.models.form_choices import Requirement
from gym_gui.models.words import is_evaluation, number, sentence, start_phase, steps
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord
from mosaic.contract.extras import SET_WITH, install_advice
from mosaic.fastlane.grid import Metrics
from mosaic.fastlane.layout import IMPORTING, MAKING, START_PHASES, lacking_package
from mosaic.fastlane.reader import SlotStatus

_STARTS = {
    IMPORTING: ("Importing…", "The script is loading its libraries"),
    MAKING: ("Making the environments…", "The first picture appears with the first step"),
    "": ("The first picture is on its way.", ""),
}
_ROLES = {"live": "good", "waiting": "dim", "stale": "warn", "no picture": "warn", "ended": "dim"}


@dataclass(frozen=True)
class Hud:
    """What stands under the picture: numbers with their names, the evaluation, and whether it is live."""

    numbers: tuple[tuple[str, str], ...]
    batch: str
    state: str
    role: str


@dataclass(frozen=True)
class Absence:
    """What stands in place of a picture, and what to do about it."""

    title: str
    advice: str
    missing: Requirement | None = None
    """The optional set that would bring the picture."""


def hud_of(
    run: RunRecord,
    status: SlotStatus,
    metrics: Metrics | None,
    summary: EvalSummary | None = None,
    now: float | None = None,
) -> Hud:
    """The HUD of a run; `summary` is that of an evaluation.

    Return and speed are those of the run's headline, as everywhere: what comes with a picture is smoothed
    otherwise, and of the environments in it alone.
    """
    numbers: tuple[tuple[str, str], ...] = ()
    evaluates = is_evaluation(run)
    if metrics is not None and status.state != "waiting":
        mark = " (Eval)" if evaluates else ""
        numbers = (
            (f"reward{mark}", number(metrics.last_reward)),
            ("mean return", number(run.headline.get("mean_return"))),
            ("steps/s", steps(run.headline.get("sps"))),
        )
    word = "connected" if status.state == "live" else status.state
    if status.reason in START_PHASES:
        word = f"{status.reason} · {_seconds(run, now):.0f} s"
    return Hud(numbers, batch_line(summary) if evaluates else "", word, _ROLES.get(status.state, "dim"))


def batch_line(summary: EvalSummary | None) -> str:
    """The newest batch of an evaluation in one line."""
    if summary is None or not summary.batches:
        return "eval: the first batch is being played"
    batch = summary.batches[-1]
    return (
        f"eval batch {batch.batch:,} · {batch.episodes:,} episodes · mean {number(batch.mean)} ± "
        f"{number(batch.std)} · min {number(batch.min)} · max {number(batch.max)}"
    )


def absence_of(run: RunRecord, status: SlotStatus, now: float | None = None) -> Absence:
    """Why there is no picture, in words, with the next step."""
    if run.ended or status.state == "ended":
        return Absence(
            "The run has ended, so there is no live picture.",
            "Its videos are in Artifacts; Play steps through its policy.",
        )
    if run.status == "INIT":
        why = f" {sentence(run.reason)}." if run.reason else ""
        return Absence("The run has not begun yet.", f"The picture appears here as soon as it does.{why}")
    if run.status in ("HSHK", "RDY") and status.reason not in START_PHASES:
        return Absence("Starting…", f"Its supervisor is starting: {_seconds(run, now):.0f} s so far.")
    if not shows_frames(run):
        return Absence(
            "Live frames are off for this run.",
            "They cost nothing while nobody is watching: choose “grid” or “single” when you train again.",
        )
    if run.status == "PAUSE":
        return Absence("The run is paused.", "Resume it to continue the picture.")
    if status.state == "no picture" and (package := lacking_package(status.reason)):
        return _lacking(run, package)
    if status.state == "no picture":
        return Absence("This environment has no picture.", _sentence(status.reason))
    if status.state == "stale":
        return Absence("No new pictures are arriving.", _sentence(status.reason))
    title, doing = _STARTS[status.reason if status.reason in START_PHASES else start_phase(run)]
    said = f"{doing}: {_seconds(run, now):.0f} s so far" if doing else status.reason
    return Absence(title, _sentence(said))


def _seconds(run: RunRecord, now: float | None) -> float:
    """How long the run takes to start by now."""
    return max(0.0, (time.time() if now is None else now) - (run.started_at or run.submitted_at))


def _lacking(run: RunRecord, package: str) -> Absence:
    title = f"The picture needs the package '{package}', which is not installed."
    name = SET_WITH.get(package, "")
    if run.python is not None or not name:
        return Absence(title, f"{sentence(install_advice(package, run.python))}, then it appears by itself.")
    needs = Requirement(name, f"The picture of {run.worker_config.get('env_id')}")
    return Absence(title, "Once it is installed, the picture appears by itself.", needs)


def shows_frames(run: RunRecord) -> bool:
    """Whether the run was asked for live frames."""
    extras = run.worker_config.get("extras") or {}
    return extras.get("fastlane_video_mode", extras.get("video_mode")) != "off"


def _sentence(reason: str) -> str:
    return sentence(reason).rstrip(".") + "." if reason else ""


def staleness(status: SlotStatus) -> str:
    """What is said over a picture that does not move; empty while it does."""
    if status.state in ("live", "waiting"):
        return ""
    return sentence(status.reason or status.state)


def caption(shown: int, frames_per_second: float) -> str:
    """`8 environments · 30 frames/s`."""
    if not shown:
        return ""
    return f"{shown} environment{'s' * (shown > 1)} · {frames_per_second:.0f} frames/s"
