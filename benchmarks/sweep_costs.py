"""What a sweep costs and brings: use of slots, its own CPU time, what pruning saves, tuned against default.

python benchmarks/sweep_costs.py [slots] [pruning] [tuned] [--trials 20] [--steps N] [--keep FOLDER]

Without a name all three are measured; what is not measured keeps its table. Sweeps that are finished in
FOLDER are not run again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
from tables import Table, put_section, section_of, write_tables

from mosaic.analytics.statistics import Interval, interval
from mosaic.client import Client, RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.fsm import LIVE
from mosaic.contract.outside import read_json
from mosaic.contract.paths import choose_var
from mosaic.sweeps.configs import best_configs, sweep_config
from mosaic.sweeps.study import COMPLETE, PRUNED, Study, read_study
from mosaic.sweeps.sweep_file import parse_spec

SLOTS = 2
RETURN = "charts/episodic_return"
LAST = 50
SLOTS_HEADING, PRUNING, TUNED = "Slots", "Pruning", "Tuned against default"
HEADER = ("what", "measured", "limit", "held")
TEXT = f"""\
Sweeps of `ppo`: on {SLOTS} slots of one CPU each under "Slots", a trial at a time elsewhere. The time of a
slot is busy from the start of a trial's supervisor to the end of its processes; trials wait from the start of
the sweep until the last one is submitted. CPU time is that of the sweep's process, and that of all processes
of its trials.
"""
LR = {"low": 1e-4, "high": 1e-2, "log": True}
SMALL = {
    "learning_rate": LR,
    "num_steps": [32, 64, 128],
    "update_epochs": {"low": 1, "high": 10},
    "gamma": [0.9, 0.98, 0.99],
}


@dataclass(frozen=True)
class Bench:
    """A daemon of our own, and how much is asked of it."""

    client: Client
    folder: Path
    trials: int
    steps: int
    repetitions: int

    def sweep(self, name: str, **table: Any) -> RunRecord:
        """A finished sweep, found again by its name."""
        for run in self.client.runs(["TERM"]):
            if run.run_name == name and run.outcome == "completed":
                return self.client.get(run.run_id)
        asked = {"algo": "ppo", "parallel": 1, "name": name, **table}
        run = self.client.submit(sweep_config(parse_spec(asked)))
        began = time.monotonic()
        watcher = _Cpu(self.client, run.run_id)
        while not self.client.get(run.run_id).ended:
            watcher.look()
            time.sleep(0.5)
        watcher.keep(self.folder / f"{name}.json")
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
        return self.client.get(run.run_id)

    def trials_of(self, sweep: RunRecord) -> list[RunRecord]:
        return [self.client.get(one.run_id) for one in self.client.runs(filter=f"sweep={sweep.run_id}")]

    def study(self, sweep: RunRecord) -> Study:
        study = read_study(Path(sweep.run_dir))
        assert study is not None
        return study


class _Cpu:
    """CPU seconds of a sweep's process and of those of its trials, as they were last seen."""

    def __init__(self, client: Client, sweep: str) -> None:
        self._client = client
        self._sweep = sweep
        self._own: dict[int, float] = {}
        self._trials: dict[int, float] = {}

    def look(self) -> None:
        sweep = self._client.get(self._sweep)
        if sweep.supervisor_pid:
            self._own |= _seconds(sweep.supervisor_pid, below=False)
        for run in self._client.runs(sorted(LIVE), filter=f"sweep={self._sweep}"):
            if run.supervisor_pid:
                self._trials |= _seconds(run.supervisor_pid, below=True)

    def keep(self, path: Path) -> None:
        from mosaic.contract.atomic import write_json

        write_json(path, {"sweep": sum(self._own.values()), "trials": sum(self._trials.values())})


def _seconds(pid: int, below: bool) -> dict[int, float]:
    found = {}
    try:
        process = psutil.Process(pid)
        for one in [process, *(process.children(recursive=True) if below else [])]:
            times = one.cpu_times()
            found[one.pid] = times.user + times.system
    except psutil.Error:
        pass
    return found


def slots(bench: Bench) -> Table:
    """Trials on CartPole-v1: how much of the slots' time is used, and what the sweep takes."""
    steps = bench.steps or 200_000
    table = {"env": "CartPole-v1", "total_timesteps": steps, "trials": bench.trials, "space": SMALL}
    sweep = bench.sweep("slots", **table, pruner="none", parallel=SLOTS)
    runs = bench.trials_of(sweep)
    began = min(run.submitted_at for run in runs)
    last = max(run.submitted_at for run in runs)
    busy = sum(min(run.ended_at or last, last) - min(run.started_at or last, last) for run in runs)
    share = busy / (SLOTS * (last - began))
    cpu = read_json(bench.folder / "slots.json")
    own = cpu["sweep"] / cpu["trials"]
    return Table(
        HEADER,
        [
            ["trials", f"{len(runs)} of {steps:,} steps in {(sweep.ended_at or 0) - began:.0f} s", "20", "–"],
            ["slot time busy while trials wait", f"{share:.1%}", "over 95%", _held(share > 0.95)],
            ["CPU time of the sweep", f"{cpu['sweep']:.1f} s", "–", "–"],
            ["CPU time of its trials", f"{cpu['trials']:.0f} s", "–", "–"],
            ["share of the sweep", f"{own:.2%}", "under 1%", _held(own < 0.01)],
        ],
        heading=SLOTS_HEADING,
    )


def _held(held: bool) -> str:
    return "yes" if held else "**no**"


