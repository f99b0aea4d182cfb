"""How fast a policy is evaluated, beside Stable-Baselines3's `evaluate_policy` with one environment.

python benchmarks/evaluation.py --episodes 1000

A PPO policy is trained on CartPole for a short while. Its weights are copied into the policy of a
Stable-Baselines3 PPO, whose two networks have the same layers, so that both play the same actions. Ours is
`run_batched_evaluation` as a run calls it, with its files. Both have one thread, and take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from tables import Table, write_tables

from cleanrl_worker.algorithms import ppo
from cleanrl_worker.evaluation.evaluate_policy import EvalSettings, run_batched_evaluation
from cleanrl_worker.evaluation.models import SavedModel, open_model

ENV = "CartPole-v1"
LIMIT = 5.0
_PLACES = {
    "actor.0": "mlp_extractor.policy_net.0",
    "actor.2": "mlp_extractor.policy_net.2",
    "actor.4": "action_net",
    "critic.0": "mlp_extractor.value_net.0",
    "critic.2": "mlp_extractor.value_net.2",
    "critic.4": "value_net",
}


def train(folder: Path, steps: int) -> SavedModel:
    """Our policy after a short training."""
    os.chdir(folder)
    assert ppo.main([f"--env-id={ENV}", f"--total-timesteps={steps}", "--seed=1", "--eval-episodes=0"]) == 0
    (path,) = folder.glob("runs/*/ppo.cleanrl_model")
    return open_model(path)


def copy_to_peer(model: SavedModel) -> PPO:
    """A policy of the other library with the same weights."""
    peer = PPO("MlpPolicy", ENV, device="cpu")
    weights = {
        f"{there}.{kind}": model.weights[f"{here}.{kind}"]
        for here, there in _PLACES.items()
        for kind in ("weight", "bias")
    }
    peer.policy.load_state_dict(weights)
    return peer


def check_same_actions(model: SavedModel, peer: PPO) -> None:
    """Both must choose the same, or the comparison is worth nothing."""
    obs = np.random.default_rng(1).uniform(-1, 1, (1000, 4)).astype(np.float32)
    with model.make_envs(1) as envs:
        ours = model.load_policy(envs).act(obs)
    theirs, _ = peer.predict(obs, deterministic=True)
    assert ours == theirs.tolist()


def measure_ours(model: SavedModel, episodes: int, folder: Path) -> tuple[float, float, int]:
    """Seconds, mean return and steps of our evaluation."""
    folder.mkdir()
    started = time.perf_counter()
    found = run_batched_evaluation(model, EvalSettings(episodes=episodes), folder).overall
    return time.perf_counter() - started, found.mean, found.steps


def measure_peer(peer: PPO, episodes: int) -> tuple[float, float, int]:
    """The same of the other library's."""
    env = Monitor(gymnasium.make(ENV))
    started = time.perf_counter()
    found: Any = evaluate_policy(peer, env, episodes, deterministic=True, return_episode_rewards=True)
    seconds = time.perf_counter() - started
    returns, lengths = found
    env.close()
    return seconds, statistics.fmean(returns), sum(lengths)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50_000, help="of the training before")
    options = parser.parse_args()
    measured: dict[str, list[tuple[float, float, int]]] = {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as folder:
        model = train(Path(folder), options.steps)
        peer = copy_to_peer(model)
        torch.set_num_threads(1)
        check_same_actions(model, peer)
        for number in range(options.rounds):
            measured["ours"].append(measure_ours(model, options.episodes, Path(folder) / str(number)))
            measured["peer"].append(measure_peer(peer, options.episodes))
        os.chdir(Path(folder).parent)
    names = {"ours": "`run_batched_evaluation`", "peer": "Stable-Baselines3 `evaluate_policy`"}
    seconds = {key: statistics.median(one[0] for one in rounds) for key, rounds in measured.items()}
    rows = []
    for key, rounds in measured.items():
        rate = statistics.median(steps / taken for taken, _, steps in rounds)
        row = [names[key], f"{seconds[key]:.2f}", f"{rate:,.0f}", f"{rounds[0][1]:.1f}"]
        rows.append([*row, f"{seconds['peer'] / seconds[key]:.1f} ×"])
    ratio = seconds["peer"] / seconds["ours"]
    text = (
        f"{options.episodes:,} episodes of {ENV}, rounds: {options.rounds}, in turn, one thread each. The "
        "policy is the same: our weights, copied into a policy of Stable-Baselines3 with the same layers, "
        "which was seen to take the same actions. Ours includes the files that it writes. Its episodes start "
        f"from seeds, the other's do not, so that the mean returns differ. At least {LIMIT:.0f} × is wanted: "
        f"{'reached' if ratio >= LIMIT else 'missed'}."
    )
    header = ["", "seconds", "steps per second", "mean return", "speed"]
    packages = ("torch", "gymnasium", "numpy", "stable-baselines3")
    write_tables("evaluation", "Evaluation", text, [Table(header, rows)], packages)
    return 0 if ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
