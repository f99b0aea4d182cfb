"""What runs came to as one page that needs nothing beside it, to be read, printed and sent."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic import __version__
from mosaic.analytics import statistics
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.analytics.report_aggregates import References, aggregates_section
from mosaic.analytics.report_data import (
    Comparison,
    MeasuredGroup,
    Method,
    Progress,
    by_task,
    compare_runs,
    methods_of,
)
from mosaic.analytics.report_facts import (
    commands_section,
    notes_section,
    origin_section,
    problems_section,
    run_label,
    runs_section,
    settings_section,
)
from mosaic.analytics.report_frames import Film, films_of
from mosaic.analytics.report_page import (
    EVALUATED,
    STYLE,
    Line,
    Markup,
    el,
    figure,
    key,
    number_cell,
    strip,
    strip_axis,
)
from mosaic.client.groups import Defaults
from mosaic.client.records import RunRecord
from mosaic.contract import words
from mosaic.contract.atomic import write_atomic
from mosaic.contract.capabilities import EVALUATES
from mosaic.contract.errors import MosaicError, UserError

if TYPE_CHECKING:
    from mosaic.client.client import Client

_LEAST_FOR_IQM = 4
"""Seeds from which the interquartile mean is another one than the mean."""
_MOST_NAMED = 4


def evaluations_of(client: Client, runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The evaluations of policies of these runs, the oldest first."""
    folders = [f"{run.run_dir.rstrip('/')}/" for run in runs]
    found = client.runs(filter=f"mode={EVALUATES}")
    return [run for run in reversed(found) if any(_policy(run).startswith(folder) for folder in folders)]


def _policy(run: RunRecord) -> str:
    return str((run.worker_config.get("extras") or {}).get("policy_path") or "")


