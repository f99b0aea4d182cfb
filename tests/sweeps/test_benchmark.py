"""Benchmarks in a real daemon: each cell is trained once, whatever is killed, and what is there is kept."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import RunMosaic
from mosaic.analytics.report import write_report
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.fsm import LIVE
from mosaic.sweeps.benchmark_file import parse_benchmark
from mosaic.sweeps.benchmark_results import results_of
from mosaic.sweeps.configs import best_configs, continue_config, sweep_config
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.study import COMPLETE, ENDED, FAILED, Study, read_study
from mosaic.sweeps.tables import SpecError
from support.runs import end, wait_for_status
from sweeps.conftest import SCRIPT
from sweeps.test_sweep_runs import until, until_trials_train

SECONDS = 120.0


@pytest.fixture(autouse=True)
def two_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_CPUS", "2")


def bench_table(**changes: Any) -> dict[str, Any]:
    """Two algorithms on two environments with one seed: four cells."""
    algos = [
        {"name": str(SCRIPT), "label": label, "set": {"lr": lr}}
        for label, lr in (("good", 0.01), ("bad", 0.1))
    ]
    return {"algo": algos, "env": ["A-v0", "B-v0"], "total_timesteps": 1000, "seeds": 1, **changes}


def bench(**changes: Any) -> SweepSpec:
    return parse_benchmark(bench_table(**changes), "quick")


def bench_file(folder: Path, seeds: Any = 1, pause: float = 0.0) -> Path:
    path = folder / "quick.toml"
    lines = ['env = ["A-v0", "B-v0"]', "total_timesteps = 1000", f"seeds = {json.dumps(seeds)}"]
    for label, lr in (("good", 0.01), ("bad", 0.1)):
        lines += ["[[algo]]", f'name = "{SCRIPT}"', f'label = "{label}"']
        lines += [f"set = {{ lr = {lr}, pause = {pause} }}"]
    path.write_text("\n".join([*lines, ""]))
    return path


def started(client: Client, **changes: Any) -> RunRecord:
    return client.submit(sweep_config(bench(**changes)))


def study_of(client: Client, run: RunRecord) -> Study:
    study = read_study(Path(client.get(run.run_id).run_dir))
    assert study is not None
    return study


def cells_of(client: Client) -> list[RunRecord]:
    return client.runs(tags=["quick"])


def test_every_cell_is_trained_once_under_the_name_of_the_benchmark(client: Client) -> None:
    run = client.wait(started(client, seeds="3-4").run_id, SECONDS)
    assert (run.outcome, run.headline["trials"]) == ("completed", 8)
    study = study_of(client, run)
    assert [one.state for one in study.trials] == [COMPLETE] * 8
    assert study.best is None
    told = {tuple(one.params.values()) for one in study.trials}
    assert told == {(a, e, s) for a in ("good", "bad") for e in ("A-v0", "B-v0") for s in (3, 4)}
    runs = {one.run_id: one for one in cells_of(client)}
    assert len(runs) == 8
    for one in study.trials:
        asked = runs[one.runs[0]].worker_config
        assert (asked["env_id"], asked["seed"]) == (one.params["env"], one.params["seed"])
        assert asked["extras"]["algo_params"]["lr"] == {"good": 0.01, "bad": 0.1}[str(one.params["algo"])]


def test_the_same_name_again_trains_only_what_is_missing(client: Client) -> None:
    first = client.wait(started(client).run_id, SECONDS)
    known = {one.run_id for one in cells_of(client)}
    gone = study_of(client, first).trials[2].runs[0]
    client.remove(gone)
    second = client.wait(started(client, seeds=[1, 2]).run_id, SECONDS)
    study = study_of(client, second)
    assert [one.state for one in study.trials] == [COMPLETE] * 8
    used = {one.runs[0] for one in study.trials}
    assert known - {gone} <= used
    assert len(cells_of(client)) == 8
    # Other settings are another cell, however it is called.
    third = client.wait(started(client, total_timesteps=2000).run_id, SECONDS)
    assert not used & {one.runs[0] for one in study_of(client, third).trials}


def test_what_has_failed_is_told_and_trained_again_with_the_next_start(client: Client) -> None:
    algos = bench_table()["algo"]
    algos[1]["set"]["fail_below"] = 1.0
    run = client.wait(started(client, algo=algos, run={"max_restarts": 0}).run_id, SECONDS)
    assert run.outcome == "completed"
    study = study_of(client, run)
    assert [one.state for one in study.trials] == [COMPLETE, COMPLETE, FAILED, FAILED]
    assert "is too low" in study.trials[2].reason
    again = client.wait(client.submit(continue_config(run, study, None)).run_id, SECONDS)
    runs = [one.runs[0] for one in study_of(client, again).trials]
    assert runs[:2] == [one.runs[0] for one in study.trials[:2]]
    assert not set(runs[2:]) & {one.runs[0] for one in study.trials}
    with pytest.raises(UserError, match="has no best trial"):
        best_configs(run, study.trials[0], [1])


def test_a_benchmark_pauses_goes_on_is_cancelled_and_goes_on(client: Client) -> None:
    algos = bench_table()["algo"]
    for one in algos:
        one["set"]["pause"] = 0.2
    run = started(client, algo=algos)
    live = until_trials_train(client, run)
    assert client.pause(run.run_id).status == "PAUSE"
    for one in live:
        wait_for_status(client, one.run_id, "PAUSE")
    client.resume(run.run_id)
    until(lambda: len(study_of(client, run).with_state(COMPLETE)) >= 2)
    client.cancel(run.run_id)
    ended = client.wait(run.run_id, SECONDS)
    assert ended.outcome == "cancelled"
    until(lambda: not [one for one in cells_of(client) if not one.ended])
    interrupted = study_of(client, run).with_state(FAILED)
    assert {one.reason for one in interrupted} == {"its benchmark was cancelled"}
    done = {one.runs[0] for one in study_of(client, run).with_state(COMPLETE)}
    again = client.wait(started(client, algo=algos).run_id, SECONDS)
    study = study_of(client, again)
    assert [one.state for one in study.trials] == [COMPLETE] * 4
    assert done <= {one.runs[0] for one in study.trials}


def test_a_killed_benchmark_goes_on_with_the_same_runs_also_without_its_notes(client: Client) -> None:
    algos = bench_table()["algo"]
    for one in algos:
        one["set"]["pause"] = 0.2
    run = started(client, algo=algos)
    live = until_trials_train(client, run)
    pid = int(client.get(run.run_id).supervisor_pid or 0)
    os.kill(pid, signal.SIGSTOP)
    # What a crash of the machine may take: lines that were not synced.
    (Path(run.run_dir) / "study.jsonl").unlink()
    os.kill(pid, signal.SIGKILL)
    ended = client.wait(run.run_id, SECONDS)
    assert ended.outcome == "completed"
    assert [one.state for one in study_of(client, run).trials] == [COMPLETE] * 4
    runs = cells_of(client)
    assert len(runs) == 4
    assert {one.outcome for one in runs} == {"completed"}
    assert {one.run_id for one in live} <= {one.run_id for one in runs}


@pytest.mark.timeout(400)
def test_whatever_is_killed_no_cell_is_lost_or_repeated(var: Path) -> None:
    from sweep_crash import torture

    algos = bench_table()["algo"]
    for one in algos:
        one["set"]["pause"] = 0.2
    config = sweep_config(bench(algo=algos, seeds="1-2", run={"max_restarts": 10}))
    verdict = torture(var, config, 5, random.Random(5), pace=1.5)
    assert not verdict.lost
    assert not verdict.repeated
    assert sum(verdict.kills.values()) >= 4
    assert {one.state for one in verdict.study.trials} <= ENDED
    with Client.connect(var) as client:
        end(client, *client.runs(sorted(LIVE)))


def test_a_curve_that_is_never_logged_ends_it_with_a_sentence(client: Client) -> None:
    ended = client.wait(started(client, metric="charts/episodic_retrun", seeds="1-9").run_id, SECONDS)
    assert ended.outcome == "failed"
    assert "did you mean 'charts/episodic_return'? " in str(ended.reason)
    assert "Name one of them in 'metric'." in str(ended.reason)
    assert len(cells_of(client)) < 6
    until(lambda: not [one for one in cells_of(client) if not one.ended])


def test_the_process_of_a_benchmark_needs_no_optuna() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "import mosaic.sweeps.worker, mosaic.sweeps.benchmark, mosaic.sweeps.benchmark_file\n"
        "import mosaic.sweeps.benchmark_results, mosaic.cli.commands.benchmark\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_line_trains_tells_and_writes(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    scores = '[scores]\n"A-v0" = [0, 100]\n"B-v0" = [50, 52]\n'
    file = bench_file(tmp_path, seeds="1-2")
    file.write_text(file.read_text() + scores)
    dry = run_mosaic("benchmark", str(file), "--dry-run")
    assert "4 lines below, seeds 1–2" in dry.stdout
    assert "nothing was started" in dry.stderr
    outputs = {name: tmp_path / name for name in ("r.html", "t.md", "t.csv")}
    options = (
        "-o",
        str(outputs["r.html"]),
        "--markdown",
        str(outputs["t.md"]),
        "--csv",
        str(outputs["t.csv"]),
    )
    done = run_mosaic("benchmark", str(file), *options)
    assert done.stdout.count(": complete ") == 8
    page = outputs["r.html"].read_text()
    assert "Performance profiles" in page
    assert "good · A-v0" in page
    compared = json.loads(run_mosaic("compare", "quick", "--json").stdout)
    assert {group["label"] for group in compared["groups"]} == {
        f"{algo} · {env_id}" for algo in ("good", "bad") for env_id in ("A-v0", "B-v0")
    }
    assert "references that were given (A-v0 0.00 and 100.0; B-v0 50.0 and 52.0)" in page
    assert "| good | 52.5" in outputs["t.md"].read_text()
    lines = outputs["t.csv"].read_text().splitlines()
    assert len(lines) == 9
    shown = json.loads(run_mosaic("benchmark", "show", "quick", "--json").stdout)
    assert [cell["ended"] for cell in shown["cells"]] == [2] * 4
    good, bad = shown["aggregates"]["good"], shown["aggregates"]["bad"]
    assert good["mean"]["value"] == pytest.approx((0.525 + 1.254) / 2, abs=0.01)
    # Above the reference counts as reaching it.
    assert good["optimality gap"]["value"] == pytest.approx((0.475 + 0) / 2, abs=0.01)
    assert bad["median"]["value"] == pytest.approx((0.4725 - 1.37) / 2, abs=0.01)
    assert shown["improvements"][0] == {"algo": "good", "over": "bad", "value": 1.0, "low": 1.0, "high": 1.0}
    assert shown["profiles"]["algos"]["good"]["value"][0] == 1.0
    again = run_mosaic("benchmark", str(file))
    assert "All of it is trained already." in again.stderr
    assert len(json.loads(run_mosaic("benchmark", "list", "--json").stdout)) == 1
    assert "no sweep yet" in run_mosaic("sweep", "list").stdout


def test_a_benchmark_at_work_is_followed_and_not_doubled(
    run_mosaic: RunMosaic, tmp_path: Path, client: Client
) -> None:
    file = bench_file(tmp_path, pause=0.2)
    left = run_mosaic("benchmark", str(file), "--detach")
    assert "continues in the background" in left.stdout
    other = run_mosaic("benchmark", str(file), "--set", "seeds=[1,2]", check=False)
    assert other.returncode == ConflictError.exit_code
    assert "is still running with an older version of its file" in other.stderr
    followed = run_mosaic("benchmark", str(file))
    assert "is already running" in followed.stderr
    assert "4 of 4" in followed.stdout
    assert len(cells_of(client)) == 4


def test_runs_that_failed_make_the_command_fail(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    file = bench_file(tmp_path)
    file.write_text(
        file.read_text().replace("lr = 0.1,", "lr = 0.1, fail_below = 1.0,") + "[run]\nmax_restarts = 0\n"
    )
    done = run_mosaic("benchmark", str(file), check=False)
    assert done.returncode == 1
    assert "bad on A-v0, seed 1 and 1 more: " in done.stderr
    assert "lr 0.1 is too low" in done.stderr
    assert "Not over all environments: bad lacks results." in done.stderr


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"algo": None}, "'algo' is missing"),
        (
            {"algo": ["ppo", "dqnn"], "env": "CartPole-v1"},
            "'dqnn' is not a known algorithm; did you mean 'dqn'?",
        ),
        ({"algo": ["ppo", "ppo"], "env": "CartPole-v1"}, "2 algorithms are called 'ppo'"),
        ({"algo": [{"label": "x"}]}, "a table with a name"),
        (
            {"algo": [{"name": "ppo", "sets": {}}], "env": "CartPole-v1"},
            "has no setting 'sets'; did you mean 'set'?",
        ),
        ({"algo": "ppo", "env": "CartPole-v1", "set": {"lerning_rate": 1}}, "did you mean 'learning_rate'?"),
        ({"env": []}, "'env' is [], but must be a name"),
        ({"env": "A-v0", "total_timesteps": {"B-v0": 5}}, "'total_timesteps' has none for A-v0"),
        ({"total_timesteps": -3}, "'total_timesteps' is -3"),
        ({"seeds": "1-x"}, "'seeds' is '1-x'"),
        ({"parallel": 1.5}, "'parallel' is 1.5"),
        ({"name": "a,b"}, "'name' is 'a,b', but must be a word"),
        ({"metric": 3}, "'metric' is 3"),
        ({"scores": {"A-v0": [0, 1]}}, "'scores' lacks B-v0"),
        ({"scores": {"C-v0": [0, 1]}}, "which is not an environment here"),
        ({"scores": {"A-v0": [1, 1], "B-v0": [0, 1]}}, "must be [low, high]"),
        ({"trials": 3}, "A benchmark has no setting 'trials'"),
        ({"run": {"cpu": 1}}, "has no setting 'cpu'; did you mean 'cpus'?"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as caught:
        bench(**changes)
    assert told in str(caught.value)


def test_two_names_for_the_same_training_are_told() -> None:
    algos = [{"name": "ppo", "label": "a"}, {"name": "ppo", "label": "b", "set": {"learning_rate": 2.5e-4}}]
    spec = bench(algo=algos, env="CartPole-v1")
    assert spec.algos == ["a", "b"]
    algos[1]["set"] = {}
    with pytest.raises(SpecError, match="'b' and 'a' train the same on CartPole-v1"):
        bench(algo=algos, env="CartPole-v1")


def test_an_algorithm_may_have_environments_of_its_own(client: Client) -> None:
    good, bad = bench_table()["algo"]
    spec = bench(algo=[good, {**bad, "env": "B-v0"}, {**bad, "label": "lone", "env": ["C-v0"]}])
    assert [(one.algo, one.env_id) for one in spec.templates] == [
        ("good", "A-v0"),
        ("good", "B-v0"),
        ("bad", "B-v0"),
        ("lone", "C-v0"),
    ]
    run = client.wait(client.submit(sweep_config(spec)).run_id, SECONDS)
    results = results_of(spec, study_of(client, run))
    assert results.incomplete == ["good", "bad", "lone"]
    assert not results.aggregates
    assert "| bad | – | 47.3 | – |" in results.markdown()
    assert bench(algo=[{**bad, "env": "B-v0"}], env=["B-v0"]).env_ids == ["B-v0"]
    table = bench_table(algo=[{**bad, "env": "B-v0"}])
    del table["env"]
    assert parse_benchmark(table, "quick").trials == 1


def test_a_report_keeps_two_budgets_of_one_algorithm_apart(client: Client, tmp_path: Path) -> None:
    algos = [
        {"name": str(SCRIPT), "label": "short"},
        {"name": str(SCRIPT), "label": "long", "total_timesteps": 3000},
    ]
    client.wait(started(client, algo=algos).run_id, SECONDS)
    write_report(list(reversed(cells_of(client))), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Over all environments" in page
    assert "long · B-v0" in page


def test_a_budget_for_each_environment_and_algorithm() -> None:
    text = """
    algo = ["ppo", { name = "dqn", total_timesteps = 9000 }]
    env = ["CartPole-v1", "Acrobot-v1"]
    total_timesteps = { "CartPole-v1" = 5000, "Acrobot-v1" = 7000 }
    """
    spec = parse_benchmark(tomllib.loads(text), "budgets")
    steps = [one.config["metadata"]["worker"]["config"]["total_timesteps"] for one in spec.templates]
    assert steps == [5000, 7000, 9000, 9000]
    assert SweepSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec
