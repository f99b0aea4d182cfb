"""The rows of results/learning.md, and the same rows on the page of each algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev

from learning_plan import Row
from learning_runs import Curve
from tables import Table

PAGES = Path(__file__).parents[1] / "docs" / "algorithms"
BEGIN = "<!-- results: written by benchmarks/learning.py -->"
END = "<!-- end of results -->"
HEADER = [
    "algorithm",
    "environment",
    "steps",
    "return",
    "each seed",
    "bound",
    "reached",
    "published",
    "Stable-Baselines3",
]


def cells(row: Row, curves: Sequence[Curve], peer: Curve | None) -> list[str]:
    """A line of the table, from the seeds that are finished."""
    returns = [curve.last_tenth for curve in curves]
    mean = fmean(returns)
    spread = f" ± {pstdev(returns):.2f}" if len(returns) > 1 else ""
    waiting = f"; {len(row.seeds) - len(returns)} not yet trained" if len(returns) < len(row.seeds) else ""
    return [
        row.algo,
        row.env_id,
        f"{row.steps:,}",
        f"{mean:.2f}{spread}",
        ", ".join(f"{value:.1f}" for value in returns) + waiting,
        row.bound_text,
        "not yet" if waiting and row.bound is not None else row.verdict(mean),
        row.published_text,
        f"{peer.last_tenth:.2f}" if peer else "–",
    ]


def judged_anew(row: Row, line: Sequence[str]) -> list[str]:
    """A line of an earlier table, held against the bounds of today's plan."""
    told = dict(zip(HEADER, line, strict=True))
    told["bound"], told["published"] = row.bound_text, row.published_text
    if "not yet" not in told["each seed"]:
        told["reached"] = row.verdict(float(told["return"].split()[0]))
    return list(told.values())


def seeds_of(line: Sequence[str]) -> int:
    """How many seeds a line of the table tells of."""
    return line[HEADER.index("each seed")].partition(";")[0].count(",") + 1


def write_page(algo: str, rows: Sequence[Sequence[str]]) -> None:
    """Put the rows and the picture between the marks on the algorithm's page, without empty columns."""
    told = [column for column in range(1, len(HEADER)) if any(row[column] != "–" for row in rows)]
    table = Table([HEADER[column] for column in told], [[row[column] for column in told] for row in rows])
    figure = f"figures/{algo}.png"
    picture = [f"![Learning curves of {algo}]({figure})", ""] if (PAGES / figure).exists() else []
    page = PAGES / f"{algo}.md"
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    page.write_text(before + "\n".join([begin, "", *table.lines(), "", *picture, end]) + after, "utf-8")
