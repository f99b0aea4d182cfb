"""`sweep`: search for good parameters; look at what was found; go on with it; train with the best."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.launch import Terminated, exit_code, launch, termination_raises
from mosaic.cli.live.following import Followed, runs_of_sweeps
from mosaic.cli.live.lineage import lineage_parts
from mosaic.cli.live.studies import (
    charts,
    head,
    importance_table,
    panel,
    params_text,
    sentence,
    trials,
)
from mosaic.cli.output import console, cut, facts, note, print_json, program, say, table
from mosaic.cli.parsers import SWEEP_ACTIONS
from mosaic.cli.runs import connect, find_run, run_json
from mosaic.client import Client, RunRecord
from mosaic.contract import words
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import ConflictError, MosaicError, NotFoundError, UserError
from mosaic.contract.paths import named_path
from mosaic.contract.secrets import referred
from mosaic.sweeps import WORKER_TYPE
from mosaic.sweeps.population import lineage
from mosaic.sweeps.study import COMPLETE, Study, Trial, read_study, value_text

if TYPE_CHECKING:
    from mosaic.sweeps.spec import SweepSpec

_SHOWN_TRIALS = 20
_DASHBOARD_PORT = 8080


def run_sweep(args: argparse.Namespace) -> int:
    action, *rest = args.words
    if action in SWEEP_ACTIONS:
        if action != "list" and not rest:
            raise UserError(f"sweep {action} needs {'ALGO and ENV' if action == 'init' else 'SWEEP'}.")
        return _ACTIONS[action](rest, args)
    if rest:
        raise UserError(f"'{rest[0]}' is one word too many for sweep: see `{program()} sweep --help`.")
    return _start(named_path(action), args)


# Starting


def _start(path: Path, args: argparse.Namespace) -> int:
    from mosaic.sweeps.configs import sweep_config
    from mosaic.sweeps.sweep_file import parse_spec
    from mosaic.sweeps.tables import read_table

    changes = [(name, toml_value(text)) for name, text in args.set]
    changes += [("trials", args.trials)] if args.trials is not None else []
    changes += [("total_timesteps", args.total_timesteps)] if args.total_timesteps is not None else []
    changes += [("seeds", list(args.seeds))] if args.seeds is not None else []
    spec = parse_spec(read_table(path, changes))
    if spec.population is None:
        _check(spec)
    if args.dry_run:
        return _dry_run(spec, args)
    return _launch(sweep_config(spec), args)


def toml_value(text: str) -> Any:
    """A value as it would stand in the file; what TOML does not know is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _check(spec: SweepSpec) -> None:
    """What only Optuna can tell: whether sampler, pruner and storage can do this."""
    from mosaic.sweeps.samplers import check_search
    from mosaic.sweeps.spec import JOURNAL, SQLITE
    from mosaic.sweeps.storage import holds_studies, open_storage

    check_search(spec)
    if spec.storage not in (JOURNAL, SQLITE) and holds_studies(spec.storage, os.environ):
        open_storage(spec.storage, None, os.environ)


def _dry_run(spec: SweepSpec, args: argparse.Namespace) -> int:
    from mosaic.sweeps.configs import sweep_config

    if args.json:
        print_json(sweep_config(spec))
    else:
        console().print(facts(spec.plan()))
        rows = table("Parameter", "searched", "when", fold=("searched", "when"))
        for one in spec.space:
            whens = ", ".join(
                f"{name} = {' or '.join(map(value_text, them))}" for name, them in one.when.items()
            )
            rows.add_row(one.key, _range_text(one.as_json()), whens)
        say("")
        console().print(rows)
    note("All checks passed; nothing was started.")
    return 0


def _range_text(told: dict[str, Any]) -> str:
    if told.get("choices"):
        return ", ".join(value_text(one) for one in told["choices"])
    step = f" in steps of {told['step']:g}" if told.get("step") not in (None, 1) else ""
    return f"{told['low']:g} to {told['high']:g}{' (log)' if told.get('log') else ''}{step}"


def _launch(config: dict[str, Any], args: argparse.Namespace) -> int:
    """Submit a sweep and stay with it."""

    def report(_: Client, run: RunRecord) -> int:
        _report(run, read_study(Path(run.run_dir)), args)
        return exit_code([run])

    return Followed("sweep", "trials", panel, sentence, report).stay(
        lambda client: client.submit(config), args
    )