def write_report(
    runs: Sequence[RunRecord],
    path: Path,
    *,
    title: str = "",
    metric: str | None = None,
    by: str = "config",
    evaluations: Sequence[RunRecord] = (),
    defaults: Defaults = None,
    references: References | None = None,
    progress: Progress = lambda done, total, what: None,
) -> None:
    """Write the report of some runs, whole or not at all. It reads many files: not in a window's thread."""
    check_report_path(path)
    page = report_html(
        runs,
        title=title,
        metric=metric,
        by=by,
        evaluations=evaluations,
        defaults=defaults,
        references=references,
        progress=progress,
    )
    try:
        write_atomic(path, page.encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error


def check_report_path(path: Path) -> None:
    """Raise UserError when no report can be written there, before anything is read."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"'{path}' does not end in .html, the only kind of report there is.")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise UserError(f"{path} cannot be written: it is a folder.")


def report_html(
    runs: Sequence[RunRecord],
    *,
    title: str = "",
    metric: str | None = None,
    by: str = "config",
    evaluations: Sequence[RunRecord] = (),
    defaults: Defaults = None,
    references: References | None = None,
    progress: Progress = lambda done, total, what: None,
) -> str:
    """The page of `write_report` as a text."""
    trained = [run for run in runs if run.mode != EVALUATES] or list(runs)
    compared = compare_runs(trained, metric, by, defaults, progress)
    played = {run.run_id: run for run in (*runs, *evaluations) if run.mode == EVALUATES}
    judged = [one for run in played.values() if (one := _judged(run, runs)) is not None]
    films = films_of([*trained, *played.values()], progress)
    title = title or _title(compared)
    body = (
        _head(title, trained, compared),
        _results(compared, defaults),
        aggregates_section(compared, references),
        settings_section(compared, defaults),
        _evaluations(judged),
        _frames(films),
        origin_section(trained),
        problems_section(runs, compared, [film.problem for film in films if film.problem]),
        notes_section(runs),
        commands_section(compared),
        runs_section(runs),
        el("footer", f"Made by MOSAIC {__version__} on {words.moment(time.time())}."),
    )
    hashed = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        Markup('<meta charset="utf-8">'),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name_="referrer", content="no-referrer"),
        el("title", title),
        Markup(f"<style>{STYLE}</style>"),
    )
    return f"<!DOCTYPE html>\n{el('html', head, el('body', el('main', body)), lang='en')}\n"


def _title(compared: Comparison) -> str:
    if len(compared.groups) == 1:
        return compared.groups[0].label or "A run"
    runs = [run for group in compared.groups for run in group.runs]
    algos = dict.fromkeys(Path(str(run.worker_config.get("algo"))).name for run in runs)
    return f"{_listed_names(list(algos))} on {_listed_names(list(by_task(compared)))}"


def _listed_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (
        f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    )


def _head(title: str, runs: Sequence[RunRecord], compared: Comparison) -> Markup:
    first, last = min(run.submitted_at for run in runs), max(run.submitted_at for run in runs)
    days = [time.strftime("%Y-%m-%d", time.localtime(at)) for at in (first, last)]
    when = days[0] if days[0] == days[1] else f"{days[0]} to {days[1]}"
    live = sum(not run.ended for run in runs)
    lead = [
        words.count(len(runs), "run"),
        words.count(len(compared.groups), "configuration"),
        words.count(len(by_task(compared)), "environment"),
        when,
        *([f"{live} still running: these numbers are preliminary"] if live else []),
    ]
    tags = sorted({tag for run in runs for tag in run.tags})
    return el(
        "header",
        el("h1", title),
        el("p", " · ".join(lead), cls="lead"),
        el("p", [el("span", tag, cls="tag") for tag in tags]) if tags else None,
    )


def _results(compared: Comparison, defaults: Defaults) -> Markup:
    methods = methods_of(compared)
    sections: list[Markup | None] = [el("h2", "Learning curves and final results")]
    tasks = by_task(compared)
    most = 0
    for task, part in tasks.items():
        sections.append(el("h3", task) if len(tasks) > 1 else None)
        lines = [line for group in part.groups if (line := _line(group, methods[group.label])) is not None]
        most = max([most, *(line.curve.runs for line in lines)])
        if lines:
            sections.append(figure(lines, f"{compared.metric} on {task}", compared.metric, "steps"))
        else:
            sections.append(el("p", f"No run has measured {compared.metric} yet.", cls="note"))
        sections.append(_finals(part, methods))
    sections.append(el("p", _how_made(compared, most), cls="note"))
    if EVALUATED in compared.names and compared.metric != EVALUATED:
        sections.append(_while_training(compared, defaults))
    return el("section", sections)


def _line(group: MeasuredGroup, method: Method) -> Line | None:
    curve = group.curve()
    if curve is None:
        return None
    beside = group.curve(statistic="iqm", bands=False) if curve.runs >= _LEAST_FOR_IQM else None
    return Line(method.number, method.label, curve, beside)


def _how_made(compared: Comparison, most: int) -> str:
    told = ["Lines are smoothed over 5 % of the axis."]
    if most > 1:
        told = [
            "Lines are the mean over seeds, smoothed over 5 % of the axis; bands are its 95 % bootstrap "
            f"interval (whole runs resampled {statistics.RESAMPLES:,} times)."
        ]
    if most >= _LEAST_FOR_IQM:
        told.append("Thin dashed lines are the interquartile mean (IQM).")
    what = "100 episodes" if "return" in compared.metric else "tenth of its points"
    told.append(
        f"A final result is the mean of a run's last {what}; a point is a seed, the bar their mean, "
        "the shade its 95 % bootstrap interval."
    )
    return " ".join(told)


def _finals(part: Comparison, methods: Mapping[str, Method]) -> Markup | None:
    known = [value for group in part.groups for value in group.finals]
    if not known:
        return None
    ends = min(known), max(known)
    rows = []
    for group in part.groups:
        found, iqm = group.final(), group.final("iqm")
        method = methods[group.label]
        seeds = words.seeds_text(group.group.seeds).removeprefix("seeds ").removeprefix("seed ")
        seconds = group.of(lambda one: one.seconds)
        rows.append(
            el(
                "tr",
                el("td", key(method.number), method.label),
                el("td", strip(group.finals, found, ends, method.number, len(group.finals)), cls="wide"),
                number_cell(words.number(found.value if found else None)),
                number_cell(_interval(found) if len(group.finals) > 1 else words.NONE),
                number_cell(words.number(iqm.value if iqm else None)),
                number_cell(seeds or words.NONE),
                number_cell(words.short_steps(group.of(lambda one: one.steps))),
                number_cell(words.whole(group.of(lambda one: one.speed))),
                number_cell(words.NONE if seconds is None else words.duration(seconds)),
            )
        )
    axis = el("tr", el("td"), el("td", strip_axis(ends), cls="wide"), cls="axis")
    named = ("mean", "95 % interval", "IQM", "seeds", "steps", "steps/s", "time")
    heads = [
        el("th", "configuration"),
        el("th", "final result"),
        *(el("th", one, cls="num") for one in named),
    ]
    return el("table", el("thead", el("tr", heads)), el("tbody", rows, axis))


def _interval(found: statistics.Interval | None) -> str:
    return words.NONE if found is None else f"{words.number(found.low)} to {words.number(found.high)}"


def _while_training(compared: Comparison, defaults: Defaults) -> Markup | None:
    """Evaluations that runs made of themselves while they trained; the one at the end makes no curve."""
    runs = list({run.run_id: run for group in compared.groups for run in group.runs}.values())
    judged = compare_runs(runs, EVALUATED, compared.by, defaults)
    methods = methods_of(judged)
    parts: list[Markup] = [el("h3", "Evaluations while training")]
    for task, part in by_task(judged).items():
        lines = [
            line
            for group in part.groups
            if any(len(one.series) > 1 for one in group.members)
            if (line := _line(group, methods[group.label])) is not None
        ]
        if lines:
            parts.append(figure(lines, f"{EVALUATED} on {task}", EVALUATED, "steps"))
    return el("section", parts) if len(parts) > 1 else None


@dataclass(frozen=True)
class _Judged:
    """An evaluation, and the run of ours whose policy it played."""

    run: RunRecord
    of: str
    run_id: str
    summary: EvalSummary


def _judged(run: RunRecord, runs: Sequence[RunRecord]) -> _Judged | None:
    try:
        summary = read_eval_summary(Path(run.run_dir))
    except MosaicError:
        return None
    if summary is None:
        return None
    policy = str(summary.policy.get("path") or _policy(run))
    trained = next((one for one in runs if policy.startswith(f"{one.run_dir.rstrip('/')}/")), None)
    of = Path(policy).name if trained is None else run_label(trained)
    return _Judged(run, of, "" if trained is None else trained.run_id, summary)


def _evaluations(judged: Sequence[_Judged]) -> Markup | None:
    if not judged:
        return None
    rows, notes = [], list[str]()
    for one in judged:
        scores, policy = one.summary.overall, one.summary.policy
        notes += [str(note) for note in policy.get("notes") or () if str(note) not in notes]
        step = policy.get("step")
        rows.append(
            el(
                "tr",
                el("td", one.of, " ", el("span", one.run_id, cls="note")),
                el("td", str(policy.get("env_id") or words.NONE)),
                number_cell(words.whole(step) if isinstance(step, int | float) else words.NONE),
                number_cell(words.whole(scores.episodes)),
                number_cell(words.number(scores.mean)),
                number_cell(f"{words.number(scores.interval[0])} to {words.number(scores.interval[1])}"),
                number_cell(words.number(scores.iqm)),
                number_cell(f"{words.number(scores.min)} to {words.number(scores.max)}"),
                el("td", "sampled" if policy.get("deterministic") is False else "best known"),
            )
        )
    named = ("step", "episodes", "mean", "95 % interval", "IQM", "minimum to maximum")
    heads = [el("th", "policy of"), el("th", "environment"), *(el("th", one, cls="num") for one in named)]
    return el(
        "section",
        el("h2", "Evaluations"),
        el("table", el("thead", el("tr", heads, el("th", "actions"))), el("tbody", rows)),
        [el("p", note, cls="note") for note in notes],
    )


def _frames(films: Sequence[Film]) -> Markup | None:
    shown = [film for film in films if film.frames]
    if not shown:
        return None
    return el(
        "section",
        el("h2", "What it looks like"),
        [
            el(
                "figure",
                el(
                    "div",
                    [
                        el(
                            "img",
                            src=f"data:image/png;base64,{base64.b64encode(data).decode()}",
                            alt=f"{film.label}, {at}",
                        )
                        for at, data in film.frames
                    ],
                    cls="frames",
                ),
                el("figcaption", f"{film.label}: {', '.join(at for at, _ in film.frames)} into the film"),
            )
            for film in shown
        ],
    )
