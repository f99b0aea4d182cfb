"""The section of a report about several environments at once, by the conventions of rliable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.analytics import statistics
from mosaic.analytics.report_data import Comparison, GroupCurve, Method, by_task, methods_of
from mosaic.analytics.report_page import Line, Markup, el, figure, key, number_cell, strip
from mosaic.contract import words

_MOST_PROFILE = 6
_METRICS = (
    ("IQM", statistics.iqm),
    ("mean", statistics.mean),
    ("median", statistics.median),
    ("optimality gap", statistics.optimality_gap),
)


@dataclass(frozen=True)
class _Method:
    """A configuration on all environments: the scores of its runs, task by task."""

    number: int
    label: str
    scores: list[np.ndarray[Any, np.dtype[np.float64]]]


def _methods(compared: Comparison) -> tuple[list[str], list[_Method]]:
    """The scores of each method that has been tried on every environment, of which there are several."""
    tasks, known = by_task(compared), methods_of(compared)
    found: dict[Method, dict[str, list[float]]] = {}
    for task, part in tasks.items():
        for group in part.groups:
            found.setdefault(known[group.label], {}).setdefault(task, []).extend(group.finals)
    made = [
        _Method(one.number, one.label, [np.array(scores[task], np.float64) for task in tasks])
        for one, scores in found.items()
        if all(scores.get(task) for task in tasks)
    ]
    return list(tasks), made


References = Mapping[str, tuple[float, float]]
"""For environments the scores that count as 0 and as 1."""


def aggregates_section(compared: Comparison, references: References | None = None) -> Markup | None:
    tasks, methods = _methods(compared)
    if len(tasks) < 2 or len(methods) < 2:
        return None
    normal = [_Method(one.number, one.label, []) for one in methods]
    known = references if references and all(task in references for task in tasks) else {}
    for number, task in enumerate(tasks):
        every = np.concatenate([method.scores[number] for method in methods])
        low, high = known.get(task, (float(every.min()), float(every.max())))
        span = (high - low) or 1.0
        for method, made in zip(methods, normal, strict=True):
            made.scores.append((method.scores[number] - low) / span)
    parts = [
        el("h2", "Over all environments"),
        el(
            "p",
            f"Scores are normalised in each of the {len(tasks)} environments: {_ends(tasks, known)} "
            "Intervals are 95 % bootstrap intervals, stratified by environment, as rliable computes them. "
            "A lower optimality gap is better.",
            cls="note",
        ),
        _aggregate_table(normal),
    ]
    reached = [score for method in normal for task in method.scores for score in (task.min(), task.max())]
    thresholds = np.linspace(min(0.0, *reached), max(1.0, *reached), 101)
    lines = []
    for method in normal:
        made_band = statistics.performance_profile(method.scores, thresholds)
        curve = GroupCurve(thresholds, made_band.value, made_band.low, made_band.high, 2)
        lines.append(Line(method.number, method.label, curve))
    parts += [
        el("h3", "Performance profiles: the share of runs with a higher score"),
        figure(lines, "Performance profiles", "share of runs", "normalised score"),
    ]
    if len(methods) <= _MOST_PROFILE:
        parts += [el("h3", "Probability of improvement"), _improvements(methods)]
    return el("section", parts)


def _ends(tasks: Sequence[str], known: References) -> str:
    if not known:
        return "0 is the worst run of all configurations there, 1 the best."
    told = "; ".join(
        f"{task} {words.number(known[task][0])} and {words.number(known[task][1])}" for task in tasks
    )
    return f"0 and 1 are the references that were given ({told})."


def _aggregate_table(methods: Sequence[_Method]) -> Markup:
    rows = []
    for method in methods:
        cells = [el("td", key(method.number), method.label)]
        for _, statistic in _METRICS:
            found = statistics.interval(method.scores, statistic)
            told = f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
            cells.append(el("td", strip([], found, (0.0, 1.0), method.number, 2), told))
        rows.append(el("tr", cells))
    heads = [el("th", "configuration"), *(el("th", name) for name, _ in _METRICS)]
    return el("table", el("thead", el("tr", heads)), el("tbody", rows))


def _improvements(methods: Sequence[_Method]) -> Markup:
    rows = []
    for one in methods:
        for other in methods:
            if one is other:
                continue
            found = statistics.probability_of_improvement(one.scores, other.scores)
            rows.append(
                el(
                    "tr",
                    el("td", key(one.number), one.label),
                    el("td", key(other.number), other.label),
                    el("td", strip([], found, (0.0, 1.0), one.number, 2), cls="wide"),
                    number_cell(f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"),
                )
            )
    heads = [
        el("th", "a run of"),
        el("th", "is better than one of"),
        el("th", "with the probability", colspan=2),
    ]
    return el("table", el("thead", el("tr", heads)), el("tbody", rows))
