"""Pictures of learning curves: a panel for each environment."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from learning_plan import RANGES, Row
from learning_runs import PARTS, Curve
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from PIL import Image

COLOURS = 64
"""A picture of so few colours looks the same and is a third of the size."""
OURS, PEER, PUBLISHED, BOUND = "#1f6fb4", "#d9822b", "#3d8b40", "#b0413e"


def draw(path: Path, panels: Mapping[Row, Sequence[Curve]], peers: Mapping[Row, Curve | None]) -> None:
    """Write the picture of one algorithm."""
    figure = Figure(figsize=(max(4.6, 3.2 * len(panels)), 2.9), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    shown: dict[str, object] = {}
    for axis, (row, curves) in zip(axes, panels.items(), strict=True):
        draw_panel(axis, row, curves, peers.get(row))
        handles, labels = axis.get_legend_handles_labels()
        shown |= zip(labels, handles, strict=True)
    axes[0].set_ylabel("episodic return", fontsize=9)
    figure.legend(
        list(shown.values()),
        list(shown),
        loc="outside lower center",
        # More side by side would not fit under the panels.
        ncols=min(len(shown), len(panels) + 1),
        frameon=False,
        fontsize=9,
    )
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=150)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def draw_panel(axis: Axes, row: Row, curves: Sequence[Curve], peer: Curve | None) -> None:
    """One environment: each seed thin, their mean bold, a band of one standard deviation around it."""
    ends = np.arange(1, PARTS + 1) * row.steps / PARTS
    each = np.array([curve.means for curve in curves])
    if peer:
        axis.plot(ends, peer.means, color=PEER, linewidth=1.4, label="Stable-Baselines3")
    if len(curves) > 1:
        mean, spread = each.mean(axis=0), each.std(axis=0)
        axis.fill_between(ends, mean - spread, mean + spread, color=OURS, alpha=0.18, linewidth=0)
        axis.plot(ends, each.T, color=OURS, linewidth=0.6, alpha=0.45)
        axis.plot(ends, mean, color=OURS, linewidth=1.8, label=f"mean of {len(curves)} seeds ± std")
    else:
        axis.plot(ends, each[0], color=OURS, linewidth=1.8, label="one seed")
    if row.published:
        label = f"published{row.published_note and f' ({row.published_note})'}"
        axis.axhline(row.published[0], color=PUBLISHED, linewidth=1.2, linestyle="--", label=label)
    if row.least is not None:
        axis.axhline(row.least, color=BOUND, linewidth=1.2, linestyle=":", label="bound")
    if row.env_id in RANGES:
        # No axis shows returns that there cannot be.
        (least, most), (bottom, top) = RANGES[row.env_id], axis.get_ylim()
        margin = 0.03 * (most - least)
        axis.set_ylim(max(bottom, least - margin), min(top, most + margin))
    axis.set_title(row.env_id, fontsize=10)
    axis.set_xlabel("environment steps", fontsize=9)
    axis.set_xlim(0, row.steps)
    axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axis.tick_params(labelsize=8)
    axis.grid(color="0.9", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
