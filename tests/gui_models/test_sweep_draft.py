"""The form of a sweep without a window: what it writes is what `mosaic sweep` reads."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from gym_gui.models.sweep_draft import (
    CHOICES,
    FIXED,
    LOG,
    PRUNERS,
    RANGE,
    SAMPLERS,
    ParamDraft,
    SweepDraft,
    table_of,
)
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError
from mosaic.sweeps.space import known_spaces
from mosaic.sweeps.sweep_file import parse_spec
from mosaic.sweeps.toml_text import example, to_toml


@pytest.mark.parametrize("algo", sorted(known_spaces()))
def test_every_example_goes_through_the_form_and_back(algo: str) -> None:
    table = tomllib.loads(example(algo, "CartPole-v1"))
    draft = SweepDraft("ppo")
    draft.take(table)
    assert tomllib.loads(to_toml(draft.table())) == table


def test_a_new_form_is_a_sweep_that_can_be_started() -> None:
    draft = SweepDraft("ppo")
    spec = parse_spec(draft.table())
    assert spec.algos == ["ppo"] and {one.name for one in spec.space} == set(known_spaces()["ppo"].space)


def test_several_algorithms_have_a_space_each() -> None:
    draft = SweepDraft("ppo")
    draft.add("dqn")
    draft.lines["dqn"].append(ParamDraft("tau", FIXED, value="0.5"))
    table = tomllib.loads(to_toml(draft.table()))
    assert table["algo"] == ["ppo", "dqn"] and set(table["space"]) == {"ppo", "dqn"}
    assert table["set"] == {"dqn": {"tau": 0.5}}
    spec = parse_spec(table)
    again = SweepDraft("ppo")
    again.take(table_of(spec))
    assert parse_spec(again.table()) == spec
    draft.drop("ppo")
    assert draft.table()["algo"] == "dqn"


RICH: dict[str, Any] = {
    "algo": "sac_continuous_action",
    "env": ["Pendulum-v1", "MountainCarContinuous-v0"],
    "total_timesteps": 20_000,
    "seeds": [1, 2, 5],
    "trials": 12,
    "tags": ["night"],
    "notes": 'it says "hm" \\ and\ttabs\nand lines',
    "scores": {"Pendulum-v1": [-1600, -150], "MountainCarContinuous-v0": [-10, 95.0]},
    "set": {"gamma": 0.98},
    "space": {
        "autotune": [True, False],
        "alpha": {"low": 0.01, "high": 0.5, "when": {"autotune": [False]}},
    },
    "objective": [
        {"metric": "charts/episodic_return", "take": "last"},
        {"metric": "charts/SPS", "take": "last"},
    ],
    "sampler": {"name": "nsgaii", "population_size": 20},
    "run": {"cpus": 1, "max_restarts": 0, "extras": {"notes": "x"}},
    "try_first": [{"autotune": True}],
}


def test_what_the_form_does_not_show_stays_as_the_file_has_it() -> None:
    draft = SweepDraft("ppo")
    draft.take(RICH)
    draft.state.set("trials", "30")
    assert tomllib.loads(to_toml(draft.table())) == {**RICH, "trials": 30}
    spec = parse_spec(draft.table())
    again = SweepDraft("ppo")
    again.take(table_of(spec))
    assert parse_spec(again.table()).space == spec.space


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (ParamDraft("lr", RANGE, "1", "0.1"), "lr goes from 1 to 0.1: start below the end."),
        (ParamDraft("lr", LOG, "0", "1"), "lr is logarithmic and begins at 0: start above 0."),
        (ParamDraft("lr", RANGE, "", "1"), "lr begins at '', which is not a number."),
        (ParamDraft("lr", RANGE, "0", "nan"), "lr ends at 'nan', which is not a number."),
        (ParamDraft("lr", RANGE, "0", "1", step="x"), "lr has the step 'x', which is not a number."),
        (ParamDraft("lr", CHOICES, choices=" , "), "lr has no choices: write them as 0.9, 0.99."),
        (ParamDraft("lr", FIXED), "lr has no value: write one, or take it out."),
    ],
)
def test_a_line_that_is_wrong_says_so(line: ParamDraft, told: str) -> None:
    assert line.problem() == told
    draft = SweepDraft("ppo")
    draft.lines["ppo"].append(line)
    assert draft.problems() == [told]
    with pytest.raises(UserError, match="lr"):
        draft.table()


def test_what_is_typed_is_a_number_a_truth_value_or_a_text() -> None:
    line = ParamDraft("x", CHOICES, choices="on, 1, 1.0, 1e-3, 10_000, python, Off")
    assert line.told() == [True, 1, 1.0, 0.001, 10_000, "python", False]


@pytest.mark.parametrize(
    "table",
    [
        {"algo": 3},
        {"env": []},
        {"space": 5},
        {"space": {"lr": 3}},
        {"set": []},
        {"sampler": 7},
        {"objective": "x"},
    ],
)
def test_a_file_that_the_form_cannot_show_changes_nothing(table: dict[str, Any]) -> None:
    draft = SweepDraft("ppo")
    before = draft.table()
    with pytest.raises(UserError):
        draft.take(table)
    assert draft.table() == before


def test_a_form_without_anything_to_search_says_so() -> None:
    draft = SweepDraft("ppo")
    draft.lines["ppo"].clear()
    assert draft.problems() == ["There is nothing to search: add a parameter."]


def test_a_new_line_begins_around_the_default() -> None:
    schema = ParamSchema(name="learning_rate", type="float", default=0.001, help="")
    assert ParamDraft.beginning(schema).told() == {"low": 0.00025, "high": 0.004, "log": True}
    choice = ParamSchema(name="anneal_lr", type="bool", default=True, help="")
    assert ParamDraft.beginning(choice).told() == [True, False]


def test_the_samplers_and_pruners_are_those_of_optuna() -> None:
    samplers = pytest.importorskip("mosaic.sweeps.samplers")
    # Those left out need objects, which a file has no words for.
    assert set(SAMPLERS) == set(samplers._classes("sampler")) - {"partialfixed"}
    assert set(PRUNERS) == set(samplers._classes("pruner")) - {"nop"}


def test_a_population_goes_through_the_form_without_what_only_a_search_has() -> None:
    draft = SweepDraft("ppo")
    table = {
        "kind": "pbt",
        "algo": "ppo",
        "env": "CartPole-v1",
        "total_timesteps": 20_000,
        "seeds": [1],
        "population": {"members": 4, "interval": 5000},
        "space": {"learning_rate": {"low": 1e-5, "high": 1e-2, "log": True}},
    }
    draft.take(table)
    written = tomllib.loads(to_toml(draft.table()))
    assert {name: value for name, value in written.items() if name != "objective"} == table
    spec = parse_spec(written)
    again = SweepDraft("ppo")
    again.take(table_of(spec))
    assert parse_spec(again.table()) == spec
