"""`compare`: groups of runs side by side, with their curves drawn in letters or dots."""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from mosaic.analytics import scales
from mosaic.analytics.report_data import Axis, Comparison, GroupCurve, MeasuredGroup, by_task, compare_runs
from mosaic.analytics.statistics import Interval
from mosaic.cli.live.board import Row
from mosaic.cli.output import console, note, print_json, say, table
from mosaic.cli.runs import choose_runs, connect
from mosaic.client.groups import defaults_for
from mosaic.contract import words

_COLOURS = ("bright_blue", "yellow", "green", "magenta", "cyan", "red", "bright_green", "bright_magenta")
_ROWS = 12
_LEAST_COLUMNS, _MOST_COLUMNS = 20, 110
_WIDE = 110
"""Columns from which speed and time have room beside the names of the runs."""
_MOST_TASKS = 6
_DIFFERS, _GAP = "what differs", 3
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def run_compare(args: argparse.Namespace) -> int:
    with connect(args) as client:
        runs = choose_runs(client, args.wanted, args)
    compared = compare_runs(runs, args.metric, args.group_by, defaults_for(runs))
    if args.json:
        print_json(comparison_json(compared))
        return 0
    console().print(_table(compared))
    for part in _differences(compared), *_plots(compared, args.x):
        if part is not None:
            say("")
            console().print(part)
    for problem in compared.notices:
        note(f"mosaic: {problem}")
    return 0


def comparison_json(compared: Comparison) -> dict[str, Any]:
    """All that is told of groups, for programs."""
    return {
        "metric": compared.metric,
        "groups": [
            {
                "label": group.label,
                "run_ids": [run.run_id for run in group.runs],
                "seeds": group.group.seeds,
                "final": _interval_json(group.final()),
                "iqm": _interval_json(group.final("iqm")),
                "finals": group.finals,
                "steps": group.of(lambda one: one.steps),
                "sps": group.of(lambda one: one.speed),
                "seconds": group.of(lambda one: one.seconds),
                "settings": {row.name: row.values[number] for row in compared.differ},
            }
            for number, group in enumerate(compared.groups)
        ],
        "problems": compared.problems,
    }


def _interval_json(found: Interval | None) -> dict[str, float] | None:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}


