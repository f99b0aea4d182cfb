"""Procgen: on which levels a policy is trained and played, and what is refused before anything starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import envpool
import numpy as np
import pytest

from cleanrl_worker.algorithms import ppo_atari, ppo_procgen
from cleanrl_worker.config.footprint import estimated_memory
from cleanrl_worker.kit.normalise import RewardScaler
from cleanrl_worker.kit.open_envs import open_envs, open_episodes
from cleanrl_worker.portable import probe
from cleanrl_worker.schemas.environments import check_fit, find_environment, gymnasium_id, load_environments
from cleanrl_worker.supervisor import inspection
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.errors import UserError
from mosaic.contract.extras import absent_for_procgen, advice_for

GAME, CATCH = "CoinrunEasy-v0", "mosaic/Catch-v0"


def first_pictures(evaluating: bool, **options: Any) -> int:
    """With how many different pictures four environments begin."""
    args = ppo_procgen.SPEC.args(env_id=GAME, num_envs=4, **options)
    obs = np.zeros((4, 3, 64, 64), np.uint8)
    if evaluating:
        with open_episodes(ppo_procgen.SPEC, args, 4) as episodes:
            for index in range(4):
                episodes.restart(index, 7 + index, obs)
    else:
        with open_envs(ppo_procgen.SPEC, args) as envs:
            envs.reset(1, obs)
    return len(np.unique(obs.reshape(4, -1), axis=0))


@pytest.mark.parametrize(
    ("options", "trained", "played"),
    [
        ({}, 4, 4),
        ({"num_levels": 1}, 1, 4),
        ({"num_levels": 1, "start_level": 3, "eval_levels": "training"}, 1, 1),
        ({"num_levels": 1, "env_kwargs": '{"num_levels": 0}'}, 4, 4),
    ],
)
def test_levels_are_chosen_for_training_and_for_evaluations(
    options: dict[str, Any], trained: int, played: int
) -> None:
    assert (first_pictures(False, **options), first_pictures(True, **options)) == (trained, played)


def test_rewards_are_divided_by_the_deviation_of_returns_over_all_rollouts() -> None:
    scaler = RewardScaler(num_envs=4, gamma=0.9)
    random = np.random.default_rng(0)
    rewards = random.choice([0.0, 50.0], (500, 4)).astype(np.float32)
    dones = (random.random((500, 4)) < 0.1).astype(np.float32)
    scaled = np.concatenate(
        [scaler.scale(rewards[:250], dones[:250]), scaler.scale(rewards[250:], dones[250:])]
    )
    running, sums = np.zeros(4), []
    for reward, done in zip(rewards, dones, strict=True):
        running = running * 0.9 + reward
        sums.append(running)
        running = running * (1.0 - done)
    np.testing.assert_allclose(scaled[-1], rewards[-1] / np.std(sums), rtol=1e-3)
    again = RewardScaler(num_envs=4, gamma=0.9)
    again.load(scaler.state())
    assert np.array_equal(again.scale(rewards, dones), scaler.scale(rewards, dones))


def test_rollouts_that_wait_are_in_the_estimate_of_memory() -> None:
    entry = find_environment(GAME)
    values = {"num_envs": 64, "num_steps": 256, "total_timesteps": 25_000_000, "n_iteration": 32}
    parts = estimated_memory(values, entry)
    assert parts is not None and parts["stored_rollouts"] == 32 * 64 * 256 * 64 * 64 * 3 // 1_000_000
    few = estimated_memory({**values, "total_timesteps": 1000}, entry)
    assert few is not None and few["stored_rollouts"] == 12


def test_the_catalog_has_all_sixteen_games_with_their_set() -> None:
    games = {name: entry for name, entry in load_environments().items() if entry.family == "procgen"}
    assert len({name.removesuffix("Easy-v0") for name in games if name.endswith("Easy-v0")}) == 16
    assert {entry.extra for entry in games.values()} == {"procgen"}
    found = probe.describe_with("envpool", GAME, {})
    assert games[GAME].observation == found["observation"] and games[GAME].action == found["action"]


def test_a_game_alone_is_the_easy_one() -> None:
    assert gymnasium_id("bigfish", "envpool") == "BigfishEasy-v0"
    assert gymnasium_id("bigfish", "python") == "bigfish"


REFUSED = [
    ("ppo_procgen", GAME, {"env_backend": "python"}, {}, f"{GAME} exists only in EnvPool"),
    ("ppo_atari_envpool", GAME, {}, {}, "which EnvPool does only for Atari games; use ppo_procgen"),
    ("ppo_procgen", GAME, {"start_level": 5}, {}, "num_levels is 0, which means all levels"),
    ("ppo_procgen", GAME, {"num_levels": 9, "start_level": 2**31 - 5}, {}, "levels end at 2147483647"),
    (
        "ppo_procgen",
        CATCH,
        {"num_levels": 9, "env_backend": "python"},
        {},
        "mosaic/Catch-v0 is not a game of Procgen",
    ),
    ("ppo_procgen", GAME, {"num_levels": -1}, {}, "must be a whole number of at least 0"),
    ("ppo_procgen", GAME, {}, {"num_levels": -1}, "is asked for with num_levels -1: give 0 or more"),
    ("dqn_atari", GAME, {}, {}, "which EnvPool does only for Atari games; use ppo_procgen"),
    ("dqn", GAME, {}, {}, "has image observations; use ppo_procgen"),
    ("ppo", GAME, {"env_backend": "envpool"}, {}, "has image observations; use ppo_procgen"),
]


@pytest.mark.parametrize(("algo", "env_id", "params", "kwargs", "said"), REFUSED)
def test_a_dry_run_refuses_what_cannot_be(
    algo: str, env_id: str, params: dict[str, Any], kwargs: dict[str, Any], said: str, tmp_path: Path
) -> None:
    extras = {"algo_params": params, **({"env_kwargs": kwargs} if kwargs else {})}
    config = {"run_id": "r", "algo": algo, "env_id": env_id, "total_timesteps": 64, "extras": extras}
    with pytest.raises(UserError) as refused:
        inspection.inspect(config, None, tmp_path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_training_refuses_levels_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for flags in (
        ["--start-level=5"],
        ["--num-levels=9", "--env-id=mosaic/Catch-v0", "--env-backend=python"],
    ):
        assert ppo_procgen.main(flags) == 2
    assert not list(tmp_path.iterdir())


def test_algorithms_that_prepare_pictures_do_not_fit() -> None:
    entry = find_environment(GAME)
    assert entry is not None
    check_fit("ppo_procgen", entry)
    assert CATALOG.misfit(ppo_atari.SPEC.name, GAME)


def test_the_doctor_names_a_missing_library_too(tmp_path: Path) -> None:
    assert absent_for_procgen() == []
    (part,) = Path(envpool.__file__).with_name("procgen").glob("procgen_*.so")
    # The same, but asking for a library that no system has.
    (tmp_path / part.name).write_bytes(part.read_bytes().replace(b"libQt5Gui.so.5", b"libQt5Gui.so.x"))
    absent = absent_for_procgen(tmp_path)
    assert absent == ["libQt5Gui.so.x"]
    assert "`apt-get install libqt5gui5`" in advice_for(absent)


def test_a_missing_library_of_the_system_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "libQt5Gui.so.5").write_text("not a library")
    question = [sys.executable, str(probe.__file__), "env", GAME, "--backend", "envpool"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(question, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout)["error"] == (
        f"EnvPool cannot make '{GAME}': the games of Procgen are drawn with a library of the system, "
        "libQt5Gui.so.5: run `apt-get install libqt5gui5` (on Debian and Ubuntu)."
    )