# Looking


def _list(rest: Sequence[str], args: argparse.Namespace) -> int:
    with connect(args) as client:
        found = runs_of_sweeps(client)
    if args.json:
        print_json([run_json(run) for run in found])
        return 0
    if not found:
        say(f"There is no sweep yet: `{program()} sweep init ppo CartPole-v1` shows a file for one.")
        return 0
    titles = ("Sweep", "state", "trials", "best", "started", "name")
    rows = table(*titles, right=("trials", "best"), fold=("name",))

    for run in found:
        head = run.headline
        trials = f"{head.get('trials', 0)} of {head['total_trials']}" if head.get("total_trials") else ""
        state, best = words.state(run), words.number(head.get("mean_return"))
        rows.add_row(run.run_id, state, trials, best, words.ago(run.submitted_at), cut(run.run_name))
    console().print(rows)
    return 0


def _find(client: Client, name: str) -> RunRecord:
    """A sweep by its id, the beginning of one, or `last`."""
    if name == "last":
        found = runs_of_sweeps(client)
        if not found:
            raise NotFoundError("There is no sweep yet.")
        return client.get(found[0].run_id)
    run = find_run(client, name)
    if run.worker_type != WORKER_TYPE:
        trial = f" but a trial of sweep {run.sweep}" if run.sweep else ""
        raise UserError(f"Run {run.run_id} is not a sweep{trial}: `{program()} sweep list` lists them.")
    return run


def _show(rest: Sequence[str], args: argparse.Namespace) -> int:
    name = rest[0]
    if "://" in name or referred(name) is not None or Path(name).expanduser().is_file():
        from mosaic.sweeps.optuna_records import read_elsewhere

        _report(None, read_elsewhere(name, args.study or "", os.environ), args)
        return 0
    with connect(args) as client:
        run = _find(client, name)
    _report(run, read_study(Path(run.run_dir)), args)
    return 0


def _report(run: RunRecord | None, study: Study | None, args: argparse.Namespace) -> None:
    """All that is known of a study."""
    weights = _importance(study)
    line = lineage(study) if study else None
    if args.json:
        told = study.as_json() if study else None
        whole = {"run": run and run_json(run), "study": told, "importance": weights}
        print_json(whole | ({"lineage": line.as_json()} if line else {}))
        return
    if study is None:
        assert run is not None
        say(f"{run.run_name}  {run.run_id}\n{words.state(run)}  {run.reason or ''}".rstrip())
        return
    for part in head(run, study):
        console().print(part)
    if line is not None and run is not None and study.trials:
        say("")
        for part in lineage_parts(run, line, study):
            console().print(part)
    if weights:
        say("")
        console().print(importance_table(weights))
    for chart in charts(study):
        say("")
        console().print(chart)
    say("")
    limit = len(study.trials) if args.all else args.limit or _SHOWN_TRIALS
    console().print(trials(study, limit))
    if len(study.trials) > limit:
        note(f"{len(study.trials) - limit} more trials: --all shows them.")
    if run is not None and study.best is not None and line is None:
        console().print(facts([("next", f"{program()} sweep train-best {run.run_id}")]))


def _importance(study: Study | None) -> dict[str, float]:
    if study is None or study.members or len(study.directions) > 1 or len(study.with_state(COMPLETE)) < 4:
        return {}
    try:
        from mosaic.sweeps.optuna_records import importance
    except UserError:
        # Optuna is not installed, which reading a study does not need.
        return {}
    return importance(study)


# Going on


def _init(rest: Sequence[str], args: argparse.Namespace) -> int:
    from mosaic.sweeps.sweep_file import parse_spec
    from mosaic.sweeps.toml_text import example

    if len(rest) != 2:
        raise UserError("sweep init needs ALGO and ENV, such as in `mosaic sweep init ppo CartPole-v1`.")
    text = example(*rest)
    parse_spec(tomllib.loads(text))
    if args.output is None:
        say(text.rstrip())
        return 0
    if args.output.exists():
        raise UserError(f"{args.output} already exists: name another file with -o, or remove it.")
    write_atomic(args.output, text.encode())
    say(f"{args.output} is written: `{program()} sweep {args.output}` starts it.")
    return 0