def pruning(bench: Bench) -> Table:
    """The same search with and without pruning: the steps of all trials, and the best value of each.

    The task is one on which much of the known space fails: where nearly all do well, nothing is to be pruned.
    """
    steps = bench.steps or 50_000
    rows, saved, bests = [], [], {"median": list[float](), "none": list[float]()}
    for number in range(1, bench.repetitions + 1):
        spent = {}
        for pruner in bests:
            table = {"env": "LunarLander-v3", "total_timesteps": steps, "trials": bench.trials}
            sampler = {"name": "tpe", "seed": number}
            name = f"pruning-LunarLander-v3-{pruner}-{number}"
            sweep = bench.sweep(name, **table, sampler=sampler, pruner=pruner)
            study = bench.study(sweep)
            assert study.best is not None
            bests[pruner].append(study.best.values[0])
            ended = study.with_state(COMPLETE, PRUNED)
            spent[pruner] = sum(_steps(bench, run_id) for one in ended for run_id in one.runs)
        saved.append(1 - spent["median"] / spent["none"])
        best = (bests["median"][-1], bests["none"][-1])
        rows.append([str(number), f"{spent['median']:,}", f"{spent['none']:,}", f"{saved[-1]:.0%}"])
        rows[-1] += [f"{best[0]:.1f}", f"{best[1]:.1f}"]
    low, high = interval([bests["median"]]), interval([bests["none"]])
    overlap = low.low <= high.high and high.low <= low.high
    rows.append(["mean", "", "", f"**{fmean(saved):.0%}** (at least 30%: {_held(fmean(saved) >= 0.3)})"])
    rows[-1] += [_interval(low), f"{_interval(high)} (same within it: {_held(overlap)})"]
    header = ("seed", "steps, pruned", "steps, not pruned", "saved", "best, pruned", "best, not pruned")
    return Table(header, rows, heading=PRUNING)


def _steps(bench: Bench, run_id: str) -> int:
    return int(bench.client.get(run_id).headline.get("step") or 0)


def _interval(found: Interval) -> str:
    return f"{found.value:.1f} ({found.low:.1f} to {found.high:.1f})"


def tuned(bench: Bench) -> Table:
    """The best of a search against the defaults, with five seeds that the search did not use."""
    rows = []
    for env_id in ("Acrobot-v1", "LunarLander-v3"):
        steps = bench.steps or 50_000
        name = f"tuned-{env_id}"
        table = {"env": env_id, "total_timesteps": steps, "trials": 2 * bench.trials}
        sweep = bench.sweep(name, **table)
        study = bench.study(sweep)
        assert study.best is not None
        best = best_configs(sweep, study.best, range(101, 106))
        usual = [_without_params(config) for config in best]
        scores = {
            "tuned": _returns(bench, f"{name}-best", best),
            "default": _returns(bench, f"{name}-usual", usual),
        }
        found = {which: interval([values]) for which, values in scores.items()}
        better = found["tuned"].low > found["default"].high
        params = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in study.best.params.items()
        )
        rows.append(
            [
                env_id,
                f"{steps:,}",
                _interval(found["tuned"]),
                _interval(found["default"]),
                _held(better),
                params,
            ]
        )
    header = (
        "environment",
        "steps",
        "tuned: mean (95%)",
        "default: mean (95%)",
        "intervals apart",
        "parameters",
    )
    return Table(header, rows, heading=TUNED)


def _without_params(config: dict[str, Any]) -> dict[str, Any]:
    request = config["metadata"]["worker"]
    asked = request["config"]
    extras = {**asked["extras"], "algo_params": {}}
    return {
        **config,
        "metadata": {**config["metadata"], "worker": {**request, "config": {**asked, "extras": extras}}},
    }


def _returns(bench: Bench, name: str, configs: Sequence[dict[str, Any]]) -> list[float]:
    """The mean return of each run's last episodes."""
    done = {run.run_name: run for run in bench.client.runs(["TERM"]) if run.outcome == "completed"}
    runs = []
    for config in configs:
        title = f"{name}-{config['metadata']['worker']['config']['seed']}"
        runs.append(done.get(title) or bench.client.submit({**config, "run_name": title}))
    ended = [bench.client.wait(run.run_id) for run in runs]
    return [float(bench.client.metrics(run.run_id).series(RETURN).values[-LAST:].mean()) for run in ended]


PARTS: dict[str, tuple[str, Callable[[Bench], Table]]] = {
    "slots": (SLOTS_HEADING, slots),
    "pruning": (PRUNING, pruning),
    "tuned": (TUNED, tuned),
}


def main() -> int:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    folder = (options.keep or Path(tempfile.mkdtemp(prefix="sweeps-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"MOSAIC_VAR": str(folder / "var"), "MOSAIC_CPUS": str(SLOTS)}
    tables = []
    try:
        with Client.connect(choose_var(None)) as client:
            bench = Bench(client, folder, options.trials, options.steps, options.repetitions)
            tables = [PARTS[name][1](bench) for name in options.parts or PARTS]
            for run in client.runs(sorted(LIVE)):
                client.cancel(run.run_id)
            stop_daemon(client.paths)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    kept = [
        section_of("sweep_costs", PARTS[name][0]) for name in PARTS if name not in (options.parts or PARTS)
    ]
    packages = ("torch", "gymnasium", "numpy", "optuna")
    write_tables("sweep_costs", "Sweeps", TEXT, tables, packages, ("benchmarks/sweep_costs.py",))
    for section in filter(None, kept):
        put_section("sweep_costs", section)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
