"""Evaluation plays as it should, keeps the best model, and leaves training as it was."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from cleanrl_worker.config.checkpoint_files import read_card, read_origin
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.evaluation import episodes as evaluation
from cleanrl_worker.evaluation.episodes import FIRST_SEED, evaluate
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.evaluation.policies import GreedyPolicy
from cleanrl_worker.kit.vector_env import make_envs
from mosaic.analytics.store import RunMetrics

TIMELIKE = ("charts/SPS", "time/")

# Draws from numpy's own stream, and in evaluations does what the file `evaluations` says.
MOODY_ENV = """
import os, pathlib, signal
import gymnasium, numpy

class Moody(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.played = 0
        if seed is not None and seed >= 1_000_000:
            mood = pathlib.Path("evaluations")
            if mood.exists() and mood.read_text() == "raise":
                raise RuntimeError("not\\n today")
            if mood.exists() and mood.read_text() == "stop":
                mood.unlink()
                os.kill(os.getpid(), signal.SIGTERM)
        return self.look(), {}

    def look(self):
        return numpy.array([numpy.random.uniform(-1, 1), self.np_random.uniform(-1, 1)], numpy.float32)

    def step(self, action):
        obs, self.played = self.look(), self.played + 1
        return obs, float(action == int(obs[1] > 0)), self.played >= 10, False, {}

gymnasium.register("Moody-v0", Moody)
"""

FLAGS = {
    "ppo": ("--num-steps=64", "--total-timesteps=2048"),
    "dqn": ("--total-timesteps=2000", "--learning-starts=500"),
    "ppo_continuous_action": ("--env-id=Pendulum-v1", "--num-steps=200", "--total-timesteps=1000"),
    "td3_continuous_action": ("--total-timesteps=300", "--learning-starts=250", "--eval-every=100"),
}


@pytest.fixture(autouse=True)
def moody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moody.py").write_text(MOODY_ENV)
    monkeypatch.syspath_prepend(tmp_path)


def train(folder: Path, monkeypatch: pytest.MonkeyPatch, algo: str, *flags: str) -> int:
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    code: int = importlib.import_module(DEFAULT_ALGO_REGISTRY[algo]).main(["--seed=2", *FLAGS[algo], *flags])
    return code


def model_of(folder: Path, algo: str, best: bool = False) -> Path:
    (path,) = folder.glob(f"runs/*/{algo}{'.best' if best else ''}.cleanrl_model")
    return path


def curves_of(folder: Path) -> dict[str, list[tuple[int, float]]]:
    table = RunMetrics.open(folder / "runs")
    return {
        tag: list(zip(table.series(tag).steps, table.series(tag).values, strict=True))
        for tag in table.names
        if not tag.startswith(TIMELIKE)
    }


@pytest.mark.parametrize(
    ("algo", "env_id"),
    [
        ("ppo", "moody:Moody-v0"),
        ("dqn", "moody:Moody-v0"),
        ("ppo_continuous_action", "Pendulum-v1"),
        ("td3_continuous_action", "Pendulum-v1"),
    ],
)
def test_evaluations_leave_training_as_it_was(
    algo: str, env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = f"--env-id={env_id}"
    plain, watched = tmp_path / "plain", tmp_path / "watched"
    assert train(plain, monkeypatch, algo, env, "--eval-every=0", "--eval-episodes=0") == 0
    every = () if algo == "td3_continuous_action" else ("--eval-every=500",)
    assert train(watched, monkeypatch, algo, env, "--eval-episodes=2", *every) == 0
    assert model_of(plain, algo).read_bytes() == model_of(watched, algo).read_bytes()
    curves, more = curves_of(plain), curves_of(watched)
    assert more.keys() - curves.keys() == {"eval/mean_return", "eval/std_return", "eval/episodic_return"}
    assert curves == {tag: more[tag] for tag in curves}


def test_the_best_of_the_evaluated_models_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("--eval-every=200", "--eval-episodes=6", "--learning-rate=0.01")
    assert train(tmp_path, monkeypatch, "ppo", *flags) == 0
    means = curves_of(tmp_path)["eval/mean_return"]
    steps = [step for step, _ in means]
    assert steps[0] == 256 and steps[-1] == 2048 and len(steps) > 5
    best_step, best_mean = max(means, key=lambda point: (point[1], -point[0]))
    card = read_card(model_of(tmp_path, "ppo", best=True))
    assert card is not None and card.step == best_step
    assert (tmp_path / "checkpoints" / "best.npz").is_file()
    model = open_model(model_of(tmp_path, "ppo", best=True))
    with model.make_envs(1) as envs:
        again = evaluate(model.load_policy(envs), envs, 6, 2 + FIRST_SEED)
    assert again.mean == pytest.approx(best_mean)


def test_an_evaluation_cut_short_by_a_stop_is_made_up_for_after_the_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--env-id=moody:Moody-v0", "--eval-every=500", "--eval-episodes=3", "--checkpoint-every=700")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(whole, monkeypatch, "ppo", *flags) == 0
    parts.mkdir()
    (parts / "evaluations").write_text("stop")
    assert train(parts, monkeypatch, "ppo", *flags) == 143
    (stopped,) = parts.glob("checkpoints/step-*.npz")
    assert "step-000000000512" in stopped.name
    assert not [tag for tag in curves_of(parts) if tag.startswith("eval/")]
    assert train(parts, monkeypatch, "ppo", *flags, f"--resume-from={stopped}") == 0
    assert curves_of(parts) == curves_of(whole)
    for best in (False, True):
        assert model_of(parts, "ppo", best).read_bytes() == model_of(whole, "ppo", best).read_bytes()


def test_an_environment_that_fails_in_evaluation_costs_a_line_and_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evaluations").write_text("raise")
    assert train(tmp_path, monkeypatch, "ppo", "--env-id=moody:Moody-v0") == 0
    path = model_of(tmp_path, "ppo")
    assert capsys.readouterr().err == f"{path} could not be evaluated: RuntimeError: not today\n"
    assert "eval/episodic_return" not in curves_of(tmp_path)


def test_without_evaluations_the_best_checkpoint_is_that_of_the_best_training_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--env-id=moody:Moody-v0", "--checkpoint-every=512", "--eval-episodes=0", "--learning-rate=0.01")
    assert train(tmp_path, monkeypatch, "ppo", *flags) == 0
    returns = curves_of(tmp_path)["charts/episodic_return"]
    means = {
        end: np.mean([value for step, value in returns if end - 512 < step <= end])
        for end in range(512, 2049, 512)
    }
    best = read_origin(tmp_path / "checkpoints" / "best.npz")
    assert best.step == max(means, key=lambda end: means[end])
    assert best.score == pytest.approx(max(means.values()))
    assert not list(tmp_path.glob("runs/*/*.best.*"))


def test_evaluations_without_episodes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path, monkeypatch, "ppo", "--eval-every=10", "--eval-episodes=0") == 2
    assert capsys.readouterr().err == ("eval_every asks for evaluations, but eval_episodes is 0; raise it.\n")


def follow_tilt(obs: torch.Tensor) -> torch.Tensor:
    """Values of CartPole's actions by the tilt alone, which keeps the pole up for a while."""
    tilt = obs[:, 2]
    return torch.stack([-tilt, tilt], dim=1)


def test_the_same_episodes_are_played_by_any_number_of_environments() -> None:
    policy = GreedyPolicy(follow_tilt, Discrete(2), epsilon=0.1)
    found = []
    for num_envs in (1, 3, 8):
        with make_envs("dqn", "CartPole-v1", num_envs) as envs:
            found.append(evaluate(policy, envs, 7, seed=30))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0].returns)) > 3
    assert found[0].mean == pytest.approx(np.mean(found[0].returns))
    assert found[0].std == pytest.approx(np.std(found[0].returns))


def test_an_endless_episode_is_cut_off_and_counts_as_far_as_it_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluation, "EPISODE_CAP", 9)
    policy = GreedyPolicy(follow_tilt, Discrete(2), epsilon=0.0)
    with make_envs("dqn", "CartPole-v1", 2) as envs:
        found = evaluate(policy, envs, 3, seed=1)
    assert found.cut_off == 3
    assert [episode.length for episode in found.episodes] == [9, 9, 9] == found.returns
