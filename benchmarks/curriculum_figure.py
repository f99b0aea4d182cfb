"""The picture of benchmarks/curriculum.py: returns on 8×8 over the steps in all."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from PIL import Image

if TYPE_CHECKING:
    from curriculum import Outcome

WINDOW = 100
"""Episodes that a point of a curve is the mean of."""
POINTS = 400
COLOURS = 64
STAGED, ALONE, BOUND = "#1f6fb4", "#d9822b", "#b0413e"


def draw(path: Path, staged: Sequence[Outcome], alone: Sequence[Outcome], target: float) -> None:
    """Write the picture: a line for each seed, which begins where it first plays 8×8."""
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axis = figure.subplots()
    for outcomes, colour, name in ((staged, STAGED, "5×5, 6×6, then 8×8"), (alone, ALONE, "8×8 alone")):
        for number, outcome in enumerate(outcomes):
            steps, means = smooth(outcome)
            axis.plot(steps, means, color=colour, linewidth=1.3, label=name if number == 0 else None)
            if outcome.solved_at is not None:
                axis.plot(outcome.solved_at, target, "o", color=colour, markersize=4)
    for number, outcome in enumerate(staged):
        label = "the curriculum reaches 8×8" if number == 0 else None
        axis.axvline(outcome.began[-1], color=STAGED, linewidth=0.7, linestyle=":", label=label)
    axis.axhline(target, color=BOUND, linewidth=0.8, linestyle="--", label=f"solved: {target}")
    axis.set_xlabel("environment steps in all", fontsize=9)
    axis.set_ylabel("return on DoorKey 8×8", fontsize=9)
    axis.set_ylim(-0.02, 1.0)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.tick_params(labelsize=8)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=150)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def smooth(outcome: Outcome) -> tuple[list[int], list[float]]:
    """Steps, and the mean return of the last episodes at each, not more of them than can be seen."""
    if not outcome.returns:
        return [], []
    sums = np.cumsum([0.0, *outcome.returns])
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - WINDOW)
    means = (sums[ends] - sums[starts]) / (ends - starts)
    chosen = np.unique(np.linspace(0, len(means) - 1, POINTS).astype(int))
    return [outcome.steps[at] for at in chosen], [float(means[at]) for at in chosen]
