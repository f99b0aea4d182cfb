"""Population-based training: its choices, what its file refuses, and real populations in a real daemon."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import find_origin
from conftest import RunMosaic
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.fsm import LIVE
from mosaic.sweeps.configs import continue_config, sweep_config
from mosaic.sweeps.generations import (
    JOURNAL,
    Generations,
    first_generation,
    next_generation,
    perturbed,
)
from mosaic.sweeps.population import Population, lineage
from mosaic.sweeps.space import Parameter
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.study import COMPLETE, ENDED, FAILED, RUNNING, WAITING, Study, Trial, read_study
from mosaic.sweeps.sweep_file import parse_spec
from mosaic.sweeps.tables import SpecError
from support.runs import end
from sweeps.conftest import ppo_table, quick_table

SECONDS = 200.0
STEPS = 512
SPACE = {
    "learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    "update_epochs": {"low": 1, "high": 8},
    "clip_coef": [0.1, 0.2, 0.3],
}


def table(**changes: Any) -> dict[str, Any]:
    """Four members in three generations, of a second each."""
    asked: dict[str, Any] = ppo_table(
        **{
            "kind": "pbt",
            "total_timesteps": 3 * STEPS,
            "set": {"num_steps": 32, "save_model": True},
            "space": SPACE,
            "population": {"members": 4, "interval": STEPS, "seed": 3},
            "objective": {"points": 10},
            **changes,
        }
    )
    return asked


def spec_of(**changes: Any) -> tuple[SweepSpec, Population]:
    spec = parse_spec(table(**changes))
    assert spec.population is not None
    return spec, spec.population


def problems(**changes: Any) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(table(**changes))
    return "\n".join(caught.value.problems)


def ended(trials: Sequence[Trial], values: Sequence[float | None]) -> list[Trial]:
    """Trials with what they reached; those without a value have failed."""
    return [
        replace(one, state=FAILED, reason="no luck", ended_at=1.0)
        if value is None
        else replace(one, state=COMPLETE, values=(value,), ended_at=1.0)
        for one, value in zip(trials, values, strict=True)
    ]


# The file


def test_a_file_asks_for_a_population_and_survives_the_run_config() -> None:
    spec, population = spec_of()
    assert (population.members, population.generations, spec.trials) == (4, 3, 12)
    assert SweepSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec
    assert spec.pruner is None
    asked = spec.templates[0].config["metadata"]["worker"]["config"]
    assert asked["extras"]["algo_params"]["eval_episodes"] == 0


def test_without_a_space_what_may_change_of_the_known_one_is_searched() -> None:
    spec, _ = spec_of(space={})
    names = {one.name for one in spec.space}
    assert {"learning_rate", "ent_coef", "gamma"} <= names
    assert not names & {"num_envs", "num_steps", "anneal_lr"}


def test_whoever_asks_for_evaluations_gets_them() -> None:
    spec, _ = spec_of(objective={"metric": "eval/episodic_return"})
    asked = spec.templates[0].config["metadata"]["worker"]["config"]
    assert "eval_episodes" not in asked["extras"]["algo_params"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kind": "pbd"}, "'kind' is 'pbd', but must be one of search, pbt; did you mean 'pbt'?"),
        ({"kind": "search"}, 'write kind = "pbt" as well'),
        ({"space": {"num_steps": [32, 64]}}, "'space.num_steps' cannot change when a run is resumed"),
        ({"space": {"anneal_lr": [True, False]}}, "put it into [set]"),
        ({"sampler": "tpe"}, "'sampler' is for a search"),
        ({"trials": 3}, "'trials' is for a search"),
        ({"algo": ["ppo", "dqn"]}, "one algorithm: name one instead of 2"),
        ({"env": ["CartPole-v1", "Acrobot-v1"], "scores": {}}, "one environment"),
        ({"seeds": "1-3"}, "Its members take the seeds after it"),
        ({"objective": [{}, {"metric": "charts/SPS"}]}, "one objective"),
        ({"population": 4}, "must be a table"),
        ({"population": {"member": 4}}, "did you mean 'members'?"),
        ({"population": {"members": 1}}, "a whole number from 2 to 1,000"),
        ({"population": {"interval": 3 * STEPS}}, "must cut them into 2 to 1,000 pieces"),
        ({"population": {"interval": 100}}, "an update of ppo takes 128 steps"),
        ({"population": {"quantile": 0.7}}, "a number from 0.0 to 0.5"),
        ({"population": {"perturb": [1, 2]}}, "factors above 0 other than 1"),
        ({"population": {"resample": float("nan")}}, "'population.resample' is nan"),
        ({"set": {"checkpoint_every": 0}}, "a population needs checkpoints"),
        ({"seeds": [2**31 - 2]}, "seed"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(changes: dict[str, Any], told: str) -> None:
    assert told in problems(**changes)


def test_a_script_without_checkpoints_is_refused() -> None:
    asked = quick_table(kind="pbt")
    for name in ("trials", "pruner"):
        del asked[name]
    with pytest.raises(SpecError, match="cannot be trained as a population"):
        parse_spec(asked)


# The choices


def test_the_worst_copy_the_best_with_other_parameters_and_the_same_choices_are_made_again() -> None:
    spec, population = spec_of(population={"members": 4, "interval": STEPS, "quantile": 0.25, "resample": 0})
    first = first_generation(spec, population)
    assert first == first_generation(spec, population)
    assert len({one.params["learning_rate"] for one in first}) == 4
    last = ended(first, [3.0, 9.0, 1.0, 5.0])
    second = next_generation(spec, population, last)
    assert second == next_generation(spec, population, last)
    assert [one.number for one in second] == [4, 5, 6, 7]
    assert [one.parent for one in second] == [0, 1, 1, 3]
    for member in (0, 1, 3):
        assert second[member].params == first[member].params
    rate, was = second[2].params["learning_rate"], float(first[1].params["learning_rate"] or 0)
    assert any(rate == pytest.approx(min(1e-2, max(1e-4, was * one))) for one in population.perturb)


def test_what_has_failed_goes_on_from_one_of_the_best() -> None:
    spec, population = spec_of()
    last = ended(first_generation(spec, population), [None, 2.0, None, 1.0])
    assert [one.parent for one in next_generation(spec, population, last)] == [1, 1, 1, 3]
    with pytest.raises(UserError, match=r"All 4 members of generation 0 have failed.*no luck"):
        next_generation(spec, population, ended(last, [None] * 4))


def test_where_all_do_equally_well_nobody_copies() -> None:
    spec, population = spec_of()
    last = ended(first_generation(spec, population), [500.0] * 4)
    assert [one.parent for one in next_generation(spec, population, last)] == [0, 1, 2, 3]


def test_what_is_to_be_small_is_best_when_it_is() -> None:
    spec, population = spec_of(objective={"direction": "minimize"})
    last = ended(first_generation(spec, population), [3.0, 9.0, 1.0, 5.0])
    assert [one.parent for one in next_generation(spec, population, last)] == [0, 2, 2, 3]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (Parameter("a", low=0.1, high=1.0), 0.95),
        (Parameter("b", whole=True, low=1, high=8), 1),
        (Parameter("c", whole=True, low=2, high=9, step=2), 8),
        (Parameter("d", choices=(0.3, 0.1, 0.2)), 0.2),
        (Parameter("e", choices=(True, False)), True),
        (Parameter("f", low=0.0, high=0.5), 0.0),
    ],
)
def test_what_is_perturbed_stays_in_the_space(parameter: Parameter, value: Any) -> None:
    for resample in (0.0, 0.5):
        found = {
            perturbed(parameter, value, Population(resample=resample), random.Random(seed))
            for seed in range(100)
        }
        assert all(parameter.holds(one) for one in found)
        assert resample == 0.0 or len(found) > 1
    assert all(isinstance(one, int) for one in found) or not parameter.whole


def test_a_whole_number_moves_although_rounding_would_take_it_back() -> None:
    one = Parameter("epochs", whole=True, low=1, high=8)
    found = {perturbed(one, 2, Population(resample=0.0), random.Random(seed)) for seed in range(50)}
    assert found == {1, 3}


# The journal


def test_a_generation_that_a_crash_has_cut_off_is_made_again(tmp_path: Path) -> None:
    spec, population = spec_of()

    def opened() -> Generations:
        return Generations(spec, population, "S", tmp_path)

    one = opened()
    assert (one.ready, one.spent) == (True, False)
    begun = [one.ask() for _ in range(4)]
    assert (one.ready, one.spent) == (False, False)
    assert [trial.number for trial in opened().open_trials()] == [0, 1, 2, 3]
    for trial in begun:
        one.set_runs(trial.number, [f"R{trial.number}"])
        one.tell(trial.number, COMPLETE, [float(trial.number)])
    told = (tmp_path / JOURNAL).read_bytes()
    asked = one.ask()
    whole = (tmp_path / JOURNAL).read_bytes()
    for cut in range(len(told), len(whole), 37):
        (tmp_path / JOURNAL).write_bytes(whole[:cut])
        again = opened()
        live = again.open_trials()
        # What was begun is known; else it is asked for once more, and is the same.
        assert (live[0] if live else again.ask()).params == asked.params
        assert [trial.runs for trial in again.record().trials[:4]] == [(f"R{n}",) for n in range(4)]
    assert lineage(again.record()) is not None


# Real populations


@pytest.fixture
def four_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_CPUS", "4")


def trials_of(client: Client, run: RunRecord) -> list[RunRecord]:
    return client.runs(filter=f"sweep={run.run_id}")


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


def study_of(client: Client, run: RunRecord) -> Study:
    study = read_study(Path(client.get(run.run_id).run_dir))
    assert study is not None
    return study


def chosen(study: Study) -> list[tuple[Any, ...]]:
    """What does not depend on when something was done."""
    return [(one.number, one.parent, dict(one.params), one.values, one.state) for one in study.trials]


@pytest.mark.long
@pytest.mark.usefixtures("four_slots")
@pytest.mark.timeout(600)
def test_a_population_is_killed_and_chooses_the_same_as_one_that_is_not(client: Client, var: Path) -> None:
    spec, _ = spec_of()
    calm = client.wait(client.submit(sweep_config(spec)).run_id, SECONDS)
    assert calm.outcome == "completed", calm.reason
    study = study_of(client, calm)
    assert [one.state for one in study.trials] == [COMPLETE] * 12
    found = lineage(study)
    assert found is not None and found.final is not None
    assert any(one.copied_from is not None for one in found.pieces)
    for one in found.pieces:
        origin = find_origin(client.paths.run(one.run).run_dir)
        assert origin.step == (one.generation + 1) * STEPS
        assert origin.args["learning_rate"] == pytest.approx(one.params["learning_rate"])
        assert origin.args["seed"] == 1 + found.ancestors(one.trial)[0].member
        steps = client.metrics(one.run).series("charts/episodic_return").steps
        assert min(steps) > one.generation * STEPS

    run = client.submit(sweep_config(spec))
    until(lambda: len(trials_of(client, run)) >= 4)
    os.kill(int(until(lambda: client.get(run.run_id).supervisor_pid)), signal.SIGKILL)
    until(lambda: len(study_of(client, run).with_state(COMPLETE)) >= 5, SECONDS)
    os.kill(client.health().pid, signal.SIGKILL)
    with Client.connect(var) as again:
        until(lambda: len(trials_of(again, run)) >= 9, SECONDS)
        live = until(
            lambda: [one for one in trials_of(again, run) if one.status in LIVE and one.supervisor_pid]
        )
        os.kill(int(live[0].supervisor_pid), signal.SIGKILL)
        os.kill(int(again.get(run.run_id).supervisor_pid or 0), signal.SIGKILL)
        assert again.wait(run.run_id, SECONDS).outcome == "completed"
        assert chosen(study_of(again, run)) == chosen(study)
        assert len(trials_of(again, run)) == 12
        end(again, *again.runs(sorted(LIVE)))


@pytest.mark.usefixtures("four_slots")
@pytest.mark.timeout(400)
def test_the_command_line_trains_cancels_resumes_and_draws_a_population(
    client: Client, run_mosaic: RunMosaic, tmp_path: Path
) -> None:
    file = tmp_path / "population.toml"
    file.write_text(
        f'kind = "pbt"\nalgo = "ppo"\nenv = "CartPole-v1"\ntotal_timesteps = {2 * STEPS}\n'
        f"[population]\nmembers = 3\ninterval = {STEPS}\n"
        "[set]\nnum_steps = 32\n[space]\nlearning_rate = { low = 1e-4, high = 1e-2, log = true }\n"
        "[objective]\npoints = 10\n"
    )
    assert "3, each of 1,024 steps, with seeds 1 to 3" in run_mosaic("sweep", str(file), "--dry-run").stdout
    begun = json.loads(run_mosaic("sweep", str(file), "--detach", "--json").stdout)["run_id"]
    until(lambda: any(one.status == "EXEC" for one in client.runs(filter=f"sweep={begun}")), SECONDS)
    client.cancel(begun)
    run = client.wait(begun, SECONDS)
    study = study_of(client, run)
    assert not study.with_state(RUNNING, WAITING)
    with pytest.raises(ConflictError, match="is a population"):
        continue_config(run, study, 5)
    whole = json.loads(run_mosaic("sweep", "resume", begun, "--json", timeout=SECONDS).stdout)
    assert {one["state"] for one in whole["study"]["trials"]} == {COMPLETE}
    drawn = whole["lineage"]
    assert (drawn["members"], drawn["generations"], len(drawn["pieces"])) == (3, 2, 6)
    shown = run_mosaic("sweep", "show", "last").stdout
    assert "gen. 1" in shown and "←" in shown
    best = drawn["pieces"][drawn["best"]]["run"]
    assert f"train --resume {best}" in shown
    refused = run_mosaic("sweep", "train-best", "last", check=False)
    assert refused.returncode == 2 and f"train --resume {best}" in refused.stderr
    pages = run_mosaic("sweep", "dashboard", "last", check=False)
    assert pages.returncode == 2 and "is a population" in pages.stderr
    again = run_mosaic("sweep", "resume", "last", check=False)
    assert again.returncode != 0 and "is a population" in again.stderr
    assert {one.state for one in study.trials} <= ENDED
