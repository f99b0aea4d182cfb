"""Algorithms named after EnvPool, in Python: a resumed run ends with the same bytes as one never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import list_checkpoints, read_origin
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.run import run_with

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
