"""Sweeps in a real daemon: trials are runs, and whatever is killed, none is lost or repeated."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from conftest import RunMosaic
from mosaic.client import Client, RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.events import EventKind, LifecycleReader
from mosaic.contract.fsm import LIVE
from mosaic.sweeps.configs import best_configs, continue_config, sweep_config
from mosaic.sweeps.study import COMPLETE, ENDED, FAILED, PRUNED, Study, read_study
from support.runs import end, wait_for_status
from sweeps.conftest import quick_spec

SECONDS = 120.0


@pytest.fixture(autouse=True)
def two_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_CPUS", "2")


def started(client: Client, **changes: Any) -> RunRecord:
    return client.submit(sweep_config(quick_spec(**changes)))


def study_of(client: Client, run: RunRecord) -> Study:
    study = read_study(Path(client.get(run.run_id).run_dir))
    assert study is not None
    return study


def trials_of(client: Client, run: RunRecord) -> list[RunRecord]:
    return client.runs(filter=f"sweep={run.run_id}")


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


def until_trials_train(client: Client, run: RunRecord, count: int = 2) -> list[RunRecord]:
    def look() -> list[RunRecord]:
        found = [one for one in trials_of(client, run) if one.status == "EXEC"]
        return found if len(found) >= count else []

    return list(until(look))


def test_a_sweep_finds_the_best_and_its_trials_are_runs(client: Client) -> None:
    run = client.wait(started(client, trials=6).run_id, SECONDS)
    assert (run.outcome, run.exit_code) == ("completed", 0)
    assert run.headline["trials"] == 6
    study = study_of(client, run)
    assert [one.state for one in study.trials] == [COMPLETE] * 6
    assert study.best is not None
    assert run.headline["mean_return"] == pytest.approx(study.best.values[0])
    runs = {one.run_id: one for one in trials_of(client, run)}
    for one in study.trials:
        (run_id,) = one.runs
        asked = runs[run_id].worker_config
        assert asked["extras"]["algo_params"]["lr"] == pytest.approx(one.params["lr"])
        assert runs[run_id].sweep == run.run_id
        assert one.intermediate
    assert len(runs) == 6
    assert max(one.values[0] for one in study.trials) == study.best.values[0]
    events = LifecycleReader(client.paths.run(run.run_id).events).poll()
    assert [events[0].event, events[-1].event] == [EventKind.RUN_STARTED, EventKind.RUN_COMPLETED]
    assert json.loads(client.paths.run(run.run_id).manifest.read_text())["status"] == "completed"


def test_a_sweep_takes_no_slot_and_passes_the_queue(client: Client) -> None:
    spec = quick_spec(trials=2, set={"pause": 0.2})
    first, second = (client.submit(sweep_config(spec)) for _ in range(2))
    assert wait_for_status(client, second.run_id, "EXEC").status == "EXEC"
    until_trials_train(client, first, 1)
    assert client.health().cpus_reserved <= 2
    for run in (first, second):
        assert client.wait(run.run_id, SECONDS).outcome == "completed"


def test_what_is_not_a_sweep_is_refused(client: Client) -> None:
    config = sweep_config(quick_spec())
    del config["metadata"]["worker"]["config"]["sweep"]["space"]
    with pytest.raises(UserError, match="not the config of a sweep"):
        client.submit(config)


def test_several_seeds_are_one_trial(client: Client) -> None:
    run = started(client, trials=2, seeds=[1, 2, 3], try_first=[{"lr": 0.01}])
    assert client.wait(run.run_id, SECONDS).outcome == "completed"
    study = study_of(client, run)
    assert [len(one.runs) for one in study.trials] == [3, 3]
    assert study.trials[0].values[0] == pytest.approx(100 + 0.02, abs=1e-3)
    seeds = sorted(one.worker_config["seed"] for one in trials_of(client, run))
    assert seeds == [1, 1, 2, 2, 3, 3]


def test_a_bad_trial_is_pruned_and_keeps_its_data(client: Client) -> None:
    run = started(
        client,
        trials=3,
        parallel=1,
        set={"pause": 0.25, "points": 40},
        try_first=[{"lr": 0.01}, {"lr": 1e-5}, {"lr": 0.02}],
        pruner={"name": "median", "n_startup_trials": 1, "n_warmup_steps": 0},
    )
    assert client.wait(run.run_id, SECONDS).outcome == "completed"
    study = study_of(client, run)
    assert study.trials[1].state == PRUNED
    assert study.trials[1].reason.startswith("pruned at step")
    pruned = client.get(study.trials[1].runs[0])
    assert pruned.outcome == "cancelled"
    assert "pruned at step" in str(pruned.reason)
    assert 0 < len(client.metrics(pruned.run_id).series("charts/episodic_return")) < 40


def test_a_failed_trial_is_told_with_its_reason_and_the_sweep_goes_on(client: Client) -> None:
    run = started(
        client,
        trials=3,
        set={"fail_below": 1e-4},
        try_first=[{"lr": 1e-5}, {"lr": 0.01}, {"lr": 0.02}],
        run={"max_restarts": 0},
    )
    assert client.wait(run.run_id, SECONDS).outcome == "completed"
    study = study_of(client, run)
    assert [one.state for one in study.trials] == [FAILED, COMPLETE, COMPLETE]
    assert "lr 1e-05 is too low" in study.trials[0].reason


def test_ten_failures_in_a_row_end_the_sweep_with_a_sentence(client: Client) -> None:
    run = started(client, trials=30, set={"fail_below": 10.0, "points": 1}, run={"max_restarts": 0})
    ended = client.wait(run.run_id, SECONDS)
    assert ended.outcome == "failed"
    assert "10 trials in a row have failed, the last because" in str(ended.reason)
    assert "is too low" in str(ended.reason)
    assert [entry.status for entry in ended.history].count("HSHK") == 1
    assert len(study_of(client, run).with_state(FAILED)) <= 12


def test_an_objective_that_is_never_logged_ends_the_sweep_after_its_first_trial(
    client: Client, tmp_path: Path
) -> None:
    objective, storage = {"metric": "charts/episodic_retrun", "take": "last"}, f"sqlite:///{tmp_path}/s.db"
    run = started(client, trials=20, objective=objective, storage=storage, study="shared")
    ended = client.wait(run.run_id, SECONDS)
    assert ended.outcome == "failed"
    assert "do not log 'charts/episodic_retrun'; did you mean 'charts/episodic_return'?" in str(ended.reason)
    told = study_of(client, run)
    assert len(told.trials) <= 3
    assert ended.headline["trials"] == len(told.with_state(*ENDED))
    until(lambda: not [one for one in trials_of(client, run) if not one.ended])
    # It has left its study to whoever corrects the objective.
    right = started(client, trials=1, objective={"take": "last"}, storage=storage, study="shared")
    assert client.wait(right.run_id, SECONDS).outcome == "completed"


def test_what_is_not_a_number_is_a_failed_trial(client: Client) -> None:
    run = started(client, trials=1, set={"nan": True})
    assert client.wait(run.run_id, SECONDS).outcome == "completed"
    (trial,) = study_of(client, run).trials
    assert (trial.state, trial.reason) == (FAILED, "its value is not a number")


def test_pausing_a_sweep_pauses_its_trials(client: Client) -> None:
    run = started(client, trials=4, set={"pause": 0.3})
    live = until_trials_train(client, run)
    assert client.pause(run.run_id).status == "PAUSE"
    for one in live:
        wait_for_status(client, one.run_id, "PAUSE")
    before = len(trials_of(client, run))
    time.sleep(2)
    assert len(trials_of(client, run)) == before
    assert client.resume(run.run_id).status == "EXEC"
    for one in live:
        until(lambda run_id=one.run_id: client.get(run_id).status != "PAUSE")
    assert client.wait(run.run_id, SECONDS).outcome == "completed"
    assert len(study_of(client, run).with_state(COMPLETE)) == 4


def test_cancelling_a_sweep_cancels_its_trials_and_another_goes_on(client: Client) -> None:
    run = started(client, trials=5, set={"pause": 0.3})
    until_trials_train(client, run)
    with pytest.raises(ConflictError, match="has not ended yet"):
        continue_config(client.get(run.run_id), study_of(client, run), None)
    client.cancel(run.run_id)
    ended = client.wait(run.run_id, SECONDS)
    assert ended.outcome == "cancelled"
    until(lambda: not [one for one in trials_of(client, run) if not one.ended])
    study = study_of(client, run)
    interrupted = study.with_state(FAILED)
    assert interrupted
    assert {one.reason for one in interrupted} == {"its sweep was cancelled"}
    again = client.wait(client.submit(continue_config(ended, study, None)).run_id, SECONDS)
    assert again.outcome == "completed"
    whole = study_of(client, again)
    assert len(whole.with_state(COMPLETE)) == 5
    done = {json.dumps(one.params) for one in whole.with_state(COMPLETE)}
    assert {json.dumps(one.params) for one in interrupted} <= done


def test_a_trial_that_somebody_cancels_has_failed_and_nothing_else(client: Client) -> None:
    run = started(client, trials=3, parallel=1, set={"pause": 0.2})
    (live,) = until_trials_train(client, run, 1)
    client.cancel(live.run_id, "not this one")
    assert client.wait(run.run_id, SECONDS).outcome == "completed"
    first, *others = study_of(client, run).trials
    assert (first.state, first.reason) == (FAILED, "not this one")
    assert {one.state for one in others} == {COMPLETE}


def test_the_best_trains_again_with_other_seeds(client: Client) -> None:
    run = client.wait(started(client, trials=3).run_id, SECONDS)
    best = study_of(client, run).best
    assert best is not None
    configs = best_configs(run, best, [7, 8], 500)
    assert [one["metadata"]["worker"]["config"]["seed"] for one in configs] == [7, 8]
    again = client.wait(client.submit(configs[0]).run_id, SECONDS)
    assert again.outcome == "completed"
    assert again.worker_config["extras"]["algo_params"]["lr"] == pytest.approx(best.params["lr"])
    assert not again.sweep


def test_a_killed_sweep_goes_on_with_the_same_trials(client: Client) -> None:
    run = started(client, trials=4, set={"pause": 0.2})
    live = until_trials_train(client, run)
    os.kill(int(client.get(run.run_id).supervisor_pid or 0), signal.SIGKILL)
    ended = client.wait(run.run_id, SECONDS)
    assert ended.outcome == "completed"
    assert [entry.status for entry in ended.history].count("HSHK") == 2
    runs = trials_of(client, run)
    assert len(runs) == 4
    assert {one.run_id for one in live} <= {one.run_id for one in runs}
    assert [one.state for one in study_of(client, run).trials] == [COMPLETE] * 4


def test_a_sweep_starts_a_killed_daemon_and_leaves_a_stopped_one_alone(client: Client, var: Path) -> None:
    run = started(client, trials=3, set={"pause": 0.2})
    until_trials_train(client, run)
    folder = Path(client.get(run.run_id).run_dir)
    client.close()
    stop_daemon(client.paths)
    time.sleep(6)
    assert not client.paths.daemon_file.exists()
    with Client.connect(var) as again:
        os.kill(again.health().pid, signal.SIGKILL)
    # Nobody calls it now but the sweep.
    until(lambda: (folder / "analytics.json").exists(), SECONDS)
    with Client.connect(var) as last:
        assert last.wait(run.run_id, SECONDS).outcome == "completed"
        assert len(trials_of(last, run)) == 3


@pytest.mark.timeout(400)
def test_whatever_is_killed_no_trial_is_lost_or_repeated(var: Path) -> None:
    from sweep_crash import torture

    config = sweep_config(quick_spec(trials=6, set={"pause": 0.2}, run={"max_restarts": 10}))
    verdict = torture(var, config, 8, random.Random(3), pace=1.5)
    assert not verdict.lost
    assert not verdict.repeated
    assert sum(verdict.kills.values()) >= 8
    assert {one.state for one in verdict.study.trials} <= ENDED
    with Client.connect(var) as client:
        end(client, *client.runs(sorted(LIVE)))


def test_the_command_line_searches_shows_and_trains_the_best(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    script = Path(__file__).parents[1] / "scripts" / "quick_learner.py"
    file.write_text(
        f'algo = "{script}"\nenv = "None-v0"\ntotal_timesteps = 1000\ntrials = 5\nparallel = 2\n'
        'pruner = "none"\n'
        "[space]\nlr = { low = 1e-4, high = 1.0, log = true }\nwidth = [4, 8]\n[objective]\ntake = 'last'\n"
    )
    dry = run_mosaic("sweep", str(file), "--dry-run")
    assert "0.0001 to 1 (log)" in dry.stdout
    assert "nothing was started" in dry.stderr
    done = run_mosaic("sweep", str(file))
    assert done.stdout.count("complete: ") == 5
    assert "best so far" in done.stdout
    shown = json.loads(run_mosaic("sweep", "show", "last", "--json").stdout)
    assert len(shown["study"]["trials"]) == 5
    assert set(shown["importance"]) == {"lr", "width"}
    assert "Sweep of quick_learner.py" in run_mosaic("sweep", "list").stdout
    extended = json.loads(run_mosaic("sweep", "extend", "last", "--trials", "2", "--json").stdout)
    assert len(extended["study"]["trials"]) == 7
    best = extended["study"]["trials"][extended["study"]["best"]]
    trained = json.loads(run_mosaic("sweep", "train-best", "last", "--seeds", "9", "--json").stdout)
    assert trained["outcome"] == "completed"
    assert trained["seed"] == 9
    listed = json.loads(run_mosaic("runs", f"sweep={extended['run']['run_id']}", "--json").stdout)
    assert len(listed) == 2
    assert best["params"]["lr"] > 0


def test_the_command_line_tells_every_problem_and_leaves_with_2(
    run_mosaic: RunMosaic, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text('algo = "ppo"\nenv = "CartPole-v1"\ntrials = 0\n[space]\nlearning_rat = [1]\n')
    done = run_mosaic("sweep", str(file), check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "did you mean 'learning_rate'" in done.stderr
    for words, told in (
        (("sweep", "none.toml"), "cannot be read"),
        (("sweep", "show"), "needs SWEEP"),
        (("sweep", "extend", "x"), "--trials N"),
        (("sweep", "init", "ppo"), "ALGO and ENV"),
    ):
        refused = run_mosaic(*words, check=False)
        assert refused.returncode == 2, words
        assert told in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_no_trial_begins_after_the_time_of_the_sweep(client: Client) -> None:
    run = client.wait(started(client, trials=50, max_minutes=0.02).run_id, SECONDS)
    assert run.outcome == "completed"
    study = study_of(client, run)
    assert 1 <= len(study.trials) < 50
    assert {one.state for one in study.trials} == {COMPLETE}


def test_a_grid_is_tried_once(client: Client) -> None:
    run = client.wait(started(client, trials=20, sampler="grid", space={"width": [4, 8, 16]}).run_id, SECONDS)
    assert run.outcome == "completed"
    assert sorted(int(one.params["width"] or 0) for one in study_of(client, run).trials) == [4, 8, 16]


def test_the_dashboard_opens_on_a_sweep(client: Client) -> None:
    run = client.wait(started(client, trials=2).run_id, SECONDS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mosaic", "sweep", "dashboard", run.run_id, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert f"http://127.0.0.1:{port}" in process.stdout.readline()

            def studies() -> list[Any]:
                with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}/api/studies") as answer:
                    return list(json.load(answer)["study_summaries"])
                return []

            assert [one["study_name"] for one in until(studies)] == [run.run_id]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
