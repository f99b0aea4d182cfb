"""What stands on the screen when runs have ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich.table import Table
from rich.text import Text

from mosaic.analytics.artifacts import Artifact
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.cli.live.board import Row
from mosaic.cli.output import as_left, byte_lines, console, cut, facts, place_text, program, say, table
from mosaic.cli.runs import run_json
from mosaic.client import Client, RunRecord
from mosaic.contract import words
from mosaic.contract.errors import StorageError
from mosaic.contract.paths import RunPaths
from mosaic.hub.uploads import read_upload
from mosaic.tracking import links

_STDERR_LINES = 12
_LABELS = 13
"""How wide labels are."""
_MARKS = {"completed": "✓", "cancelled": "■"}


def print_summary(client: Client, runs: Sequence[RunRecord]) -> None:
    """How the runs went, where their results are and what to do next."""
    if len(runs) == 1:
        _print_one(client, runs[0])
    else:
        _print_many(client, runs)


def _print_one(client: Client, run: RunRecord) -> None:
    row = Row(run)
    console().print(_verdict(row))
    if run.reason and run.outcome != "cancelled":
        console().print(Text(run.reason, style="red"))
    head = run.headline
    mean, restarts = head.get("mean_return"), (row.restart or "").removeprefix("restart ")
    steps = f"{words.whole(head.get('step'))}   {words.whole(head.get('sps'))} per second"
    told = [
        ("mean return", None if mean is None else words.short(mean)),
        ("phase", words.phase(head.get("script_phase"))),
        ("stage", words.stage(head.get("curriculum"))),
        ("steps", steps if head.get("step") else None),
        ("restarts", restarts.partition(" after:")[0]),
        ("run", run.run_id),
        ("folder", place_text(run.run_dir)),
        *_results(client.artifacts(run.run_id)),
        ("tracked by", "\n".join(link.text for link in links(Path(run.run_dir)))),
        ("hub", upload.told() if (upload := read_upload(Path(run.run_dir))) is not None else None),
    ]
    console().print(facts(told, _LABELS))
    if run.outcome == "failed":
        _print_stderr(client, run)
    # With a full checkpoint a run that was stopped goes on exactly where it was.
    saved = RunPaths(Path(run.run_dir)).full_checkpoints()
    _print_next(run.outcome, [run.run_id], again="train --resume" if saved else "rerun")


def _print_many(client: Client, runs: Sequence[RunRecord]) -> None:
    rows = [Row(run) for run in runs]
    short = words.unique_prefixes([row.run_id for row in rows])
    same = len({row.title for row in rows}) == 1
    if same:
        console().print(Text(rows[0].title, style="bold"))
    console().print(_outcomes(rows, short, same))
    means = [row.headline.get("mean_return") for row in rows if row.outcome == "completed"]
    returns = [mean for mean in means if mean is not None]
    spread = None
    if same and len(returns) > 1:
        spread = f"{words.short(fmean(returns))} ± {words.short(stdev(returns))} over {len(returns)} runs"
    folders = place_text(Path(rows[0].run_dir).parent)
    console().print(facts([("mean return", spread), ("folders", folders)], _LABELS))
    failed = next((run for run in runs if run.outcome == "failed"), None)
    if failed is None:
        _print_next("completed", list(short.values()))
        return
    console().print(Text(f"{Row(failed).name}: {failed.reason}", style="red"))
    _print_stderr(client, failed)
    _print_next("failed", [failed.run_id])


def _outcomes(rows: Sequence[Row], short: Mapping[str, str], same: bool) -> Table:
    who = "seed" if same else "run"
    listed = table("", who, "time", "mean return", "id", right=("time", "mean return"), gap=2)
    for row in rows:
        elapsed = row.elapsed()
        listed.add_row(
            _state(row),
            cut(str(row.seed) if same else row.name),
            "–" if elapsed is None else words.duration(elapsed),
            words.short(row.headline.get("mean_return")),
            short[row.run_id],
        )
    return listed


def _verdict(row: Row) -> Text:
    """How a run ended, after how long, and which it is."""
    elapsed = row.elapsed()
    took = f" after {words.duration(elapsed)}" if elapsed is not None else ""
    return Text.assemble(_state(row), took, "   ", (row.name, "bold"))


def _state(row: Row) -> Text:
    return Text(f"{_MARKS.get(row.outcome or '', '✗')} {row.state}", style=words.style(row.state))


def _results(files: Sequence[Artifact]) -> list[tuple[str, str]]:
    """What people look for, by paths inside the run's folder: the folders of event files and the models."""
    events = [("  event files", str(Path(file.path).parent)) for file in files if file.kind == "events"]
    models = [("  model", file.path) for file in files if file.kind == "model"]
    return list(dict.fromkeys(events + models))


def _print_stderr(client: Client, run: RunRecord) -> None:
    lines = deque(map(as_left, byte_lines(client.logs(run.run_id, "stderr"))), maxlen=_STDERR_LINES)
    if lines:
        console().print(Text("last lines of its stderr:", style="dim"))
        for line in lines:
            # Not broken by us: people copy these lines, and their terminals break them as well.
            say(f"  {line}")


def _print_next(outcome: str | None, ids: list[str], again: str = "rerun") -> None:
    last = f"{again} {ids[0]}"
    first = {"failed": f"logs {ids[0]} --stderr", "cancelled": last, "timed_out": last}
    usual = f"tensorboard {' '.join(ids)}"
    console().print(facts(_next(first.get(outcome or "", usual), f"show {ids[0]}"), _LABELS))


def _next(*commands: str) -> list[tuple[str, str | Text | None]]:
    made = [Text(f"{program()} {command}", style="cyan", overflow="fold") for command in commands]
    return [("" if at else "next", command) for at, command in enumerate(made)]


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
    console().print(_verdict(Row(run)))
    films = [file for file in client.artifacts(run.run_id) if file.kind == "video"]
    told: list[tuple[str, str | Text | None]] = [
        *_score_facts(found),
        *_manner(found),
        ("run", run.run_id),
        ("folder", place_text(run.run_dir)),
        ("  videos", str(Path(films[0].path).parent) if films else None),
        *_next(f"tensorboard {run.run_id}", f"show {run.run_id}"),
    ]
    console().print(facts(told, _LABELS))


def _score_facts(found: EvalSummary) -> list[tuple[str, str]]:
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
        ("actions", "the best ones" if policy["deterministic"] else "sampled as in training"),
        ("seeds", f"{policy['first_seed']} to {last}"),
        ("speed", f"{words.whole(speed)} steps per second, {policy['num_envs']} environments together"),
        ("policy", f"{place_text(policy['path'])}{step}"),
        *(("mind", note) for note in policy.get("notes", ())),
    ]
