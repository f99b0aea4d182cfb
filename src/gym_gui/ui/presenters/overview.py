"""The numbers on top of a run's page, and what is said of a run that has none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from gym_gui.models import words
from gym_gui.models.filters import elapsed
from gym_gui.models.words import is_evaluation
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord

_SHARES_TOLD = 3


@dataclass(frozen=True)
class Headline:
    """One number: what it is, how large, and what else is to be said of it."""

    name: str
    value: str
    detail: str = ""


def headlines(
    run: RunRecord,
    per_step: float | None = None,
    summary: EvalSummary | None = None,
    now: float | None = None,
) -> list[Headline]:
    """The five numbers of a run. `per_step` is the reward of a step, `summary` that of an evaluation."""
    now = time.time() if now is None else now
    if is_evaluation(run):
        return [*_scores(run, summary), _speed(run), _time(run, now)]
    return [_return(run, per_step), _speed(run), _progress(run), _time(run, now), _shares(run)]


def _return(run: RunRecord, per_step: float | None) -> Headline:
    head = run.headline
    episodes = head.get("episodes") or 0
    told = []
    if head.get("last_return") is not None:
        told.append(f"last {words.number(head['last_return'])}")
    if episodes:
        told.append(f"{words.steps(episodes)} episode{'s' * (episodes != 1)}")
    if per_step is not None:
        told.append(f"{words.number(per_step)} per step")
    nothing = "no episode was recorded" if run.ended else "no episode has ended yet"
    return Headline("Mean return", words.number(head.get("mean_return")), " · ".join(told) or nothing)


def _speed(run: RunRecord) -> Headline:
    rate = run.headline.get("sps")
    if rate is None:
        return Headline("Steps per second", words.NONE, "not measured yet" if not run.ended else "")
    per_hour = f"{words.short_steps(rate * 3600)} an hour"
    return Headline("Steps per second", words.steps(rate), per_hour if not run.ended else "at the end")


def _progress(run: RunRecord) -> Headline:
    head = run.headline
    step, total = head.get("step"), head.get("total_steps")
    if not step and not total:
        return Headline("Progress", words.NONE, "" if run.ended else words.start_phase(run) or "not begun")
    of = f"{words.steps(step)} of {words.steps(total)} steps" if total else f"{words.steps(step)} steps"
    stage = head.get("curriculum")
    if stage:
        of = f"stage {stage['stage']} of {stage['stages']} · {words.short_steps(step)} steps"
    return Headline("Progress", words.percent(head.get("progress")), of)


def _time(run: RunRecord, now: float) -> Headline:
    spent = elapsed(run, now)
    if run.ended:
        ended = f"ended {words.clock(run.ended_at, now)}" if run.ended_at else ""
        return Headline("Took", words.duration(spent), ended)
    left = seconds_left(run)
    if left is not None:
        return Headline("Time left", words.duration(left), f"ends about {words.clock(now + left, now)}")
    if spent is None:
        return Headline("Waiting since", words.clock(run.submitted_at, now), words.ago(run.submitted_at, now))
    since = f"since {words.clock(run.started_at, now)}" if run.started_at else ""
    return Headline("Running for" if run.status == "EXEC" else "Ran for", words.duration(spent), since)


def _shares(run: RunRecord) -> Headline:
    shares: Mapping[str, float] = run.headline.get("time_shares") or {}
    ordered = sorted(shares.items(), key=lambda part: -part[1])
    if not ordered:
        return Headline("Where time goes", words.NONE, "not measured")
    (first, most), *rest = ordered
    told = [first, *(f"{name} {share * 100:.0f} %" for name, share in rest[: _SHARES_TOLD - 1])]
    return Headline("Where time goes", f"{most * 100:.0f} %", " · ".join(told))


def _scores(run: RunRecord, summary: EvalSummary | None) -> list[Headline]:
    if summary is None:
        waits = "after the first batch" if not run.ended else ""
        return [Headline(name, words.NONE, waits) for name in ("Mean return", "95 % interval", "Episodes")]
    overall, target = summary.overall, summary.target_episodes
    low, high = overall.interval
    of = f"of {words.steps(target)}" if target else "until it is stopped"
    batches = f"{of} · batch {words.steps(overall.batch)}"
    number = words.number
    spread = f"± {number(overall.std)} · {number(overall.min)} to {number(overall.max)}"
    middle = f"middle half {number(overall.iqm)} · median {number(overall.median)}"
    return [
        Headline("Mean return", number(overall.mean), spread),
        Headline("95 % interval of it", f"{number(low)} – {number(high)}", middle),
        Headline("Episodes", words.steps(overall.episodes), batches),
    ]


def seconds_left(run: RunRecord) -> float | None:
    """How long it will take at the present speed; None when that cannot be said."""
    step, total, rate = (run.headline.get(name) for name in ("step", "total_steps", "sps"))
    if run.status != "EXEC" or not total or not rate or step is None or is_evaluation(run):
        return None
    return max(0.0, float((total - step) / rate))


def notice(run: RunRecord) -> str:
    """The next step of a run that waits, is paused or went wrong; why it is so stands in the header."""
    if run.status == "INIT":
        return "It starts by itself as soon as resources are free."
    if run.status == "PAUSE":
        return "It keeps its reserved resources. Resume continues it."
    if run.status == "FAULT" or run.outcome == "failed":
        return "Its last error output is in Logs."
    if run.outcome == "timed_out":
        return "Resume continues from its newest checkpoint, with a new time limit."
    return ""
