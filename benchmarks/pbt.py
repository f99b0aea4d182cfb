"""What population-based training brings over as many fixed configurations with the same steps.

python benchmarks/pbt.py [--env CartPole-v1] [--steps 20000] [--members 6] [--generations 5] [--repetitions 3]
                         [--keep FOLDER]

The fixed configurations are the members that the population begins with, with the same seeds, trained to the
end as they are. Both are judged by their training returns over the last piece of the population. What is
finished in FOLDER is not run again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from tables import Table, write_tables

from mosaic.analytics.statistics import interval
from mosaic.analytics.store import RunMetrics
from mosaic.client import Client, RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import choose_var
from mosaic.sweeps.configs import sweep_config
from mosaic.sweeps.generations import first_generation
from mosaic.sweeps.population import lineage
from mosaic.sweeps.spec import SweepSpec, with_params
from mosaic.sweeps.study import read_study
from mosaic.sweeps.sweep_file import parse_spec

RETURN = "charts/episodic_return"
SPACE = {
    "learning_rate": {"low": 1e-5, "high": 1e-2, "log": True},
    "ent_coef": {"low": 1e-4, "high": 0.1, "log": True},
    "clip_coef": [0.1, 0.2, 0.3],
}
TEXT = """\
Mean training return of `ppo` over the last piece of a population, against as many fixed configurations. These
are the configurations that the population begins with, with the same seeds and steps. Mean over the
repetitions, with its 95 % bootstrap interval. A member that never copied must end with the same bytes of
weights as its fixed twin, although it was trained in pieces.

{task}: {members} members of {steps} steps in {generations} pieces, {repetitions} times.
For more:
`python benchmarks/pbt.py --env Acrobot-v1 --steps 200000 --members 8 --generations 10 --repetitions 10`
"""


@dataclass(frozen=True)
class Pair:
    """What a population and its fixed twin have reached: the returns of all members, best first."""

    population: list[float]
    fixed: list[float]
    copies: int
    """How often a member was copied."""
    untouched: int
    """How many members never copied."""
    same: int
    """How many of those ended with the same bytes of weights as their fixed twin, which has no pieces."""


def spec_of(args: argparse.Namespace, repetition: int) -> SweepSpec:
    return parse_spec(
        {
            "kind": "pbt",
            "name": f"pbt-{repetition}",
            "algo": "ppo",
            "env": args.env,
            "total_timesteps": args.steps,
            "seeds": [1 + 1000 * repetition],
            "set": {"anneal_lr": False},
            "space": SPACE,
            "population": {
                "members": args.members,
                "interval": -(-args.steps // args.generations),
                "seed": repetition,
            },
            "objective": {"points": 20},
        }
    )


def finished(client: Client, config: dict[str, Any]) -> RunRecord:
    """A run by its name, which may have been finished before."""
    for run in client.runs(filter=f"name={config['run_name']}"):
        if run.run_name == config["run_name"] and run.outcome in (None, "completed"):
            return run
    return client.submit(config)


def end_return(client: Client, run_id: str, since: int) -> float:
    """The mean training return after a step; the last ones where no episode has ended there."""
    metrics = RunMetrics(client.paths.runs / run_id)
    metrics.refresh()
    series = metrics.series(RETURN)
    late = series.values[series.steps > since]
    return float(fmean(late if len(late) else series.values[-1:]))


def compare(client: Client, spec: SweepSpec) -> Pair:
    population = spec.population
    assert population is not None
    sweep = client.wait(finished(client, sweep_config(spec)).run_id)
    study = read_study(Path(sweep.run_dir))
    found = lineage(study) if study is not None else None
    assert found is not None and sweep.outcome == "completed", sweep.reason
    runs = []
    for trial in first_generation(spec, population):
        config = dict(spec.templates[0].config)
        request = config["metadata"]["worker"]
        asked = with_params(request["config"], trial.params)
        asked["seed"] = spec.seeds[0] + trial.number
        config["metadata"] = {**config["metadata"], "worker": {**request, "config": asked}}
        config["run_name"] = f"{spec.name}-fixed-{trial.number}"
        runs.append(finished(client, config))
    since = (population.generations - 1) * population.interval
    last = [one for one in found.pieces if one.generation == population.generations - 1]
    for one in runs:
        client.wait(one.run_id)
    untouched = [one for one in last if all(step.copied_from is None for step in found.ancestors(one.trial))]
    return Pair(
        sorted((end_return(client, one.run, since) for one in last), reverse=True),
        sorted((end_return(client, one.run_id, since) for one in runs), reverse=True),
        sum(one.copied_from is not None for one in found.pieces),
        len(untouched),
        sum(weights(client, one.run) == weights(client, runs[one.member].run_id) for one in untouched),
    )


def weights(client: Client, run_id: str) -> bytes:
    """The model that a run has left."""
    (path,) = (client.paths.runs / run_id).glob("runs/*/*.cleanrl_model")
    return path.read_bytes()


def told(values: list[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


def tables(pairs: list[Pair]) -> list[Table]:
    rows = []
    for number, one in enumerate(pairs, 1):
        values = (one.population[0], one.fixed[0], median(one.population), median(one.fixed))
        rows.append(
            [
                str(number),
                *(f"{value:.0f}" for value in values),
                str(one.copies),
                str(one.untouched),
                str(one.same),
            ]
        )
    header = ("repetition", "best: population", "best: fixed")
    each = Table(
        (*header, "median: population", "median: fixed", "copies", "never copied", "of these the same bytes"),
        rows,
        "Each repetition",
    )
    whole = []
    for what, pick in (("best member", max), ("median member", median), ("worst member", min)):
        cells = []
        for values in ([one.population for one in pairs], [one.fixed for one in pairs]):
            found = interval([[float(pick(one)) for one in values]])
            cells.append(f"{found.value:.0f} ({found.low:.0f} to {found.high:.0f})")
        gain = fmean(float(pick(one.population)) - float(pick(one.fixed)) for one in pairs)
        whole.append([what, *cells, f"{gain:+.0f}"])
    return [Table(("what", "population", "fixed", "difference"), whole), each]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--members", type=int, default=6)
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    folder = args.keep or Path(tempfile.mkdtemp(prefix="pbt-"))
    os.environ["MOSAIC_VAR"] = str(folder / "var")
    try:
        with Client.connect(choose_var(folder / "var")) as client:
            pairs = []
            for number in range(1, args.repetitions + 1):
                pairs.append(compare(client, spec_of(args, number)))
                print(f"{number}: population {told(pairs[-1].population)}", flush=True)
                print(f"{number}: fixed      {told(pairs[-1].fixed)}", flush=True)
            paths = client.paths
        stop_daemon(paths)
    finally:
        if args.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    text = TEXT.format(
        task=args.env,
        members=args.members,
        steps=f"{args.steps:,}",
        generations=args.generations,
        repetitions=args.repetitions,
    )
    write_tables("pbt", "Population-based training", text, tables(pairs))


if __name__ == "__main__":
    main()
