"""Model files of every algorithm play again, and those of other people's scripts; misfits are named."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cleanrl_worker.config.checkpoint_files import card_path, read_card
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.evaluation.episodes import evaluate
from cleanrl_worker.evaluation.models import NO_STATISTICS, SavedModel, open_model
from mosaic.contract.errors import MosaicError, UserError
from support.foreign_models import FOREIGN, THEIRS, their_parts

SHORT = {
    "ppo": ("CartPole-v1", "--total-timesteps=512"),
    "ppo_atari": ("mosaic/Catch-v0", "--total-timesteps=80", "--num-envs=2", "--num-steps=20"),
    "ppo_atari_lstm": ("mosaic/Recall-v0", "--total-timesteps=80", "--num-envs=2", "--num-steps=20"),
    "ppo_continuous_action": ("Pendulum-v1", "--total-timesteps=400", "--num-steps=200"),
    "rpo_continuous_action": ("Pendulum-v1", "--total-timesteps=400", "--num-steps=200"),
    "dqn": ("CartPole-v1", "--total-timesteps=300", "--learning-starts=200"),
    "dqn_jax": ("CartPole-v1", "--total-timesteps=300", "--learning-starts=200"),
    "c51": ("CartPole-v1", "--total-timesteps=300", "--learning-starts=200", "--n-atoms=21"),
    "pqn": ("CartPole-v1", "--total-timesteps=512"),
    "ddpg_continuous_action": ("Pendulum-v1", "--total-timesteps=110", "--learning-starts=100"),
    "td3_continuous_action": ("Pendulum-v1", "--total-timesteps=110", "--learning-starts=100"),
    "sac_continuous_action": ("Pendulum-v1", "--total-timesteps=110", "--learning-starts=100"),
}


def train(algo: str, *flags: str) -> Path:
    """A short run of an algorithm in the current folder; gives its model file."""
    env_id, *short = SHORT[algo]
    module = importlib.import_module(DEFAULT_ALGO_REGISTRY[algo])
    assert module.main([f"--env-id={env_id}", *short, "--eval-episodes=3", "--seed=4", *flags]) == 0
    (path,) = Path("runs").absolute().glob(f"*/{algo}.cleanrl_model")
    return path


def test_the_card_says_what_the_weights_are_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = train("ppo_continuous_action", "--max-grad-norm=inf")
    content = json.loads(card_path(path).read_text())
    assert content.keys() == {"format", "algo", "args", "step", "normaliser"}
    assert content["format"] == 1 and "resume_from" not in content["args"]
    assert content["args"]["max_grad_norm"] == float("inf")
    assert content["normaliser"].keys() == {"mean", "var", "count", "clip"}
    assert len(content["normaliser"]["mean"]) == 3 and content["normaliser"]["clip"] == 10.0
    assert content["normaliser"]["count"] == pytest.approx(401, abs=0.01)


def open_foreign(folder: Path, content: Any, env_id: str, algo: str | None = None) -> SavedModel:
    path = folder / "theirs.cleanrl_model"
    torch.save(content, path)
    return open_model(path, algo, env_id)


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("deterministic", [True, False])
def test_files_of_other_scripts_load_and_play(kind: str, deterministic: bool, tmp_path: Path) -> None:
    algo, make = FOREIGN[kind]
    env_id = "Pendulum-v1" if SHORT[algo][0] == "Pendulum-v1" else "CartPole-v1"
    model = open_foreign(tmp_path, make(), env_id)
    assert model.spec.name == algo
    with model.make_envs(2) as envs:
        policy = model.load_policy(envs)
        state = torch.get_rng_state()
        found = [evaluate(policy, envs, 2, 7, deterministic) for _ in range(2)]
        assert found[0] == found[1]
        assert torch.equal(state, torch.get_rng_state())
        obs = np.stack([envs.observation_space.sample() for _ in range(50)])
        for action in policy.act(obs, deterministic):
            assert envs.action_space.contains(action)
    assert policy.notes == ((NO_STATISTICS,) if kind == "gaussian" else ())


@pytest.mark.parametrize("algo", THEIRS)
def test_our_files_load_in_cleanrls_classes_and_theirs_in_ours(
    algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, best_action = THEIRS[algo]
    ours = train(algo)
    networks = make()
    parts = their_parts(torch.load(ours, weights_only=True))
    assert len(parts) == len(networks)
    for net, weights in zip(networks, parts, strict=True):
        # Strict: every name and every shape, bounds and spreads too.
        net.load_state_dict(weights)
    theirs = tmp_path / "theirs.cleanrl_model"
    states: Any = tuple(net.state_dict() for net in networks)
    states = states if len(states) > 1 else states[0]
    if algo == "c51":
        states = {"model_weights": states, "args": {"n_atoms": 21, "v_min": -100, "v_max": 100}}
    torch.save(states, theirs)
    # Theirs have no statistics, so that ours are played without them too.
    models = [
        dataclasses.replace(open_model(ours), statistics=None),
        open_model(theirs, algo, SHORT[algo][0]),
    ]
    with models[0].make_envs(1) as envs:
        obs = np.stack([envs.observation_space.sample() for _ in range(50)]).astype(np.float32)
        obs = np.clip(obs, -5.0, 5.0)
        actions = [np.stack(model.load_policy(envs).act(obs)) for model in models]
        returns = [evaluate(model.load_policy(envs), envs, 2, 7).returns for model in models]
    with torch.no_grad():
        expected = best_action(networks[0], torch.from_numpy(obs)).numpy()
    for found in actions:
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert returns[0] == returns[1]


def test_bounds_of_older_files_may_have_no_row(tmp_path: Path) -> None:
    older = (FOREIGN["ddpg"][1]()[0], FOREIGN["ddpg"][1]()[1])
    assert older[0]["action_scale"].shape == (1,)
    model = open_foreign(tmp_path, older, "Pendulum-v1", "ddpg_continuous_action")
    with model.make_envs(1) as envs:
        assert envs.action_space.contains(model.load_policy(envs).act(np.zeros((1, 3), np.float32))[0])


def test_a_policy_without_its_statistics_says_so_and_plays_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = train("rpo_continuous_action")
    with_card = open_model(path)
    assert with_card.statistics is not None
    mean = np.array(with_card.statistics["mean"])
    moved = dataclasses.replace(with_card, statistics={**with_card.statistics, "mean": (mean + 1).tolist()})
    card_path(path).unlink()
    without = open_model(path, "rpo_continuous_action", "Pendulum-v1")
    obs = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 5.0]], np.float32)
    with with_card.make_envs(1) as envs:
        policies = [model.load_policy(envs) for model in (with_card, moved, without)]
        actions = [np.stack(policy.act(obs)) for policy in policies]
    assert [policy.notes for policy in policies] == [(), (), (NO_STATISTICS,)]
    assert not np.allclose(actions[0], actions[1]) and not np.allclose(actions[0], actions[2])
    np.testing.assert_allclose(policies[1].act(obs + np.float32(1.0)), actions[0], atol=1e-4)


class Harmless:
    """Something that is no weight."""


@pytest.mark.parametrize(
    ("content", "algo", "env_id", "said"),
    [
        (b"", "ppo", "CartPole-v1", "is not a PyTorch file of plain weights"),
        (b"\x81\xa6params\x80", "dqn", "CartPole-v1", "is not a PyTorch file of plain weights"),
        (b"\x81\xa6params\x80", None, "CartPole-v1", "matches no known algorithm"),
        (b"\x81\xa6par", None, "CartPole-v1", "is not a Flax file of plain weights"),
        (b"", "dqn_jax", "CartPole-v1", "is not a Flax file of plain weights"),
        (b"\x01", "dqn_jax", "CartPole-v1", "does not hold the weights of one network by their names"),
        (FOREIGN["dqn"], "dqn_jax", "CartPole-v1", "is not a Flax file of plain weights"),
        (("x", Harmless), "ppo", "CartPole-v1", "is not a PyTorch file of plain weights"),
        (
            FOREIGN["dqn"],
            "ppo",
            "CartPole-v1",
            "it lacks critic.0.weight, critic.0.bias, critic.2.weight and",
        ),
        (FOREIGN["dqn"], "pqn", "CartPole-v1", "it lacks network.1.weight"),
        (FOREIGN["dqn"], "c51", "CartPole-v1", "it has no model_weights and args"),
        (("c51", lambda: {"model_weights": 1, "args": {}}), "c51", "CartPole-v1", "not tables by name"),
        (("c51", lambda: {"model_weights": {}, "args": [1]}), "c51", "CartPole-v1", "not tables by name"),
        (
            ("c51", lambda: {"model_weights": {}, "args": {"n_atoms": "many"}}),
            "c51",
            "CartPole-v1",
            "its args say {'n_atoms': 'many'}, which does not describe a distribution of returns",
        ),
        (FOREIGN["c51"], "dqn", "CartPole-v1", "does not hold the weights of one network"),
        (FOREIGN["td3"], "ddpg_continuous_action", "Pendulum-v1", "3 parts where 2 are needed"),
        (FOREIGN["sac"], "td3_continuous_action", "Pendulum-v1", "one part where 3 are needed"),
        (
            FOREIGN["ppo"],
            "ppo",
            "Acrobot-v1",
            "critic.0.weight has the shape (64, 4) where (64, 6) is needed",
        ),
        (
            FOREIGN["dqn"],
            None,
            "MountainCar-v0",
            "is not a model of dqn for MountainCar-v0: network.0.weight",
        ),
        (FOREIGN["ppo"], None, "Pendulum-v1", "ppo takes discrete"),
        (FOREIGN["ppo"], "pppo", "CartPole-v1", "There is no algorithm 'pppo'"),
        (("x", lambda: {"a": torch.ones(2)}), None, "CartPole-v1", "matches no known algorithm"),
        (("x", lambda: [1, 2]), None, "CartPole-v1", "name its algorithm"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    content: Any, algo: str | None, env_id: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "some.cleanrl_model"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content[1](), path)
    with pytest.raises(UserError) as refused:
        model = open_model(path, algo, env_id)
        with model.make_envs(1) as envs:
            model.load_policy(envs)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_broken_card_are_named(tmp_path: Path) -> None:
    path = tmp_path / "some.cleanrl_model"
    with pytest.raises(UserError, match="There is no model file"):
        open_model(path)
    torch.save(FOREIGN["dqn"][1](), path)
    assert read_card(path) is None
    for text in ("", "[]", '{"format": 1}', '{"format": 7}', '{"format": 1, "algo": 5}'):
        card_path(path).write_text(text)
        with pytest.raises(MosaicError, match=r"some.policy.json (is not the card|has format 7)"):
            open_model(path)