def _resume(rest: Sequence[str], args: argparse.Namespace) -> int:
    return _go_on(rest[0], args.trials, args)


def _extend(rest: Sequence[str], args: argparse.Namespace) -> int:
    if args.trials is None:
        raise UserError("sweep extend needs --trials N: how many more.")
    return _go_on(rest[0], args.trials, args)


def _go_on(name: str, more: int | None, args: argparse.Namespace) -> int:
    from mosaic.sweeps.configs import take_up

    with connect(args) as client:
        run = _find(client, name)
        config = take_up(client, run, more)
    note(f"A new sweep continues with the study of {run.run_id}.")
    return _launch(config, args)


def _train_best(rest: Sequence[str], args: argparse.Namespace) -> int:
    from mosaic.sweeps.configs import best_configs, spec_of

    with connect(args) as client:
        run = _find(client, rest[0])
    study = read_study(Path(run.run_dir))
    chosen = _chosen(study, args.trial, run)
    seeds = args.seeds or [max(spec_of(run).seeds) + 1]
    used = sorted(set(seeds) & set(spec_of(run).seeds))
    if used:
        note(f"{words.seeds_text(used).capitalize()} was used by the search: other seeds are fairer.")
    note(f"Trial {chosen.number}: {params_text(chosen)}")
    # Nothing of the runs was typed: all of it stands in what the sweep has made.
    made = {"run": run.run_id, "set": [], "extra": [], "emit_summary": False}
    return launch(
        best_configs(run, chosen, seeds, args.total_timesteps), argparse.Namespace(**{**vars(args), **made})
    )


def _chosen(study: Study | None, number: int | None, run: RunRecord) -> Trial:
    trials = study.trials if study else ()
    if number is not None:
        found = next((one for one in trials if one.number == number), None)
        if found is None:
            raise NotFoundError(f"Sweep {run.run_id} has no trial {number}.")
        return found
    if study is not None and len(study.directions) > 1:
        raise UserError("With several objectives there is no single best: choose one with --trial N.")
    if study is None or study.best is None:
        raise ConflictError(f"Sweep {run.run_id} has no complete trial yet.")
    if (line := lineage(study)) is not None and line.final is not None:
        raise UserError(
            "The best of a population came by several sets of parameters: choose one with --trial N, or "
            f"train that member on with `{program()} train --resume {line.final.run} --extend N`."
        )
    return study.best


def _dashboard(rest: Sequence[str], args: argparse.Namespace) -> int:
    """Optuna's own pages on the study, until Ctrl-C."""
    from importlib.util import find_spec

    if find_spec("optuna_dashboard") is None:
        raise UserError(f"optuna-dashboard is not installed: `{program()} extras install sweeps`.")
    with connect(args) as client:
        run = _find(client, rest[0])
    from mosaic.client.board import choose_port
    from mosaic.sweeps.beside import MODULE
    from mosaic.sweeps.configs import spec_of
    from mosaic.sweeps.storage import open_storage

    spec = spec_of(run)
    if spec.population is not None:
        raise UserError(
            f"Sweep {run.run_id} is a population, which Optuna does not know: "
            f"`{program()} sweep show {run.run_id}` draws it."
        )
    # An error of the storage is told here, in a sentence.
    storage = spec.storage
    open_storage(storage, Path(run.run_dir), os.environ)
    port = choose_port(args.port, _DASHBOARD_PORT)
    command = [sys.executable, "-P", "-m", MODULE, "dashboard", storage, run.run_dir, str(port)]
    # It tells every request that it gets.
    with termination_raises(), subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            if process.wait():
                raise MosaicError("The dashboard has ended by itself: it said nothing.")
        except (KeyboardInterrupt, Terminated):
            process.terminate()
            say("\nThe dashboard has ended.")
    return 0


_ACTIONS: dict[str, Callable[[Sequence[str], argparse.Namespace], int]] = {
    "list": _list,
    "show": _show,
    "init": _init,
    "resume": _resume,
    "extend": _extend,
    "train-best": _train_best,
    "dashboard": _dashboard,
}
