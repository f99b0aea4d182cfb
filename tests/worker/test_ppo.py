"""The first algorithm: it learns, repeats itself, and ends the way it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms.ppo import main
from cleanrl_worker.kit.rollout import advantages
from cleanrl_worker.kit.torch_backend import Adam
from cleanrl_worker.kit.vector_env import make_envs
from cleanrl_worker.kit.writer import folder_name
from mosaic.analytics.event_files import EventReader, Series
from mosaic.contract.errors import UserError

COMMAND = (sys.executable, "-m", "cleanrl_worker.algorithms.ppo")

# Every episode is cut off after five steps that give 1 each, so the value is 1 / (1 - gamma) everywhere.
CUT_OFF_ENV = """
import gymnasium, numpy

class Endless(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.ones(1, numpy.float32), {}

    def step(self, action):
        assert action in (3, 4)
        return numpy.ones(1, numpy.float32), 1.0, False, False, {}

gymnasium.register("Endless-v0", Endless, max_episode_steps=5)
"""


def run_ppo(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.run([*COMMAND, *flags], cwd=folder, capture_output=True, text=True, timeout=200)


def results_folder(folder: Path) -> Path:
    (results,) = (folder / "runs").iterdir()
    return results


def read_scalars(folder: Path) -> dict[str, Series]:
    reader = EventReader(results_folder(folder))
    (chunk,) = reader.poll(1_000_000)
    assert not reader.problems
    return chunk.series


def test_learns_cartpole(tmp_path: Path) -> None:
    run = run_ppo(tmp_path, "--total-timesteps=80000", "--learning-rate=0.001", "--seed=3")
    assert run.returncode == 0, run.stderr
    scalars = read_scalars(tmp_path)
    returns = scalars["charts/episodic_return"].values
    assert np.mean(returns[:50]) < 60
    assert np.mean(returns[-50:]) > 150
    assert scalars["charts/learning_rate"].steps[-1] == 80000
    assert scalars["charts/SPS"].values[-1] > 0
    for name in ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac"):
        assert len(scalars[f"losses/{name}"]) == len(scalars["charts/learning_rate"])
    assert {"time/env", "time/act", "time/update"} <= scalars.keys()


def test_one_seed_gives_one_result_and_another_seed_another(tmp_path: Path) -> None:
    curves = []
    for name, seed in (("first", 7), ("second", 7), ("third", 8)):
        assert run_ppo(tmp_path / name, "--total-timesteps=6000", f"--seed={seed}").returncode == 0
        scalars = read_scalars(tmp_path / name)
        timeless = {tag for tag in scalars if tag != "charts/SPS" and not tag.startswith("time/")}
        curves.append({tag: (list(scalars[tag].steps), list(scalars[tag].values)) for tag in timeless})
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]
    weights = [
        (results_folder(tmp_path / name) / "ppo.cleanrl_model").read_bytes() for name in ("first", "second")
    ]
    assert weights[0] == weights[1]


def test_every_step_and_every_episode_is_counted(tmp_path: Path) -> None:
    assert run_ppo(tmp_path, "--total-timesteps=1000", "--num-envs=3").returncode == 0
    scalars = read_scalars(tmp_path)
    assert scalars["charts/learning_rate"].steps[-1] == 999
    lengths = scalars["charts/episodic_length"].values
    assert list(lengths) == list(scalars["charts/episodic_return"].values)
    assert 999 - 3 * 500 < sum(lengths) <= 999
    assert len(lengths) > 20


@pytest.mark.parametrize("shared", [False, True])
def test_model_file_has_the_known_names(tmp_path: Path, shared: bool) -> None:
    flags = ["--shared-trunk"] if shared else []
    assert run_ppo(tmp_path, "--total-timesteps=64", "--exp-name=mine", *flags).returncode == 0
    written = sorted(path.name for path in results_folder(tmp_path).iterdir())
    assert written[0].startswith("events.") and written[1:] == ["mine.cleanrl_model", "mine.policy.json"]
    weights = torch.load(results_folder(tmp_path) / "mine.cleanrl_model", weights_only=True)
    layers = {name.rpartition(".")[0] for name in weights}
    if shared:
        assert layers == {"trunk.0", "trunk.2", "actor.0", "critic.0"}
    else:
        assert layers == {f"{net}.{layer}" for net in ("actor", "critic") for layer in (0, 2, 4)}
        assert weights["actor.4.weight"].shape == (2, 64)
    MLPAgent(4, 2, shared).load_state_dict(weights)


def test_value_of_an_endless_task_survives_the_time_limit(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(CUT_OFF_ENV)
    flags = ("--gamma=0.9", "--no-anneal-lr", "--learning-rate=0.003", "--no-clip-vloss", "--vf-coef=1")
    run = run_ppo(tmp_path, "--env-id=endless:Endless-v0", "--total-timesteps=40000", *flags)
    assert run.returncode == 0, run.stderr
    agent = MLPAgent(1, 2)
    agent.load_state_dict(torch.load(results_folder(tmp_path) / "ppo.cleanrl_model", weights_only=True))
    # Without the bootstrap it would be about 2.5, what is left of an episode on average.
    assert agent.value(torch.ones(1, 1)).item() == pytest.approx(10.0, abs=0.5)
    assert set(read_scalars(tmp_path)["charts/episodic_return"].values) == {5.0}


def test_advantages_stop_at_an_episode_end() -> None:
    rewards = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    dones = np.array([[0.0], [1.0], [0.0]], dtype=np.float32)
    values = np.array([[10.0], [20.0], [30.0]], dtype=np.float32)
    next_values = np.array([[20.0], [50.0], [40.0]], dtype=np.float32)
    found = advantages(rewards, dones, values, next_values, gamma=0.5, gae_lambda=0.5)
    assert found[:, 0].tolist() == [1 + 10 - 10 + 0.25 * 7, 2 + 25 - 20, 4 + 20 - 30]


def test_optimizer_takes_the_steps_of_torch_adam() -> None:
    torch.manual_seed(1)
    ours, theirs = MLPAgent(3, 2), MLPAgent(3, 2)
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(ours, eps=1e-5)
    reference = torch.optim.Adam(theirs.parameters(), lr=0.01, eps=1e-5)
    for _ in range(5):
        obs = torch.randn(8, 3)
        adam.update(_some_loss(ours, obs), learning_rate=0.01, max_grad_norm=0.5)
        reference.zero_grad()
        torch.autograd.backward(_some_loss(theirs, obs))
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        reference.step()
    for name, weight in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], weight)


def _some_loss(agent: MLPAgent, obs: torch.Tensor) -> torch.Tensor:
    logits, values = agent(obs)
    loss: torch.Tensor = (logits.log_softmax(1)[:, 0] * 3 + values.square()).mean()
    return loss


def test_finished_environments_start_anew_within_the_step() -> None:
    with make_envs("ppo", "CartPole-v1", 2) as envs:
        obs = np.zeros((2, 4), dtype=np.float32)
        envs.reset(5, out=obs)
        for _ in range(200):
            step = envs.step([0, 1], out=obs)
            for index, last in step.final_obs.items():
                assert step.terminated[index] and not step.truncated[index]
                assert abs(last[2]) > 0.2 > 0.05 >= abs(obs[index]).max()
            assert len(step.episodes) == len(step.final_obs)
            assert all(episode.total_reward == episode.length for episode in step.episodes)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--learning-rat=1", "ppo has no parameter 'learning-rat'; did you mean 'learning_rate'?"),
        (
            "--learning-rate=fast",
            "ppo parameter 'learning_rate' is 'fast', but must be a number of at least 0.",
        ),
        ("--gamma=1.5", "ppo parameter 'gamma' is '1.5', but must be a number from 0 to 1."),
        ("--env-id=CartPol-v1", "did you mean 'CartPole-v1'?"),
        ("--env-id=Pendulum-v1", "or multi_binary actions, but Pendulum-v1 has box actions"),
        ("--env-id=nowhere:Some-v0", "module 'nowhere' cannot be imported"),
        ("--env-kwargs=[1]", "must be a JSON object"),
        ("--total-timesteps=2", "less than one step of 4 environments"),
    ],
)
def test_a_wrong_argument_gets_one_line_and_leaves_nothing(
    flag: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([flag]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert len(complaint.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_wrong_flag_is_told_in_any_terminal(tmp_path: Path, encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "40"}
    command = [*COMMAND, "--learning-rat=1"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert run.stderr == "ppo has no parameter 'learning-rat'; did you mean 'learning_rate'?\n"


def test_track_without_wandb_says_how_to_install_it(tmp_path: Path) -> None:
    try:
        import wandb  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        run = run_ppo(tmp_path, "--track")
        assert run.returncode == 2
        assert "./mosaic extras install wandb" in run.stderr
    else:
        pytest.skip("wandb is installed")


def test_space_errors_name_both_sides() -> None:
    with pytest.raises(UserError, match="ppo takes vector or grid observations, but ALE/Pong-v5 has image "):
        make_envs("ppo", "ALE/Pong-v5", 1)


def test_slashes_and_colons_make_one_folder_name() -> None:
    assert folder_name("ALE/Pong-v5") == "ALE_Pong-v5"
    assert folder_name("my.module:Env-v0") == "my.module_Env-v0"
    assert folder_name("../up") == "_up"


def test_sigterm_keeps_curves_and_weights(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--total-timesteps=100000000"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 60
        # Event files grow while the run goes on: more than the header is there before it ends.
        while not any(file.stat().st_size > 20_000 for file in tmp_path.glob("runs/*/events*")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        _, complaint = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143
    assert complaint == b""
    assert len(read_scalars(tmp_path)["charts/episodic_return"]) > 10
    assert (results_folder(tmp_path) / "ppo.cleanrl_model").is_file()
