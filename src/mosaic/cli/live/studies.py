"""How a study is shown in a terminal: what it came to, what matters, the best over trials, and the trials."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mosaic.cli.output import facts, table
from mosaic.client import RunRecord
from mosaic.contract import words
from mosaic.sweeps.population import lineage
from mosaic.sweeps.study import COMPLETE, ENDED, FAILED, PRUNED, RUNNING, Study, Trial, value_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_BAR = 24
_STYLES = {COMPLETE: "green", PRUNED: "yellow", FAILED: "red", RUNNING: "bold cyan"}


def panel(run: RunRecord, study: Study) -> RenderableType:
    from rich.console import Group

    line = lineage(study)
    if line is not None and line.pieces:
        from mosaic.cli.live.lineage import lineage_table

        return Group(*head(run, study), "", lineage_table(line))
    return Group(*head(run, study), "", trials(study, 10, newest=True))


def sentence(one: Trial, study: Study) -> str:
    came = one.reason if one.state != COMPLETE else ", ".join(map(words.number, one.values))
    best = study.best
    star = "  (best so far)" if best is not None and best.number == one.number else ""
    return f"trial {one.number} {one.state}: {came}   {params_text(one)}{star}"


def head(run: RunRecord | None, study: Study) -> list[RenderableType]:
    from rich.text import Text

    counts = [(state, len(study.with_state(state))) for state in (COMPLETE, PRUNED, FAILED, RUNNING)]
    told = ", ".join(f"{count} {state}" for state, count in counts if count)
    ended = len(study.with_state(*ENDED))
    total = f" of {study.wanted}" if study.wanted else ""
    best = study.best
    title = Text(run.run_name if run else study.name, style="bold")
    rows: list[tuple[str, str | Text | None]] = [
        ("sweep", run.run_id if run else None),
        ("state", f"{words.state(run)}{f': {run.reason}' if run.reason else ''}" if run else None),
        ("trials", f"{ended}{total}: {told}" if told else f"{ended}{total}"),
        ("objective", "; ".join(map(" ".join, zip(study.directions, study.objectives, strict=True)))),
    ]
    if best is not None:
        rows.append(("best", f"{words.number(best.values[0])} in trial {best.number}: {params_text(best)}"))
    elif len(study.directions) > 1 and study.front:
        front = ", ".join(str(one.number) for one in study.front)
        rows.append(("front", f"{words.count(len(study.front), 'trial')} that no other beats: {front}"))
    return [title, facts(rows)]


def importance_table(weights: dict[str, float]) -> RenderableType:
    rows = table("Parameter", "importance", "", right=("importance",))
    for name, share in list(weights.items())[:10]:
        rows.add_row(name, f"{share * 100:.0f} %", "█" * round(share * _BAR))
    return rows


def charts(study: Study) -> Iterator[Text]:
    """The best value so far over trials."""
    import numpy as np

    from mosaic.analytics.report_data import GroupCurve
    from mosaic.cli.commands.compare import plot

    if len(study.directions) != 1:
        return
    line = study.best_so_far()
    if len(line) > 1:
        places = np.array([number for number, _ in line], np.float64)
        values = np.array([value for _, value in line], np.float64)
        yield plot("best so far", [(0, GroupCurve(places, values, values, values, 1))], "steps", "trials")


def trials(study: Study, limit: int, newest: bool = False) -> RenderableType:
    """The best trials first, or the newest."""
    several = len(study.directions) > 1
    titles = [
        "Trial",
        "state",
        *(study.short_objectives if several else ["value"]),
        "step",
        "time",
        "run",
        "parameters",
    ]
    rows = table(*titles, right=(*titles[2:-2],), fold=("parameters",))
    for one in _order(study, newest)[:limit]:
        state = _styled(one.state)
        values = [words.number(value) for value in one.values] or ["–"] * len(study.directions)
        if one.state != COMPLETE:
            last = one.intermediate[max(one.intermediate)] if one.intermediate else None
            values = [words.number(last)] + ["–"] * (len(study.directions) - 1)
        step = words.short_steps(max(one.intermediate)) if one.intermediate else ""
        took = ""
        if one.started_at:
            took = words.clock((one.ended_at or time.time()) - one.started_at)
        run = one.runs[0] if one.runs else ""
        more = f" +{len(one.runs) - 1}" if len(one.runs) > 1 else ""
        tail = f"   {one.reason}" if one.reason and one.state != PRUNED else ""
        rows.add_row(str(one.number), state, *values, step, took, run + more, params_text(one) + tail)
    return rows


def _order(study: Study, newest: bool) -> list[Trial]:
    if newest or len(study.directions) > 1:
        return list(reversed(study.trials))
    sign = 1 if study.directions[0] == "maximize" else -1
    states = {RUNNING: 0, COMPLETE: 1, PRUNED: 2, FAILED: 3}

    def key(one: Trial) -> tuple[float, float, int]:
        value = one.values[0] if one.values else 0.0
        return states.get(one.state, 4), -sign * value, one.number

    return sorted(study.trials, key=key)


def _styled(state: str) -> Text:
    from rich.text import Text

    return Text(state, style=_STYLES.get(state, "dim"))


def params_text(one: Trial) -> str:
    return "  ".join(f"{name} {value_text(value)}" for name, value in one.params.items())
