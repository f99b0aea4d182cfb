"""Which runs belong together, and in what the others differ."""

from __future__ import annotations

from typing import Any

import pytest

from gym_gui.models.compare import note_of, table_of
from mosaic.client import RunRecord
from mosaic.client.groups import defaults_for, differences, group_runs
from mosaic.tracking.settings import SETTINGS
from support.gui_records import record


def trained(run_id: str, seed: int, **params: Any) -> RunRecord:
    extras = {"algo_params": params, "tensorboard_dir": f"tb/{run_id}", "notes": f"of {run_id}"}
    return record(run_id, asked={"seed": seed, "extras": extras}, headline={"mean_return": 100.0 * seed})


def test_runs_that_differ_in_seed_and_notes_alone_are_one_group() -> None:
    (group,) = group_runs([trained("01RUNA", 1), trained("01RUNB", 2), trained("01RUNC", 3)])
    assert group.seeds == [1, 2, 3]
    assert group.label == "ppo · CartPole-v1"


@pytest.mark.parametrize("tracker", SETTINGS)
def test_where_a_run_is_tracked_makes_it_no_other_configuration(tracker: str) -> None:
    extras = {f"track_{tracker}": True, **{f"{tracker}_{name}": f"its {name}" for name in SETTINGS[tracker]}}
    tracked = record("01RUNA", asked={"seed": 1, "extras": extras})
    (group,) = group_runs([tracked, record("01RUNB", asked={"seed": 2})])
    assert group.seeds == [1, 2]


def test_two_runs_of_one_seed_are_one_seed() -> None:
    repeated = record("01RUNC", asked={"seed": 1}, headline={"mean_return": 300.0, "step": 50})
    groups = group_runs([record("01RUNA", asked={"seed": 1}), record("01RUNB", asked={"seed": 2}), repeated])
    (group,) = groups
    assert [run.run_id for run in group.one_for_each_seed] == ["01RUNC", "01RUNB"]
    assert note_of(groups, True).startswith("lines are means over up to 2 seeds")
    assert note_of(group_runs([record("01RUNA", asked={"seed": 1}), repeated]), True) == ""


def test_another_parameter_is_another_group_named_by_it() -> None:
    groups = group_runs(
        [trained("01RUNA", 1), trained("01RUNB", 1, learning_rate=0.001), trained("01RUNC", 2)]
    )
    assert [group.label for group in groups] == ["learning_rate –", "learning_rate 0.001"]
    assert [len(group.runs) for group in groups] == [2, 1]


def test_defaults_of_other_algorithms_are_no_part_of_a_name() -> None:
    own = {f"of_{algo}_{number}": number for algo in ("ppo", "dqn") for number in range(4)}
    defaults = {algo: {name: value for name, value in own.items() if algo in name} for algo in ("ppo", "dqn")}
    runs = [record("01RUNA"), record("01RUNB", asked={"algo": "dqn"}), trained("01RUNC", 1, gamma=0.9)]
    labels = [group.label for group in group_runs(runs, defaults)]
    assert labels == ["ppo · gamma –", "dqn · gamma –", "ppo · gamma 0.9"]


def test_a_parameter_at_its_default_is_no_difference() -> None:
    defaults = {"ppo": {"learning_rate": 0.00025, "num_envs": 4}}
    groups = group_runs([trained("01RUNA", 1), trained("01RUNB", 2, learning_rate=0.00025)], defaults)
    assert len(groups) == 1


def test_the_table_tells_values_and_which_of_them_are_defaults() -> None:
    defaults = {"ppo": {"learning_rate": 0.00025, "num_envs": 4}}
    groups = group_runs([trained("01RUNA", 1), trained("01RUNB", 1, learning_rate=0.001)], defaults)
    (row,) = differences([group.runs[0] for group in groups], defaults)
    assert (row.name, row.values, row.defaults) == ("learning_rate", ("0.00025", "0.001"), (True, False))


def test_other_environments_and_budgets_are_differences() -> None:
    groups = group_runs(
        [record("01RUNA"), record("01RUNB", asked={"env_id": "Acrobot-v1", "total_timesteps": 2_000_000})]
    )
    assert {row.name: row.values for row in differences([group.runs[0] for group in groups])} == {
        "env_id": ("CartPole-v1", "Acrobot-v1"),
        "total_timesteps": ("1,000", "2,000,000"),
    }
    assert groups[1].label == "Acrobot-v1 · total_timesteps 2,000,000"


def test_algorithms_that_differ_in_much_are_named_by_themselves() -> None:
    defaults = {"ppo": {"a": 1, "b": 1, "c": 1, "d": 1}}
    asked = [{"algo": algo, "total_timesteps": at} for at, algo in enumerate(("ppo", "dqn", "dqn"))]
    runs = [record(f"01RUN{at}", asked=one) for at, one in enumerate(asked)]
    assert [group.label for group in group_runs(runs[:2], defaults)] == ["ppo", "dqn"]
    assert "total_timesteps" in group_runs(runs, defaults)[2].label, "else two would have one name"


def test_a_group_has_its_seeds_its_mean_return_and_its_states() -> None:
    groups = group_runs([trained("01RUNA", 1), trained("01RUNB", 2), trained("01RUNC", 3)])
    _, (row,) = table_of(groups)
    told = [cell.text for cell in row[:5]]
    assert told == ["ppo · CartPole-v1", "1–3", "200.0", "100.0 to 300.0", "200.0"]
    assert row[6].text == "Running"
    assert (
        note_of(groups, grouped=True)
        == "lines are means over up to 3 seeds, bands are one standard deviation"
    )
    assert note_of(groups, grouped=False) == ""


def test_defaults_come_from_the_worker_that_runs_it() -> None:
    assert defaults_for([record()])["ppo"]["gamma"] == 0.99
    assert defaults_for([record(worker_type="gone")]) == {"ppo": {}}
