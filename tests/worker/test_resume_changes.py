"""A run that ends at a step goes on as if it had not; where it is asked to, with other rates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import find_origin
from cleanrl_worker.config.resuming import TUNABLE
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.run import run_with
from cleanrl_worker.schemas.model import load_schema
from mosaic.client import resume_config
from mosaic.contract.errors import UserError

OFF_POLICY = {"total_timesteps": 900, "learning_starts": 200, "batch_size": 16}
CASES: dict[str, tuple[dict[str, Any], int, dict[str, Any]]] = {
    "ppo": (
        {"env_id": "CartPole-v1", "total_timesteps": 1500, "num_steps": 50},
        600,
        {"learning_rate": 0.01},
    ),
    "dqn": ({"env_id": "CartPole-v1", **OFF_POLICY}, 400, {"gamma": 0.5, "tau": 0.5}),
    "sac_continuous_action": ({"env_id": "Pendulum-v1", **OFF_POLICY}, 400, {"policy_lr": 0.01}),
}


def model_of(folder: Path) -> bytes:
    (path,) = folder.glob("runs/*/*.cleanrl_model")
    return path.read_bytes()


def train(algo: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **values: Any) -> int:
    folder.mkdir()
    monkeypatch.chdir(folder)
    return run_with(load_spec(algo), {"eval_episodes": 0, "seed": 4, **CASES[algo][0], **values})


@pytest.mark.parametrize("algo", CASES)
def test_a_run_ends_at_a_step_and_goes_on_to_the_same_bytes_or_with_what_was_changed(
    algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, stop, changes = CASES[algo]
    whole, half, again, changed = (tmp_path / name for name in ("whole", "half", "again", "changed"))
    assert train(algo, whole, monkeypatch) == 0
    assert train(algo, half, monkeypatch, stop_at=stop) == 0
    place = half / "checkpoints"
    assert find_origin(place).step == stop
    assert train(algo, again, monkeypatch, resume_from=str(place)) == 0
    assert model_of(again) == model_of(whole)
    assert (
        train(algo, changed, monkeypatch, resume_from=str(place), resume_changes=",".join(changes), **changes)
        == 0
    )
    assert model_of(changed) != model_of(whole)
    assert find_origin(changed / "checkpoints").args[next(iter(changes))] == next(iter(changes.values()))
    capsys.readouterr()
    assert train(algo, tmp_path / "refused", monkeypatch, resume_from=str(place), **changes) == 2
    assert f"{next(iter(changes))} is" in capsys.readouterr().err


def test_a_run_that_is_to_end_within_an_update_takes_the_whole_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train("ppo", tmp_path / "run", monkeypatch, stop_at=601) == 0
    assert find_origin(tmp_path / "run" / "checkpoints").step == 800
    assert train("ppo", tmp_path / "more", monkeypatch, stop_at=99_999) == 0
    assert find_origin(tmp_path / "more" / "checkpoints").step == 1500


def test_what_a_checkpoint_is_made_for_cannot_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train("ppo", tmp_path / "run", monkeypatch, stop_at=600) == 0
    place = tmp_path / "run" / "checkpoints"
    for name, value, told in (
        ("num_steps", 20, "'num_steps' cannot change when a run is resumed"),
        ("learning_rat", 1.0, "did you mean 'learning_rate'"),
    ):
        with pytest.raises(UserError, match=told):
            resume_config(place, params={"resume_changes": name, "num_steps": value, "learning_rate": 0.01})
    config = resume_config(place, params={"resume_changes": "learning_rate", "learning_rate": 0.01})
    asked = config["metadata"]["worker"]["config"]
    assert asked["extras"]["algo_params"]["learning_rate"] == 0.01
    with pytest.raises(UserError, match=r"ent_coef is 0\.5.*resume_changes=ent_coef"):
        resume_config(place, params={"resume_changes": "learning_rate", "ent_coef": 0.5})


def test_what_may_change_are_parameters_that_there_are() -> None:
    schemas = [load_schema(algo) for algo in ("ppo", "dqn", "td3_continuous_action", "sac_continuous_action")]
    known = {
        one.name
        for schema in [*schemas, *map(load_schema, ("rpo_continuous_action", "ppo_rnd_envpool"))]
        if schema
        for one in schema.parameters
    }
    assert known >= TUNABLE
