"""Whether a sweep loses or repeats a trial when sweep, daemon and trials are killed at random moments.

python benchmarks/sweep_crash.py [--kills 20] [--trials 12] [--steps 12000] [--seed 1] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tables import Row, write_tables
from tables import Table as ResultTable

from mosaic.client import Client
from mosaic.client.daemon import stop_daemon
from mosaic.contract.fsm import LIVE
from mosaic.contract.outside import read_json
from mosaic.sweeps.configs import sweep_config
from mosaic.sweeps.optuna_records import read_elsewhere
from mosaic.sweeps.storage import DATABASE
from mosaic.sweeps.study import COMPLETE, ENDED, Study, read_study
from mosaic.sweeps.sweep_file import parse_spec

KINDS = {
    "sweep": "mosaic.sweeps.worker",
    "daemon": "mosaic.trainer",
    "trial": "cleanrl_worker.cli",
    "training": "launcher.py",
}
"""Words of the command lines of those that are killed."""
LONGEST = 1800.0
TEXT = """\
A sweep of `ppo` on CartPole-v1, two trials at a time. At random moments one of its processes is killed with
`kill -9`: the sweep, the daemon, a trial's supervisor, or its training process. Nobody calls the daemon
meanwhile: what comes back has come back by itself. Only when both sweep and daemon are dead, as after a
reboot, a command is run that starts a daemon, as any does.
"""


@dataclass(frozen=True)
class Verdict:
    """What is left at the end."""

    study: Study
    lost: list[str]
    repeated: list[str]
    kills: Mapping[str, int]
    seconds: float


def table(trials: int, steps: int) -> dict[str, Any]:
    """The sweep file."""
    return {
        "algo": "ppo",
        "env": "CartPole-v1",
        "total_timesteps": steps,
        "trials": trials,
        "parallel": 2,
        "set": {"checkpoint_every": 2000, "eval_episodes": 0},
        "space": {"learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}, "num_steps": [32, 64]},
        "pruner": {"name": "median", "n_startup_trials": 4},
        "run": {"max_restarts": 10},
    }


def processes(var: Path, kind: str) -> list[psutil.Process]:
    """The live processes of one kind that belong to a var folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if not any(KINDS[kind] in word for word in words):
            continue
        try:
            told = process.environ()
            ours = told.get("MOSAIC_VAR") == str(var) or str(var) in words
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def sweep_ended(run_dir: Path) -> bool:
    try:
        return read_json(run_dir / "analytics.json")["status"] in ("completed", "failed", "cancelled")
    except (OSError, ValueError):
        return False


def torture(
    var: Path, config: Mapping[str, Any], kills: int, chance: random.Random, pace: float = 4.0
) -> Verdict:
    """Run a sweep, kill what belongs to it at random moments, wait for its end, and look what came of it.

    Between two kills are at most `pace` seconds.
    """
    with Client.connect(var) as client:
        sweep = client.submit(config).run_id
    run_dir = var / "trainer" / "runs" / sweep
    began, done = time.monotonic(), Counter[str]()
    while not sweep_ended(run_dir) and time.monotonic() < began + LONGEST:
        time.sleep(chance.uniform(0.1, pace))
        kind = chance.choice(list(KINDS))
        if not processes(var, "daemon") and not processes(var, "sweep"):
            Client.connect(var).close()
            done["command"] += 1
        victims = processes(var, kind)
        if victims and done.total() - done["command"] < kills:
            victim = chance.choice(victims)
            try:
                os.kill(victim.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            done[kind] += 1
            print(f"{time.monotonic() - began:6.1f} s  {kind} {victim.pid} was killed", flush=True)
    with Client.connect(var) as client:
        client.wait(sweep, 60)
        return judge(client, sweep, done, time.monotonic() - began)


def judge(client: Client, sweep: str, kills: Mapping[str, int], seconds: float) -> Verdict:
    """Compare Optuna's storage, or the study of a benchmark, with the runs that the daemon has."""
    run = client.get(sweep)
    database, told = Path(run.run_dir) / DATABASE, read_study(Path(run.run_dir))
    study = read_elsewhere(str(database), "", os.environ) if told is None or database.exists() else told
    runs = client.runs(filter=f"sweep={sweep}")
    by_trial = Counter(one.config["metadata"]["ui"]["trial"] for one in runs)
    lost = [f"trial {one.number} is {one.state}" for one in study.trials if one.state not in ENDED]
    wanted = run.worker_config["sweep"]["trials"]
    lost += [f"trial {number} is missing" for number in range(len(study.trials), wanted)]
    lost += [f"trial {one.number} has no run" for one in study.trials if not by_trial[one.number]]
    known = {run_id for one in study.trials for run_id in one.runs}
    lost += [f"run {one.run_id} belongs to no trial" for one in runs if one.run_id not in known]
    lost += [f"run {one.run_id} still lives" for one in runs if one.status in LIVE]
    outcomes = {one.run_id: one.outcome for one in runs}
    lost += [
        f"trial {one.number} is complete, but its run is {outcomes.get(run_id)}"
        for one in study.with_state(COMPLETE)
        for run_id in one.runs
        if outcomes.get(run_id) != "completed"
    ]
    if run.outcome != "completed":
        lost.append(f"the sweep is {run.outcome}: {run.reason}")
    repeated = [f"trial {number} has {count} runs" for number, count in by_trial.items() if count > 1]
    repeated += [f"trial {number} is beyond the budget" for number in range(wanted, len(study.trials))]
    return Verdict(study, lost, repeated, kills, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    var = (options.keep or Path(tempfile.mkdtemp(prefix="sweep-crash-"))).resolve() / "var"
    os.environ |= {"MOSAIC_VAR": str(var), "MOSAIC_CPUS": "2"}
    config = sweep_config(parse_spec(table(options.trials, options.steps)))
    try:
        verdict = torture(var, config, options.kills, random.Random(options.seed))
    finally:
        with Client.connect(var) as client:
            for run in client.runs(sorted(LIVE)):
                client.cancel(run.run_id)
            stop_daemon(client.paths)
        if options.keep is None:
            shutil.rmtree(var.parent, ignore_errors=True)
    report(verdict)
    print(*verdict.lost, *verdict.repeated, sep="\n")
    return 1 if verdict.lost or verdict.repeated else 0


def report(verdict: Verdict) -> None:
    killed = {kind: count for kind, count in sorted(verdict.kills.items()) if kind in KINDS}
    kills, total = ", ".join(f"{count} × {kind}" for kind, count in killed.items()), sum(killed.values())
    states = Counter(one.state for one in verdict.study.trials)
    rows: Sequence[Row] = [
        Row(
            "processes killed",
            f"{total}: {kills}",
            "20",
            total >= 20,
        ),
        Row("trials lost", str(len(verdict.lost)), "0", not verdict.lost),
        Row("trials repeated", str(len(verdict.repeated)), "0", not verdict.repeated),
        Row("trials told", ", ".join(f"{n} {state}" for state, n in sorted(states.items())), "–", True),
        Row("daemons that a command had to start", str(verdict.kills.get("command", 0)), "–", True),
        Row("time", f"{verdict.seconds:.0f} s", "–", True),
    ]
    header = ["what", "measured", "limit", "held"]
    write_tables(
        "sweep_crash", "Sweeps that are killed", TEXT, [ResultTable(header, [row.cells() for row in rows])]
    )


if __name__ == "__main__":
    raise SystemExit(main())
