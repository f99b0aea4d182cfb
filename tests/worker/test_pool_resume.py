"""Algorithms named after EnvPool, in Python: a resumed run ends with the same bytes as one never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import list_checkpoints, read_origin
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.run import Run, run_with
from cleanrl_worker.kit.writer import RUN_DIR_VARIABLE
from mosaic.contract.phases import Phase, read_phase

SMALL = {
    "num_envs": 2,
    "num_steps": 16,
    "num_minibatches": 2,
    "update_epochs": 1,
    "total_timesteps": 192,
    "n_iteration": 2,
    "e_auxiliary": 1,
    "num_iterations_obs_norm_init": 1,
    "env_id": "mosaic/Catch-v0",
    "env_backend": "python",
    "eval_episodes": 0,
    "checkpoint_every": 96,
}


@pytest.mark.parametrize(
    "algo", ["pqn_atari_envpool", "pqn_atari_envpool_lstm", "ppo_procgen", "ppg_procgen", "ppo_rnd_envpool"]
)
def test_a_checkpoint_holds_all_that_a_run_needs(
    algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load_spec(algo)
    own = spec.args.__dataclass_fields__
    values: dict[str, Any] = {name: value for name, value in SMALL.items() if name in own}
    models, origin = [], None
    for name in ("whole", "resumed"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert run_with(spec, {**values, **({"resume_from": str(origin)} if origin else {})}) == 0
        (model,) = folder.glob("runs/*/*.cleanrl_model")
        models.append(model.read_bytes())
        # In the middle of the second phase of `ppg_procgen`.
        first = list_checkpoints(folder / "checkpoints")[0]
        origin = origin or first
    assert read_origin(origin).step == 96
    assert models[0] == models[1]


def test_whoever_watches_is_told_of_the_random_steps_that_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_DIR_VARIABLE, str(tmp_path))
    told: list[str] = []
    monkeypatch.setattr(Run, "preparing", lambda run: told.append(str(read_phase(tmp_path))))
    own = load_spec("ppo_rnd_envpool").args.__dataclass_fields__
    values = {name: value for name, value in SMALL.items() if name in own}
    assert run_with(load_spec("ppo_rnd_envpool"), values) == 0
    assert set(told) == {"phase 1 (random steps, to see what observations are like)"}
    assert read_phase(tmp_path) == Phase(2, "training")
