"""Every family of environments has an example that trains as it is told."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.run import run_with
from cleanrl_worker.schemas.environments import EXTRAS, FAMILIES, PYTHON, find_environment, find_takers
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.extras import is_installed

SMALL = {"num_steps": 32, "num_envs": 4, "num_minibatches": 2, "update_epochs": 1, "eval_episodes": 0}
STEPS = 512


@pytest.mark.parametrize("name", FAMILIES)
def test_the_example_of_a_family_trains(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    family = FAMILIES[name]
    entry = find_environment(family.env_id)
    assert entry is not None and entry.family == name
    assert find_takers([family.algo], entry) == (family.algo,)
    needed = {entry.extra, *CATALOG.requirements(family.algo, "auto")} - {None}
    if missing := [one for one in needed if one is not None and not is_installed(one)]:
        pytest.skip(f"{family.env_id} needs {missing[0]}, which is not installed")
    spec = load_spec(family.algo)
    fields = {field.name for field in dataclasses.fields(spec.args)}
    values = {key: value for key, value in SMALL.items() if key in fields}
    monkeypatch.chdir(tmp_path)
    values |= {"env_id": family.env_id, "total_timesteps": STEPS, "exp_name": "example", "seed": 1}
    assert run_with(spec, values) == 0, capfd.readouterr().err
    (model,) = tmp_path.glob("runs/*/example.cleanrl_model")
    assert model.stat().st_size > 0


def test_what_the_catalog_says_of_backends_makes_sense() -> None:
    for env_id in CATALOG.environments():
        entry = find_environment(env_id)
        assert entry is not None and entry.backends
        assert set(entry.backends) <= {PYTHON, *EXTRAS}


@pytest.mark.parametrize(
    ("algo", "env_id"),
    [("ppo", "FrozenLake-v1"), ("dqn", "Taxi-v4"), ("c51", "Blackjack-v1"), ("pqn", "CliffWalking-v1")],
)
def test_states_and_tuples_of_states_train_as_numbers_of_which_one_is_1(
    algo: str, env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load_spec(algo)
    fields = {field.name for field in dataclasses.fields(spec.args)}
    values = {
        key: value
        for key, value in {**SMALL, "learning_starts": 64, "batch_size": 16}.items()
        if key in fields
    }
    monkeypatch.chdir(tmp_path)
    assert run_with(spec, {**values, "env_id": env_id, "total_timesteps": STEPS, "exp_name": "e"}) == 0
    assert list(tmp_path.glob("runs/*/e.cleanrl_model"))
