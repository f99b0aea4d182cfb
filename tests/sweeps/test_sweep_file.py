"""The sweep file: what is right is kept, and what is wrong is told at once, each problem in a sentence."""

from __future__ import annotations

import json
import math
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mosaic.contract.capabilities import find_worker
from mosaic.contract.errors import UserError
from mosaic.sweeps.objective import Objective
from mosaic.sweeps.samplers import check_search, make_sampler
from mosaic.sweeps.space import known_spaces
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.sweep_file import parse_spec
from mosaic.sweeps.tables import SpecError, read_table
from mosaic.sweeps.toml_text import example
from sweeps.conftest import ppo_table

ALGORITHMS = find_worker("cleanrl").load_catalog().algorithms()
LR = {"learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}}


def problems(**changes: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_spec(ppo_table(**changes))
    return caught.value.problems


def test_a_short_file_is_a_whole_sweep() -> None:
    spec = parse_spec({"algo": "ppo", "env": "CartPole-v1"})
    assert (spec.trials, spec.seeds, spec.parallel) == (20, (1,), 0)
    assert {one.name for one in spec.space} == set(known_spaces()["ppo"].space)
    assert spec.objectives == (Objective(),)
    assert spec.pruner is not None
    assert spec.report_every == 25_000
    check_search(spec)


def test_a_spec_survives_the_run_config() -> None:
    spec = parse_spec(
        ppo_table(
            space={
                **LR,
                "anneal_lr": [True, False],
                "ent_coef": {"low": 0.0, "high": 0.1, "when": {"anneal_lr": True}},
            },
            seeds="1-3",
            objective=[{"take": "best"}, {"metric": "charts/SPS", "take": "last"}],
            sampler={"name": "nsgaii", "population_size": 8, "seed": 4},
            try_first=[{"learning_rate": 1e-3}],
        )
    )
    assert SweepSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec
    assert spec.search_seed == 4
    check_search(spec)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_has_a_known_space_of_its_own_parameters(algo: str) -> None:
    known = known_spaces()[algo]
    assert known.source
    parameters = {one.name: one for one in find_worker("cleanrl").load_catalog().parameters(algo)}
    assert len(known.space) >= 4
    for name, told in known.space.items():
        default = parameters[name].default
        if isinstance(told, list) and not isinstance(default, bool) and default is not None:
            assert min(told) <= default <= max(told), f"{name}: the default {default} is not within {told}"


@pytest.mark.parametrize(
    ("algo", "env_id"),
    [
        ("ppo", "CartPole-v1"),
        ("sac_continuous_action", "Pendulum-v1"),
        ("dqn", "Acrobot-v1"),
        ("tqc", "Pendulum-v1"),
    ],
)
def test_the_file_that_init_writes_is_right(algo: str, env_id: str) -> None:
    spec = parse_spec(tomllib.loads(example(algo, env_id)))
    assert {one.name for one in spec.space} == set(known_spaces()[algo].space)
    check_search(spec)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"space": {"learning_rat": [1e-3, 1e-4]}}, "did you mean 'learning_rate'"),
        ({"space": {"learning_rate": {"low": 1e-3, "high": 1e-4}}}, "'space.learning_rate' is empty"),
        ({"space": {"learning_rate": {"low": 0.0, "high": 1.0, "log": True}}}, "start above 0"),
        ({"space": {"gamma": {"low": 0.9, "high": 1.5}}}, "ppo parameter 'gamma' is 1.5"),
        ({"space": {"num_steps": {"low": 1.5, "high": 4}}}, "must be of whole numbers"),
        ({"space": {"anneal_lr": {"low": 0, "high": 1}}}, "list its choices"),
        ({"space": {"gamma": []}}, "'space.gamma.choices' is empty"),
        ({"space": {"gamma": [0.9, 0.9]}}, "names a value twice"),
        ({"space": {"gamma": 0.9}}, "belongs to [set]"),
        ({"space": {"gamma": {"low": 0.9}}}, "has no 'high'"),
        ({"space": {"gamma": {"lo": 0.9, "high": 1.0}}}, "did you mean 'low'"),
        ({"space": {"gamma": {"low": 0.9, "high": 1.0, "when": {"clip": 1}}}}, "which is not searched"),
        ({"space": {**LR, "gamma": {"choices": [0.9], "when": {"gamma": 0.9}}}}, "depend on each other"),
        ({"space": LR, "set": {"learning_rate": 1e-3}}, "searched and set"),
        ({"space": LR, "set": {"gama": 0.9}}, "did you mean 'gamma'"),
        ({"objective": {"take": "lst"}}, "did you mean 'last'"),
        ({"objective": {"direction": "up"}}, "maximize, minimize"),
        ({"objective": {"points": 0}}, "at least 1"),
        ({"objective": {"metrc": "x"}}, "did you mean 'metric'"),
        ({"trials": 0}, "'trials' is 0"),
        ({"seeds": "1-x"}, "'seeds' is '1-x'"),
        ({"max_minutes": -1}, "'max_minutes' is -1"),
        ({"trails": 5}, "did you mean 'trials'"),
        ({"run": {"cpu": 1}}, "did you mean 'cpus'"),
        ({"run": {"cpus": 0.5}}, "resources.cpus"),
        ({"storage": "jurnal"}, "did you mean 'journal'"),
        ({"storage": "postgresql://me:hunter2secret@host/db"}, "@env:SWEEP_DB"),
        ({"env": "CartPol-v1"}, "CartPol"),
        ({"env": ["CartPole-v1", "Acrobot-v1"]}, "write under [scores]"),
        ({"algo": "pppo"}, "did you mean 'ppo'"),
        ({"algo": ["ppo", "dqn"], "space": LR}, "[space.ppo]"),
        ({"try_first": [{"gama": 1}]}, "did you mean 'gamma'"),
        ({"space": LR, "try_first": [{"learning_rate": 1.0}]}, "[space] does not contain"),
        ({"sampler": 3}, "'sampler' is 3"),
        ({"study": 5}, "'study' is 5, but must be text"),
        ({"notes": date(2026, 1, 2)}, "'notes' is 2026-01-02, which is neither a number nor a text"),
        ({"set": {"gamma": 10**400}}, "'set.gamma' is 1000"),
        ({"pruner": {"n_warmup_steps": math.nan}}, "'pruner.n_warmup_steps' is nan"),
        ({"run": {"cpus": True}}, "'run.cpus' is True, but must be a number"),
        ({"name": ["a"]}, "'name' is ['a'], but must be text"),
        ({"notes": 1.5}, "'notes' is 1.5, but must be text"),
        ({"run": {"extras": 5}}, "'run.extras' is 5, but must be a table"),
        ({"run": {"env_kwargs": [1]}}, "'run.env_kwargs' is [1], but must be a table"),
        ({"run": {"python": 3}}, "'run.python' is 3, but must be the path"),
        ({"algo": ["ppo", "dqn"], "space": {"ppo": 5}}, "write [space.ppo]"),
        ({"algo": ["ppo", "dqn"], "set": {"dqn": 5}}, "write [set.dqn]"),
        (
            {"algo": ["ppo", "dqn"], "set": {"gamma": 0.9}, "space": {"ppo": {"gamma": [0.9, 0.99]}}},
            "and set",
        ),
        ({"space": {"gamma": {"low": 0.9, "high": math.inf}}}, "'space.gamma.high' is inf"),
        ({"space": {**LR, "gamma": {"choices": [0.9], "when": {"learning_rate": 1e-3}}}}, "choices or steps"),
        (
            {
                "space": {
                    "num_envs": {"low": 2, "high": 8, "step": 2},
                    "gamma": {"choices": [0.9], "when": {"num_envs": 3}},
                }
            },
            "can never hold",
        ),
        ({"sampler": {"name": "tpe", "seed": -1}}, "from 0 to 2^32 - 1"),
        (
            {"sampler": "grid", "space": {"num_steps": {"low": 1, "high": 10**9}}},
            "1,000,000,000 combinations",
        ),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(changes: dict[str, Any], words: str) -> None:
    found = problems(**changes)
    assert any(words in one for one in found), found
    for one in found:
        assert one.endswith((".", "?")), one
        assert "\n" not in one
        assert "hunter2" not in one


