"""`benchmark`: algorithms × environments × seeds as one command: submit, wait, tell, write the report."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.commands.export import shown_progress
from mosaic.cli.commands.sweep import toml_value
from mosaic.cli.live.following import Followed, runs_of_sweeps
from mosaic.cli.output import console, cut, facts, note, place_text, print_json, program, say, table
from mosaic.cli.runs import connect, run_json
from mosaic.client import Client, RunQuery, RunRecord
from mosaic.contract import words
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import ConflictError, NotFoundError, UserError
from mosaic.contract.paths import named_path
from mosaic.contract.run_filter import WHOLE
from mosaic.sweeps.configs import spec_of, sweep_config
from mosaic.sweeps.study import COMPLETE, ENDED, Study, Trial, read_study

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mosaic.sweeps.benchmark_results import Cell, Results
    from mosaic.sweeps.spec import SweepSpec

_REPORT = "report.html"


def run_benchmark(args: argparse.Namespace) -> int:
    action, *rest = args.words
    if len(rest) > (1 if action == "show" else 0):
        raise UserError(f"'{rest[-1]}' is one word too many: see `{program()} benchmark --help`.")
    _check_outputs(args)
    if action == "list":
        return _list(args)
    if action == "show":
        if not rest:
            raise UserError(f"benchmark show needs the name of a benchmark: `{program()} benchmark list`.")
        return _show(rest[0], args)
    return _start(named_path(action), args)


def _check_outputs(args: argparse.Namespace) -> None:
    """What cannot be written at the end is told before anything is trained."""
    from mosaic.analytics.report import check_report_path

    if args.output is not None:
        check_report_path(args.output)
    for path in filter(None, (args.markdown, args.csv)):
        if path.is_dir() or not path.parent.is_dir():
            raise UserError(f"{path} cannot be written: name a file in an existing folder.")


# Starting


def _start(path: Path, args: argparse.Namespace) -> int:
    from mosaic.sweeps.benchmark_file import parse_benchmark
    from mosaic.sweeps.tables import read_table

    changes = [(name, toml_value(text)) for name, text in args.set]
    spec = parse_benchmark(read_table(path, changes, "benchmark"), path.stem)
    if args.dry_run:
        return _dry_run(spec, args)
    lost = f"No file is written yet: `{program()} benchmark show {spec.benchmark}` with these options does."
    return Followed(
        "benchmark",
        "runs",
        lambda run, study: _panel(run, study, spec),
        lambda one, study: _sentence(one, study, spec),
        lambda client, run: _tell(client, run, spec, args),
        lambda run: spec.benchmark,
        lost if any((args.output, args.markdown, args.csv)) else "",
    ).stay(lambda client: _taken_up(client, spec) or client.submit(sweep_config(spec)), args)


def _panel(run: RunRecord, study: Study, spec: SweepSpec) -> RenderableType:
    from rich.console import Group

    from mosaic.sweeps.benchmark_results import results_of

    results = results_of(spec, study)
    return Group(_head(run, results), "", _cells(results))


def _sentence(one: Trial, study: Study, spec: SweepSpec) -> str:
    ended = sorted(study.with_state(*ENDED), key=lambda other: (other.ended_at or 0, other.number))
    came = words.number(one.values[0]) if one.state == COMPLETE else one.reason
    algo, env_id, seed = one.params.values()
    return f"{ended.index(one) + 1} of {spec.trials}  {algo} on {env_id}, seed {seed}: {one.state} {came}"


def _taken_up(client: Client, spec: SweepSpec) -> RunRecord | None:
    """The benchmark that does this already or has done it; None when there is something to train.

    One of the same name that still trains something else is a ConflictError.
    """
    from mosaic.sweeps.benchmark import trained

    before = next(
        (run for run in runs_of_sweeps(client, benchmarks=True) if spec_of(run).benchmark == spec.benchmark),
        None,
    )
    if before is None:
        return None
    same = _asked(spec_of(before)) == _asked(spec)
    if before.ended:
        whole = same and len(trained(client, spec)) == spec.trials and before.outcome == "completed"
        if whole and _all_complete(read_study(Path(before.run_dir)), spec):
            note("All of it is trained already.")
            return before
        return None
    if not same:
        raise ConflictError(
            f"Benchmark '{spec.benchmark}' is still running with an older version of its file: wait, or "
            f"`mosaic cancel {before.run_id}` and start again; finished runs are kept."
        )
    note(f"Benchmark '{spec.benchmark}' is already running: following it.")
    return before


def _asked(spec: SweepSpec) -> Any:
    """What makes two benchmarks the same one."""
    from mosaic.sweeps.benchmark import CELL

    cells = [(one.algo, one.env_id, one.config["metadata"]["ui"][CELL]) for one in spec.templates]
    return cells, spec.seeds, spec.objectives, dict(spec.references)


def _all_complete(study: Study | None, spec: SweepSpec) -> bool:
    return study is not None and len(study.with_state(COMPLETE)) == spec.trials


def _dry_run(spec: SweepSpec, args: argparse.Namespace) -> int:
    if args.json:
        print_json(sweep_config(spec))
        return 0
    rows = table("Algorithm", "environment", "steps", "parameters", right=("steps",), fold=("parameters",))
    for one in spec.templates:
        asked = one.config["metadata"]["worker"]["config"]
        params = (asked.get("extras") or {}).get("algo_params") or {}
        told = "  ".join(f"{name} {value}" for name, value in params.items())
        rows.add_row(one.algo, one.env_id, words.whole(asked.get("total_timesteps")), told)
    seeds = words.seeds_text(spec.seeds)
    plan = [
        ("benchmark", spec.benchmark),
        ("runs", f"{spec.trials}: {len(spec.templates)} lines below, {seeds}"),
        ("parallel", str(spec.parallel or "as many as fit")),
        ("result", spec.objectives[0].words()),
    ]
    console().print(facts(plan))
    say("")
    console().print(rows)
    note("All checks passed; nothing was started.")
    return 0


# Looking


def _list(args: argparse.Namespace) -> int:
    with connect(args) as client:
        found = runs_of_sweeps(client, benchmarks=True)
    if args.json:
        print_json([run_json(run) for run in found])
        return 0
    if not found:
        say(f"There is no benchmark yet: see `{program()} benchmark --help`.")
        return 0
    rows = table("Benchmark", "run", "state", "runs", "started", right=("runs",), fold=("Benchmark",))
    for run in found:
        head = run.headline
        count = f"{head.get('trials', 0)} of {head['total_trials']}" if head.get("total_trials") else ""
        name = str(run.worker_config["sweep"]["benchmark"])
        rows.add_row(cut(name), run.run_id, words.state(run), count, words.ago(run.submitted_at))
    console().print(rows)
    return 0


def _find(client: Client, name: str) -> RunRecord:
    """The newest benchmark of a name, or one by its id, the beginning of one, or `last`."""
    found = runs_of_sweeps(client, benchmarks=True)
    if name == "last" and found:
        return found[0]
    for run in found:
        if run.worker_config["sweep"]["benchmark"] == name:
            return run
    by_id = [run for run in found if run.run_id.startswith(name.upper())]
    if len(by_id) == 1:
        return by_id[0]
    raise NotFoundError(f"There is no benchmark '{name}': `{program()} benchmark list` lists them.")


def _show(name: str, args: argparse.Namespace) -> int:
    with connect(args) as client:
        run = _find(client, name)
        return _tell(client, run, spec_of(run), args, looks=True)


def _tell(
    client: Client, run: RunRecord, spec: SweepSpec, args: argparse.Namespace, looks: bool = False
) -> int:
    """All that came of it, and the files that were asked for; gives the exit code."""
    from mosaic.sweeps.benchmark_results import results_of

    results = results_of(spec, read_study(Path(run.run_dir)))
    written = _write(client, run, results, args, looks)
    if args.json:
        print_json({"run": run_json(run), **results.as_json(), "written": list(map(str, written))})
    else:
        console().print(_head(run, results))
        for part in _tables(results):
            say("")
            console().print(part)
        if results.incomplete and results.several and run.ended:
            lack = "lacks" if len(results.incomplete) == 1 else "lack"
            note(f"Not over all environments: {', '.join(results.incomplete)} {lack} results.")
        for problem in _problems(results):
            note(f"mosaic: {problem}")
        for path in written:
            say(f"written        {place_text(path)}")
    if looks:
        return 0
    return (
        0 if run.outcome == "completed" and all(len(one.values) == one.wanted for one in results.cells) else 1
    )


def _problems(results: Results) -> list[str]:
    """Why runs have failed, each reason once."""
    found: dict[str, list[str]] = {}
    for cell in results.cells:
        for one in cell.trials:
            if one.state in ENDED and one.state != COMPLETE:
                name = f"{cell.algo} on {cell.env_id}, seed {one.params['seed']}"
                found.setdefault(one.reason, []).append(name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {reason}"
        for reason, names in found.items()
    ]


def _write(
    client: Client, run: RunRecord, results: Results, args: argparse.Namespace, looks: bool
) -> list[Path]:
    """The files: the report always at the end, else where it is asked for."""
    written = []
    for path, text in ((args.markdown, results.markdown), (args.csv, results.csv)):
        if path is not None:
            write_atomic(path, text().encode())
            written.append(path)
    report = args.output or (None if looks else Path(run.run_dir) / _REPORT)
    labels = {
        one.runs[0]: cell.algo for cell in results.cells for one in cell.trials if one.state == COMPLETE
    }
    if report is not None and labels:
        _write_report(client, labels, report, results.spec)
        written.append(report)
    elif args.output is not None:
        note("No run is complete yet: there is no report.")
    return written


def _write_report(client: Client, labels: Mapping[str, str], path: Path, spec: SweepSpec) -> None:
    from mosaic.analytics.report import evaluations_of, write_report
    from mosaic.client.groups import defaults_for
    from mosaic.sweeps.objective import USUAL_METRIC

    query = RunQuery(run_ids=list(labels), fields=WHOLE)
    found = {run.run_id: _labelled(run, labels[run.run_id]) for run in client.each(query)}
    runs = [found[run_id] for run_id in labels if run_id in found]
    metric = spec.objectives[0].metric
    with shown_progress() as progress:
        write_report(
            runs,
            path,
            title=f"Benchmark {spec.benchmark}",
            metric=None if metric == USUAL_METRIC else metric,
            evaluations=evaluations_of(client, runs),
            defaults=defaults_for(runs),
            references=spec.references,
            progress=progress,
        )


def _labelled(run: RunRecord, label: str) -> RunRecord:
    """A run under the name that the file gives its algorithm now."""
    from mosaic.sweeps.benchmark import LABEL

    metadata = run.config["metadata"]
    return replace(
        run, config={**run.config, "metadata": {**metadata, "ui": {**metadata["ui"], LABEL: label}}}
    )


def _head(run: RunRecord, results: Results) -> RenderableType:
    ended = sum(one.ended for one in results.cells)
    failed = sum(one.failed for one in results.cells)
    return facts(
        [
            ("benchmark", f"{results.spec.benchmark}   {run.run_id}"),
            ("state", f"{words.state(run)}{f': {run.reason}' if run.reason else ''}"),
            ("runs", f"{ended} of {results.spec.trials}{f', {failed} failed' if failed else ''}"),
            ("result", results.objective),
        ]
    )


def _tables(results: Results) -> Iterator[RenderableType]:
    yield _cells(results)
    if results.several and results.aggregates:
        yield _aggregates(results)
    if results.improvements:
        yield _improvements(results)


def _cells(results: Results) -> RenderableType:
    from mosaic.analytics import statistics
    from mosaic.sweeps.benchmark_results import interval_text

    titles = ("Environment", "algorithm", "mean and 95 % interval", "IQM", "seeds")
    rows = table(*titles, right=titles[2:], fold=titles[:2])
    for env_id in results.spec.env_ids:
        for number, one in enumerate(one for one in results.cells if one.env_id == env_id):
            middle = one.over_seeds(statistics.iqm)
            rows.add_row(
                "" if number else env_id,
                one.algo,
                interval_text(one.over_seeds(statistics.mean)),
                words.number(middle.value if middle else None),
                _progress(one),
            )
    return rows


def _progress(cell: Cell) -> str:
    done = len(cell.values)
    told = str(done) if done == cell.wanted else f"{done} of {cell.wanted}"
    return f"{told}, {cell.failed} failed" if cell.failed else told


def _aggregates(results: Results) -> RenderableType:
    from mosaic.sweeps.benchmark_results import AGGREGATES, interval_text, score_text

    rows = table(
        "Over all environments", *AGGREGATES, right=tuple(AGGREGATES), fold=("Over all environments",)
    )
    for algo, found in results.aggregates.items():
        rows.add_row(algo, *(interval_text(found[name], score_text) for name in AGGREGATES))
    return rows


def _improvements(results: Results) -> RenderableType:
    from mosaic.sweeps.benchmark_results import interval_text, score_text

    titles = ("A run of", "is better than one of", "with the probability")
    rows = table(*titles, right=titles[2:], fold=titles[:2])
    for one, other, found in results.improvements:
        rows.add_row(one, other, interval_text(found, score_text))
    return rows
