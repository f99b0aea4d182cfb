"""How a population is shown in a terminal: its members over generations, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.live.studies import params_text
from mosaic.cli.output import console, facts, program, table
from mosaic.client import RunRecord
from mosaic.contract import words
from mosaic.hub import MODEL_SUFFIX
from mosaic.sweeps.population import Lineage, Piece
from mosaic.sweeps.study import COMPLETE, FAILED, RUNNING, Study, value_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


_CELL = 13
"""So many columns of a terminal a generation takes at most."""


def lineage_table(found: Lineage) -> RenderableType:
    """A line for each member, a column for each generation, `←3` where member 3 was copied."""
    shown = max(2, (console().width - 8) // _CELL)
    known = max((one.generation for one in found.pieces), default=0) + 1
    generations = list(range(known))
    if known > shown:
        # The beginning is of less interest than the end.
        generations = [0, *range(known - shown + 1, known)]
    path = {one.trial for one in found.ancestors(found.best)} if found.best is not None else set()
    rows = table("Member", *(f"gen. {one}" for one in generations), right=())
    cells = {(one.member, one.generation): one for one in found.pieces}
    for member in range(found.members):
        pieces = [cells.get((member, generation)) for generation in generations]
        rows.add_row(str(member), *(_cell(one, path) for one in pieces))
    return rows


def _cell(piece: Piece | None, path: set[int]) -> Text:
    from rich.text import Text

    if piece is None:
        return Text("")
    copied = "" if piece.copied_from is None else f"←{piece.copied_from} "
    told = words.number(piece.value) if piece.state == COMPLETE else piece.state
    style = {FAILED: "red", RUNNING: "bold cyan"}.get(piece.state, "")
    if piece.trial in path:
        style, told = "bold green", f"{told}*"
    return Text(f"{copied}{told}", style=style)


def lineage_facts(found: Lineage, study: Study, runs: Path) -> RenderableType:
    """The best member, how its parameters came to be, its model, and what can be done with it."""
    best = found.final
    if best is None:
        return facts([])
    path = found.ancestors(best.trial)
    told = study.trials[best.trial]
    models = sorted((runs / best.run).glob(f"runs/*/*{MODEL_SUFFIX}"))
    reached = f"{words.number(best.value)} with {params_text(told)}"
    rows: list[tuple[str, str | Text | None]] = [
        ("best member", f"{best.member} in generation {best.generation}: {reached}"),
        ("its schedule", "; ".join(_schedules(path))),
        ("its model", str(models[0]) if models else None),
        ("play it", f"{program()} eval {best.run}"),
        ("train it on", f"{program()} train --resume {best.run} --extend 100k"),
    ]
    return facts([row for row in rows if row[1]])


def _schedules(path: Sequence[Piece]) -> list[str]:
    """Each parameter with the values that it has had on the way to a piece."""
    found = []
    for name in path[-1].params:
        values = [path[0].params[name]]
        values += [
            one.params[name] for before, one in pairwise(path) if one.params[name] != before.params[name]
        ]
        found.append(f"{name} {' → '.join(map(value_text, values))}")
    return found


def lineage_parts(run: RunRecord, found: Lineage, study: Study) -> list[RenderableType]:
    """All of it."""
    from rich.text import Text

    note = Text("Lineage (← copied from): * marks the path to the best member.", style="dim")
    return [lineage_table(found), note, lineage_facts(found, study, Path(run.run_dir).parent)]