def test_all_problems_come_at_once() -> None:
    found = problems(
        trials=0, space={"learning_rat": [1], "gamma": {"low": 2, "high": 1}}, objective={"take": "x"}
    )
    assert len(found) == 4


def test_changes_of_the_command_line_come_on_top(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text('algo = "ppo"\nenv = "CartPole-v1"\n[space]\ngamma = [0.9]\n')
    table = read_table(file, [("space.gamma", [0.95, 0.99]), ("trials", 7)])
    assert (table["space"], table["trials"]) == ({"gamma": [0.95, 0.99]}, 7)
    with pytest.raises(UserError, match="is not a table"):
        read_table(file, [("algo.x", 1)])
    file.write_text("algo = ")
    with pytest.raises(UserError, match="not valid TOML"):
        read_table(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_table(tmp_path / "none.toml")


@pytest.mark.parametrize("text", ["trials = " + "1" * 5000, "x = " + "[" * 5000])
def test_a_file_that_no_reader_of_toml_takes_is_told_of_in_a_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(UserError, match="not valid TOML"):
        read_table(file)


def test_what_is_set_for_all_algorithms_is_not_searched() -> None:
    spec = parse_spec(ppo_table(algo=["ppo", "dqn"], set={"learning_rate": 1e-3}))
    assert not [one.key for one in spec.space if one.name == "learning_rate"]


def test_more_problems_than_can_be_read_are_counted() -> None:
    found = SpecError([f"Problem {number}." for number in range(25)]).sentences
    assert (len(found), found[-1]) == (21, "There are 5 more problems: correct these first.")


def test_several_algorithms_have_spaces_of_their_own() -> None:
    spec = parse_spec(ppo_table(algo=["ppo", "dqn"]))
    keys = {one.key for one in spec.space}
    assert {"algo", "ppo.clip_coef", "dqn.buffer_size"} <= keys
    ppo = {one.key for one in spec.space if one.is_wanted({"algo": "ppo"})}
    assert "ppo.clip_coef" in ppo
    assert not any(key.startswith("dqn.") for key in ppo)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampler": "tpee"}, "did you mean 'tpe'"),
        ({"sampler": {"name": "tpe", "startup": 3}}, "no option 'startup'"),
        ({"sampler": {"name": "tpe", "n_startup_trials": "x"}}, "but must be a whole number"),
        ({"sampler": {"name": "tpe", "multivariate": 5}}, "but must be true or false"),
        ({"pruner": "medan"}, "did you mean 'median'"),
        ({"pruner": {"name": "percentile", "percentile": 200.0}}, "refuses its options"),
        ({"sampler": "grid"}, "needs a step or choices"),
        ({"objective": [{}, {"metric": "charts/SPS"}], "pruner": "median"}, "one objective only"),
        ({"objective": [{}, {"metric": "charts/SPS"}], "sampler": "cmaes"}, "cmaes"),
        ({"sampler": {"name": "tpe", "gamma": 0.3}}, "is a function, which a file cannot hold"),
        ({"sampler": {"name": "nsgaii", "crossover": "unifrm"}}, "did you mean 'uniform'"),
        ({"sampler": {"name": "partialfixed", "fixed_params": {}, "base_sampler": 3}}, "partialfixed"),
        (
            {"pruner": {"name": "patient", "patience": 1, "wrapped_pruner": {"name": 5}}},
            "the name of a pruner",
        ),
    ],
)
def test_samplers_and_pruners_are_tried_before_anything_starts(changes: dict[str, Any], words: str) -> None:
    spec = parse_spec(ppo_table(space=LR, **changes))
    with pytest.raises(UserError) as caught:
        check_search(spec)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_samplers_and_pruners_within_others_are_named() -> None:
    crossed = {"name": "nsgaii", "crossover": "sbx", "population_size": 4}
    check_search(parse_spec(ppo_table(space=LR, sampler=crossed, pruner="none")))
    fixed = {"name": "partialfixed", "fixed_params": {}, "base_sampler": {"name": "random", "seed": 3}}
    patient = {"name": "patient", "patience": 1, "wrapped_pruner": "median"}
    check_search(parse_spec(ppo_table(space=LR, sampler=fixed, pruner=patient)))


def test_the_random_numbers_after_a_restart_are_within_what_a_seed_may_be() -> None:
    spec = parse_spec(ppo_table(space=LR, sampler={"name": "random", "seed": 2**32 - 1}))
    make_sampler(spec, trials=7)


@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc", "nsgaii", "nsgaiii", "bruteforce", "TPESampler"])
@pytest.mark.parametrize("pruner", ["median", "hyperband", "successivehalving", "MedianPruner", "none"])
def test_samplers_and_pruners_work_by_their_names(sampler: str, pruner: str) -> None:
    space = {"num_steps": [32, 64], "num_envs": {"low": 2, "high": 8, "step": 2}}
    check_search(parse_spec(ppo_table(space=space, sampler=sampler, pruner=pruner)))
