"""How an evaluation went, on the screen and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.cli import words
from mosaic.cli.live.summary import facts_table, print_summary, verdict
from mosaic.cli.output import console
from mosaic.cli.program import program
from mosaic.cli.shapes import run_json
from mosaic.contract.errors import StorageError

if TYPE_CHECKING:
    from mosaic.client import Client, RunRecord


def evaluation_json(run: RunRecord) -> dict[str, Any]:
    """A run with all its scores."""
    found = read_eval_summary(Path(run.run_dir))
    return {**run_json(run), "evaluation": found.as_json() if found else None}


def print_evaluation(client: Client, runs: list[RunRecord]) -> None:
    """The scores of an evaluation; one without any is told of as every run."""
    (run,) = runs
    try:
        found = read_eval_summary(Path(run.run_dir))
    except StorageError:
        found = None
    if found is None or run.outcome == "failed":
        print_summary(client, runs)
        return
    from rich.text import Text

    from mosaic.cli.live.board import Row

    console().print(verdict(Row.from_record(run)))
    table = facts_table()
    for label, value in (*_scores(found), *_manner(found)):
        table.add_row(label, Text(value, overflow="fold"))
    table.add_row("run", run.run_id)
    table.add_row("folder", Text(words.place(run.run_dir), overflow="fold"))
    films = [file for file in client.artifacts(run.run_id) if file.kind == "video"]
    if films:
        table.add_row("  videos", Text(str(Path(films[0].path).parent), overflow="fold"))
    for at, command in enumerate((f"tensorboard {run.run_id}", f"show {run.run_id}")):
        table.add_row("" if at else "next", Text(f"{program()} {command}", style="cyan", overflow="fold"))
    console().print(table)


def _scores(found: EvalSummary) -> list[tuple[str, str]]:
    scores, number = found.overall, words.measured
    low, high = scores.interval
    return [
        ("mean return", f"{number(scores.mean)} ± {number(scores.std)}"),
        ("  95 % interval", f"{number(low)} to {number(high)}"),
        ("  IQM", number(scores.iqm)),
        ("  median", number(scores.median)),
        ("  min, max", f"{number(scores.min)}, {number(scores.max)}"),
        (f"  γ = {found.policy['gamma']:g}", number(scores.discounted_mean)),
    ]


def _manner(found: EvalSummary) -> list[tuple[str, str]]:
    scores, policy = found.overall, found.policy
    last = policy["first_seed"] + scores.episodes - 1
    cut = f", {words.whole(scores.cut_off)} cut off" if scores.cut_off else ""
    batches = f" in {words.whole(scores.batch)} batches" if scores.batch > 1 else ""
    speed = scores.steps / scores.duration_seconds if scores.duration_seconds else None
    step = f" (step {words.whole(policy['step'])})" if policy["step"] is not None else ""
    return [
        (
            "episodes",
            f"{words.whole(scores.episodes)}{batches}{cut}, {words.short(scores.mean_length)} steps each",
        ),
        ("actions", "the best known" if policy["deterministic"] else "drawn as in training"),
        ("seeds", f"{policy['first_seed']} to {last}"),
        ("speed", f"{words.whole(speed)} steps per second, {policy['num_envs']} environments together"),
        ("policy", f"{words.place(policy['path'])}{step}"),
        *(("mind", note) for note in policy.get("notes", ())),
    ]
