"""`env_backend`: what a faster backend cannot do is refused before anything starts; what differs is said."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.algorithms import dqn, ppo, ppo_atari, ppo_atari_envpool
from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.kit.open_envs import open_envs
from cleanrl_worker.kit.state import decode
from cleanrl_worker.schemas.environments import gymnasium_id
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.supervisor import inspection
from mosaic.contract.errors import UserError

REFUSED = [
    ("dqn", "Taxi-v4", {}, "EnvPool does not have the environment 'Taxi-v4': use env_backend python."),
    ("dqn", "CartPole-v1", {"env_kwargs": {"sutton_barto_reward": True}}, "argument 'sutton_barto_reward'"),
    ("ppo_atari", "CarRacing-v3", {}, "ppo_atari takes discrete"),
    ("dqn", "CartPole-v1", {"capture_video": True}, "env_backend envpool records no videos (capture_video)"),
    ("dqn", "some.module:Own-v0", {}, "and some.module:Own-v0 comes from a Python module"),
    ("ppo", "Pong-v5", {}, "PongNoFrameskip-v4 has image observations"),
]


def config_of(algo: str, env_id: str, options: dict[str, Any], backend: str = "envpool") -> dict[str, Any]:
    params = {"env_backend": backend, **{k: v for k, v in options.items() if k == "capture_video"}}
    extras = {"algo_params": params, **{k: v for k, v in options.items() if k != "capture_video"}}
    return {"run_id": "r", "algo": algo, "env_id": env_id, "total_timesteps": 9, "extras": extras}


@pytest.mark.parametrize(("algo", "env_id", "options", "said"), REFUSED)
def test_a_dry_run_refuses_what_envpool_cannot_do(
    algo: str, env_id: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r".") as refused:
        inspection.inspect(config_of(algo, env_id, options), None, tmp_path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_curriculum_needs_python(tmp_path: Path) -> None:
    stages = [{"env_id": "CartPole-v1", "condition": "steps>=100"}, {"env_id": "CartPole-v0"}]
    config = config_of("dqn", "CartPole-v1", {"curriculum_schedule": stages})
    config["total_timesteps"] = 1000
    with pytest.raises(UserError, match="env_backend envpool does not support curricula"):
        inspection.inspect(config, None, tmp_path)


def test_ale_has_games_of_atari_only(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ALE's vector does not have the environment 'CartPole-v1'"):
        inspection.inspect(config_of("dqn", "CartPole-v1", {}, "ale"), None, tmp_path)


@pytest.mark.parametrize(("algo", "env_id", "options", "said"), REFUSED)
def test_training_refuses_the_same(algo: str, env_id: str, options: dict[str, Any], said: str) -> None:
    spec = {"dqn": dqn, "ppo": ppo, "ppo_atari": ppo_atari}[algo].SPEC
    kwargs = json.dumps(options.get("env_kwargs", {}))
    video = bool(options.get("capture_video"))
    known = gymnasium_id(env_id, "envpool")
    args = spec.args(env_id=known, env_backend="envpool", env_kwargs=kwargs, capture_video=video)
    with pytest.raises(UserError) as refused:
        open_envs(spec, args)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("env_id", "said"),
    [
        ("ALE/Pang-v5", r"^There is no environment 'ALE/Pang-v5'; did you mean 'ALE/\w+-v5'\?$"),
        ("Qqqq", r"^Environment 'Qqqq' cannot be made: NameNotFound: .*[^.?]\.$"),
    ],
)
def test_a_name_that_python_does_not_know_either_is_no_fault_of_the_backend(
    env_id: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        inspection.inspect(config_of("ppo_atari_envpool", env_id, {}), None, tmp_path)


def test_pictures_that_an_algorithm_prepares_need_python() -> None:
    spec = ppo_atari.SPEC
    args = spec.args(env_id="gfootball/11_vs_11_kaggle-v1", env_backend="envpool")
    with pytest.raises(UserError, match="which EnvPool does only for Atari games: use env_backend python"):
        open_envs(spec, args)


def test_a_backend_that_is_not_installed_is_told_with_the_command_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "is_installed", lambda name: name != "envpool")
    found = inspection.inspect(config_of("dqn", "CartPole-v1", {}), None, tmp_path)
    assert found.missing == (("envpool", "env_backend envpool"),)


def test_the_light_process_imports_no_backend(tmp_path: Path) -> None:
    config = json.dumps(config_of("dqn", "CartPole-v1", {}))
    code = (
        "import json, sys; from pathlib import Path\n"
        "from cleanrl_worker.supervisor.inspection import inspect\n"
        f"found = inspect(json.loads({config!r}), None, Path({str(tmp_path)!r}))\n"
        "print(found.entry.env_id, {'envpool', 'gymnasium', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "CartPole-v1 set()\n", done.stderr


def test_every_algorithm_offers_the_backends_and_one_is_named_after_its_own() -> None:
    schema = load_schema("dqn")
    assert schema is not None
    parameter = schema.parameter("env_backend")
    assert parameter is not None
    assert (parameter.choices, parameter.default) == (("auto", "python", "envpool", "ale"), "auto")
    assert schema.env_backend == "python"
    pooled = load_schema("ppo_atari_envpool")
    assert pooled is not None
    assert pooled.env_backend == "envpool" == ppo_atari_envpool.SPEC.env_backend


@pytest.mark.parametrize(
    ("env_id", "backend", "known"),
    [
        ("Pong-v5", "envpool", "PongNoFrameskip-v4"),
        ("Pong-v5", "python", "Pong-v5"),
        ("HalfCheetah-v5", "envpool", "HalfCheetah-v5"),
        ("ALE/Pong-v5", "envpool", "ALE/Pong-v5"),
    ],
)
def test_envpools_names_of_games_become_gymnasiums(env_id: str, backend: str, known: str) -> None:
    assert gymnasium_id(env_id, backend) == known


def test_a_run_says_what_differs_goes_on_with_new_episodes_and_is_evaluated_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shared = ["--env-id=CartPole-v1", "--env-backend=envpool", "--num-envs=2", "--num-steps=32"]
    shared += ["--checkpoint-every=128", "--eval-episodes=2"]
    assert ppo.main([*shared, "--total-timesteps=256"]) == 0
    said = capsys.readouterr().err
    assert said.count("EnvPool steps CartPole-v1: episodes start from other random numbers") == 1
    assert "lost life" not in said
    assert "could not be evaluated" not in said
    origin = list_checkpoints(Path("checkpoints"))[-1]
    held = decode(origin)["parts"]
    assert held["envs"] == {"seed": 1, "resumed": 0}
    assert ppo.main([*shared, "--total-timesteps=512", f"--resume-from={origin}"]) == 0
    assert capsys.readouterr().err.count("CartPole-v1 starts new episodes") == 1
    resumed = decode(list_checkpoints(Path("checkpoints"))[-1])["parts"]
    assert resumed["envs"] == {"seed": 1, "resumed": 1}
    refused = ["--env-id=CartPole-v1", *shared[2:], "--total-timesteps=512"]
    refused.append(f"--resume-from={list_checkpoints(Path('checkpoints'))[-1]}")
    assert ppo.main(refused) == 2
    assert "env_backend is 'auto', but 'envpool' in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("algo", "env_id"),
    [
        ("c51", "MountainCar-v0"),
        ("ddpg_continuous_action", "HalfCheetah-v4"),
        ("dqn", "LunarLander-v3"),
        ("ppo", "MiniGrid-DoorKey-5x5-v0"),
        ("ppo_continuous_action", "BipedalWalker-v3"),
        ("pqn", "Acrobot-v1"),
        ("rpo_continuous_action", "CheetahRun-v1"),
        ("sac_continuous_action", "Pendulum-v1"),
        ("td3_continuous_action", "MountainCarContinuous-v0"),
    ],
)
def test_every_algorithm_trains_on_envpool(
    algo: str, env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module: Any = importlib.import_module(f"cleanrl_worker.algorithms.{algo}")
    schema = load_schema(algo)
    assert schema is not None
    own = {"learning_starts": 64, "num_steps": 32, "num_minibatches": 2, "batch_size": 32}
    options = [f"--{k.replace('_', '-')}={v}" for k, v in own.items() if schema.parameter(k)]
    options += ["--env-backend=envpool", f"--env-id={env_id}", "--total-timesteps=128", "--eval-episodes=0"]
    assert module.main(options) == 0
    assert list(tmp_path.glob("runs/*/*.cleanrl_model"))
