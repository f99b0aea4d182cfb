"""Learning curves as a figure for a paper or for slides (matplotlib, the set `plots`)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.analytics import scales
from mosaic.analytics.headline import EVALUATION_RETURN, TRAINING_RETURN
from mosaic.analytics.report_data import SMOOTH, Axis, Comparison, MeasuredGroup, Method, by_task, methods_of
from mosaic.contract import words
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import UserError
from mosaic.contract.extras import require_extra
from mosaic.contract.plain import plain_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4A2B", "#5A6270")
"""Okabe and Ito's, which colour-blind people tell apart, and two more; after these lines are dashed."""
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2)))
SUFFIXES = (".svg", ".png", ".pdf")
_NAMES = {TRAINING_RETURN: "Episodic return", EVALUATION_RETURN: "Episodic return of evaluation"}
_LONGEST_LABEL = 60
_MOST_TASKS = 16
_ROUND = 5
_LABELS_ACROSS = 60
"""Letters of a legend beside each other under one panel."""


@dataclass(frozen=True)
class FigureStyle:
    """How a figure is set. Sizes are in inches and points."""

    size: tuple[float, float]
    """Of one panel."""
    text: float
    line: float
    across: int
    """Panels beside each other."""


STYLES = {
    "paper": FigureStyle((3.4, 2.5), 8.5, 1.3, 3),
    "slides": FigureStyle((9.6, 5.2), 18.0, 2.6, 2),
}


def check_figure_path(path: Path) -> None:
    """Raise UserError when no figure can be written there, before anything is read."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"'{path}' does not end in {', '.join(SUFFIXES)}: a figure is one of these.")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise UserError(f"{path} cannot be written: it is a folder.")


def write_figure(
    compared: Comparison,
    path: Path,
    *,
    axis: Axis = "steps",
    statistic: str = "mean",
    smooth: float = SMOOTH,
    size: tuple[float, float] | None = None,
    title: str = "",
    style: str = "paper",
) -> None:
    """Write the curves of groups, a panel for each environment; `size` is that of the whole, in inches.

    The same runs give the same bytes.
    """
    check_figure_path(path)
    data = figure_bytes(
        compared,
        path.suffix.lower().removeprefix("."),
        axis=axis,
        statistic=statistic,
        smooth=smooth,
        size=size,
        title=title,
        style=style,
    )
    try:
        write_atomic(path, data)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error


def figure_bytes(
    compared: Comparison,
    kind: str,
    *,
    axis: Axis = "steps",
    statistic: str = "mean",
    smooth: float = SMOOTH,
    size: tuple[float, float] | None = None,
    title: str = "",
    style: str = "paper",
) -> bytes:
    """The same as a file in memory: `kind` is svg, png or pdf."""
    require_extra("plots", "A figure")
    import matplotlib
    from matplotlib.figure import Figure

    how = STYLES[style]
    tasks = by_task(compared)
    if not any(len(one.series) for group in compared.groups for one in group.members):
        raise UserError(f"None of these runs has measured {compared.metric} yet: there is nothing to draw.")
    if len(tasks) > _MOST_TASKS:
        raise UserError(
            f"A figure has {_MOST_TASKS} panels at most, and these are {len(tasks)} environments."
        )
    columns = min(how.across, len(tasks))
    rows = -(-len(tasks) // columns)
    methods = methods_of(compared)
    seeds = _seeds(compared.groups, methods)
    with matplotlib.rc_context(_settings(how)):
        figure = Figure(size or (how.size[0] * columns, how.size[1] * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).flat
        for number, (panel, (task, part)) in enumerate(zip(panels, tasks.items(), strict=False)):
            _draw(panel, part.groups, methods, seeds, axis, statistic, smooth)
            if len(tasks) > 1:
                panel.set_title(_shown(task))
            panel.set_xlabel({"steps": "Environment steps", "time": "Time"}[axis])
            if number % columns == 0:
                panel.set_ylabel(_shown(_NAMES.get(compared.metric, compared.metric)))
        for panel in list(figure.axes)[len(tasks) :]:
            panel.remove()
        _add_legend(figure, columns)
        if title:
            figure.suptitle(_shown(title))
        out = io.BytesIO()
        # Without the time of day the same figure has the same bytes.
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
        figure.savefig(out, format=kind, metadata=dated, dpi=300)
    return out.getvalue()


def _settings(how: FigureStyle) -> dict[Any, Any]:
    return {
        "font.family": "DejaVu Sans",
        "font.size": how.text,
        "axes.titlesize": how.text * 1.05,
        "axes.labelsize": how.text,
        "xtick.labelsize": how.text * 0.9,
        "ytick.labelsize": how.text * 0.9,
        "legend.fontsize": how.text * 0.85,
        "lines.linewidth": how.line,
        "axes.linewidth": how.line * 0.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": how.line * 0.4,
        "axes.axisbelow": True,
        # Names of others are no formulas.
        "text.parse_math": False,
        "text.usetex": False,
        "svg.hashsalt": "mosaic",
        "svg.fonttype": "path",
        # What publishers ask for: no bitmap fonts.
        "pdf.fonttype": 42,
    }


def _draw(
    panel: Axes,
    groups: Sequence[MeasuredGroup],
    methods: dict[str, Method],
    seeds: dict[int, str],
    axis: Axis,
    statistic: str,
    smooth: float,
) -> None:
    for group in groups:
        curve = group.curve(axis, statistic, smooth)
        if curve is None:
            continue
        number = methods[group.label].number
        colour, dash = COLOURS[number % len(COLOURS)], _DASHES[number // len(COLOURS) % len(_DASHES)]
        label = f"{_shown(methods[group.label].label)} ({seeds[number]})"
        panel.plot(curve.places, curve.value, color=colour, linestyle=dash, label=label)
        if curve.runs > 1:
            panel.fill_between(curve.places, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    low, high = panel.get_xlim()
    nice, named = (
        (scales.nice_steps, scales.step_ticks) if axis == "steps" else (scales.nice_times, scales.time_ticks)
    )
    spacing, marks = nice(max(0.0, low), high, _ROUND)
    panel.set_xticks(marks, named(marks, spacing))
    panel.set_xlim(low, high)


def _add_legend(figure: Figure, columns: int) -> None:
    """Under the panels, where it hides no line: each method once."""
    lines = dict[str, Any]()
    for panel in figure.axes:
        for line, label in zip(*panel.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    across = max(1, min(len(lines), columns * _LABELS_ACROSS // max(map(len, lines), default=1)))
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=across, frameon=False)


def _seeds(groups: Sequence[MeasuredGroup], methods: dict[str, Method]) -> dict[int, str]:
    """The seeds behind each method in words; how many, where that is not the same on all environments."""
    found: dict[int, list[list[int | None]]] = {}
    for group in groups:
        with_data = [one.seed for one in group.members if len(one.series)]
        found.setdefault(methods[group.label].number, []).append(with_data)
    told = {}
    for number, lists in found.items():
        texts = {words.seeds_text(seeds) for seeds in lists}
        counts = sorted({len(seeds) for seeds in lists})
        text = texts.pop() if len(texts) == 1 else ""
        many = f"{counts[0]}–{counts[-1]} runs" if len(counts) > 1 else words.count(counts[0], "run")
        told[number] = text if text and "…" not in text else many
    return told


def _shown(text: str) -> str:
    line = plain_line(text).encode("utf-8", "replace").decode()
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"