def letter(number: int) -> str:
    """`A` to `Z`, then `AA`: what a group is called in table and plot."""
    before = letter(number // 26 - 1) if number >= 26 else ""
    return before + chr(ord("A") + number % 26)


def _style(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _table(compared: Comparison) -> Table:
    final = "mean return" if "return" in compared.metric else compared.metric
    # What a narrow terminal has no room for beside the names of the runs.
    rest = ("steps/s", "time") if console().width >= _WIDE else ()
    numbers = (final, "95 % interval", "IQM", "steps", *rest)
    made = table("", "runs", "seeds", *numbers, "state", right=numbers, fold=("runs", "state"))
    for number, group in enumerate(compared.groups):
        found = group.final()
        made.add_row(
            Text(letter(number), style=f"bold {_style(number)}"),
            Text(group.label, overflow="fold"),
            words.seeds_text(group.group.seeds).removeprefix("seeds ").removeprefix("seed ") or words.NONE,
            words.number(found.value if found else None),
            _spread(group, found),
            words.number(_value(group.final("iqm"))),
            words.short_steps(group.of(lambda one: one.steps)),
            *((words.whole(group.of(lambda one: one.speed)), _time(group)) if rest else ()),
            _states(group),
        )
    return made


def _value(found: Interval | None) -> float | None:
    return None if found is None else found.value


def _spread(group: MeasuredGroup, found: Interval | None) -> str:
    """The interval; of one seed nothing is known."""
    if found is None or len(group.finals) < 2:
        return words.NONE
    return f"{words.number(found.low)} to {words.number(found.high)}"


def _time(group: MeasuredGroup) -> str:
    seconds = group.of(lambda one: one.seconds)
    return words.NONE if seconds is None else words.duration(seconds)


def _states(group: MeasuredGroup) -> Text:
    counts = Counter(Row(run).state for run in group.runs)
    parts = [
        (state if len(counts) == 1 else f"{count} {state}", words.style(state))
        for state, count in counts.items()
    ]
    made = Text()
    for place, (text, style) in enumerate(parts):
        made.append(", " if place else "")
        made.append(text, style=style)
    return made


def _differences(compared: Comparison) -> Table | None:
    if not compared.chosen:
        return None
    names = [letter(number) for number in range(len(compared.groups))]
    columns = zip(*(row.values for row in compared.chosen), strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    first = max(map(cell_len, (_DIFFERS, *(row.name for row in compared.chosen))))
    if first + sum(width + _GAP for width in widths) > console().width:
        return _values_and_groups(compared, names)
    made = table(_DIFFERS, *names, gap=_GAP)
    for number, column in enumerate(made.columns[1:]):
        column.header = Text(names[number], style=f"bold {_style(number)}")
    for row in compared.chosen:
        values = zip(row.values, row.defaults, strict=True)
        made.add_row(Text(row.name), *(Text(value, style="dim" if usual else "") for value, usual in values))
    return made


def _values_and_groups(compared: Comparison, names: Sequence[str]) -> Table:
    """For each setting its values, each with the letters of its groups: for what has no room side by side."""
    made = table(_DIFFERS, "values", gap=_GAP, fold=(_DIFFERS, "values"))
    for row in compared.chosen:
        whose: dict[tuple[str, bool], list[int]] = {}
        for number, (value, usual) in enumerate(zip(row.values, row.defaults, strict=True)):
            whose.setdefault((value, usual), []).append(number)
        told = Text()
        for (value, usual), numbers in whose.items():
            told.append("   " if told else "")
            told.append(value, style="dim" if usual else "")
            for number in numbers:
                told.append(f" {names[number]}", style=f"bold {_style(number)}")
        made.add_row(Text(row.name), told)
    return made


def _plots(compared: Comparison, axis: Axis) -> Iterator[Text]:
    numbers = {group.label: number for number, group in enumerate(compared.groups)}
    tasks = by_task(compared)
    for task, part in list(tasks.items())[:_MOST_TASKS]:
        lines = [
            (numbers[group.label], curve)
            for group in part.groups
            if (curve := group.curve(axis, bands=False)) is not None
        ]
        if lines:
            yield plot(f"{compared.metric}{f' on {task}' if len(tasks) > 1 else ''}", lines, axis)
    if len(tasks) > _MOST_TASKS:
        yield Text(f"and {len(tasks) - _MOST_TASKS} more environments", style="dim")


def plot(title: str, lines: Sequence[tuple[int, GroupCurve]], axis: Axis, unit: str = "") -> Text:
    """A chart in the terminal's colours; without them each line is made of its letter."""
    low, high = _ends([curve.value for _, curve in lines])
    left, right = _ends([curve.places for _, curve in lines])
    spacing, marks = scales.nice_ticks(low, high, 5)
    labels = dict(
        zip((_row(mark, low, high) for mark in marks), scales.value_ticks(marks, spacing), strict=True)
    )
    margin = max(map(len, labels.values()), default=0) + 1
    room = console().width - margin - len(unit or axis) - 3
    columns = max(_LEAST_COLUMNS, min(_MOST_COLUMNS, room))
    cells = _coloured(lines, columns, (low, high), (left, right))
    made = Text(no_wrap=True, overflow="crop")
    made.append(f"{' ' * margin} {title}\n", style="dim")
    for row in range(_ROWS):
        label = labels.get(row, "")
        made.append(f"{label:>{margin}}{'┤' if label else '│'}", style="dim")
        for column in range(columns):
            shown, number = cells.get((row, column), (" ", -1))
            made.append(shown, style=_style(number) if number >= 0 else "")
        made.append("\n")
    made.append(f"{' ' * margin}└{'─' * columns}\n", style="dim")
    made.append(f"{_under(left, right, axis, margin, columns)}  {unit or axis}", style="dim")
    return made


def _ends(arrays: Sequence[Any]) -> tuple[float, float]:
    low, high = min(float(one.min()) for one in arrays), max(float(one.max()) for one in arrays)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _row(value: float, low: float, high: float) -> int:
    return round((1 - (value - low) / (high - low)) * (_ROWS - 1))


def _coloured(
    lines: Sequence[tuple[int, GroupCurve]],
    columns: int,
    values: tuple[float, float],
    places: tuple[float, float],
) -> dict[tuple[int, int], tuple[str, int]]:
    """What stands in each cell, and of which group it is."""
    dotted = console().color_system is not None and (sys.stdout.encoding or "").lower().startswith("utf")
    across, down = (2, 4) if dotted else (1, 1)
    wide, tall = columns * across, _ROWS * down
    dots: dict[tuple[int, int], int] = {}
    owner: dict[tuple[int, int], int] = {}
    for number, curve in lines:
        before = None
        for place, value in zip(curve.places.tolist(), curve.value.tolist(), strict=True):
            x = round((place - places[0]) / (places[1] - places[0]) * (wide - 1))
            y = round((1 - (value - values[0]) / (values[1] - values[0])) * (tall - 1))
            for dot_x, dot_y in _between(before, (x, y)):
                cell = dot_y // down, dot_x // across
                if owner.get(cell) != number:
                    dots[cell] = 0
                owner[cell] = number
                dots[cell] |= _DOTS[dot_y % down][dot_x % across] if dotted else 1
            before = x, y
    return {
        cell: (chr(_BRAILLE + dots[cell]) if dotted else letter(number)[-1], number)
        for cell, number in owner.items()
    }


def _between(start: tuple[int, int] | None, end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots of a line, its start left out."""
    if start is None:
        yield end
        return
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    for step in range(1, steps + 1):
        share = step / steps
        yield round(start[0] + (end[0] - start[0]) * share), round(start[1] + (end[1] - start[1]) * share)


def _under(left: float, right: float, axis: Axis, margin: int, columns: int) -> str:
    """The words under the axis, as many as have room."""
    nice = scales.nice_steps if axis == "steps" else scales.nice_times
    spacing, marks = nice(left, right, max(2, columns // 14))
    named = scales.step_ticks(marks, spacing) if axis == "steps" else scales.time_ticks(marks, spacing)
    line = [" "] * (columns + 1)
    for mark, text in zip(marks, named, strict=True):
        at = math.floor((mark - left) / (right - left) * (columns - 1))
        at = max(0, min(at - len(text) // 2, columns - len(text)))
        if all(one == " " for one in line[max(0, at - 1) : at + len(text) + 1]):
            line[at : at + len(text)] = text
    return f"{' ' * margin} {''.join(line).rstrip()}"
