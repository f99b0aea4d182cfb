"""PPO for images, without and with memory: what is learned from, played, shown and kept."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import av
import gymnasium
import numpy as np
import pytest
import torch

from cleanrl_worker.agents.nature import NatureAgent, NatureLSTMAgent
from cleanrl_worker.algorithms import ppo_atari, ppo_atari_lstm
from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.config.footprint import estimated_memory
from cleanrl_worker.evaluation.episodes import evaluate
from cleanrl_worker.evaluation.interactive.messages import Request
from cleanrl_worker.evaluation.interactive.session import Session
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.evaluation.policies import RecurrentPolicy
from cleanrl_worker.kit.accelerate import take_envs
from cleanrl_worker.kit.open_envs import open_episodes
from cleanrl_worker.kit.rollout import Rollout, advantages, gae_of_values
from cleanrl_worker.kit.run import Run, Update
from cleanrl_worker.kit.state import decode
from cleanrl_worker.kit.vector_env import Score, make_envs
from cleanrl_worker.schemas.environments import find_environment
from mosaic.analytics.event_files import EventReader
from support.policies import save_policy

SMALL = ("--num-envs=2", "--num-steps=16", "--total-timesteps=64", "--eval-episodes=2", "--seed=2")


@pytest.mark.parametrize("algo", [ppo_atari, ppo_atari_lstm], ids=["plain", "memory"])
def test_a_run_leaves_curves_a_model_and_a_checkpoint_by_names(
    algo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert algo.main(["--env-id=mosaic/Recall-v0", *SMALL]) == 0
    (model,) = tmp_path.glob("runs/*/*.cleanrl_model")
    (chunk,) = EventReader(model.parent).poll(1_000_000)
    assert {f"losses/{name}" for name in algo.LOGGED} <= chunk.series.keys()
    assert len(chunk.series["eval/episodic_return"]) == 2
    assert set(chunk.series["charts/episodic_return"].values) <= {0.0, 1.0}
    weights = torch.load(model, weights_only=True)
    frames = 4 if algo is ppo_atari else 1
    assert weights["network.0.weight"].shape == (32, frames, 8, 8)
    assert weights["network.0.weight"].is_contiguous()
    parts = decode(list_checkpoints(tmp_path / "checkpoints")[-1])["parts"]
    assert parts["rollout"]["obs"].dtype == np.uint8
    assert parts["optimizer"]["first"]["network.0.weight"].shape == (32, frames, 8, 8)
    assert ("memory" in parts["rollout"]) == (algo is ppo_atari_lstm)


class _Run:
    """What a rollout asks of a run: environments, and steps in them."""

    def __init__(self, envs: Any) -> None:
        self.envs, self.is_new = envs, True
        self.args = dataclasses.replace(ppo_atari_lstm.Args(), seed=3)

    def step(self, actions: list[Any], out: Any) -> Any:
        return self.envs.step(actions, out)

    def learning(self) -> None:
        pass


class Cut(gymnasium.Env[Any, int]):
    """Is cut off after three steps, at the second step of every other episode it ends."""

    observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)
    episode = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time, self.episode = 0, self.episode + 1
        return np.full((84, 84, 1), 1, np.uint8), {}

    def step(self, action: int) -> Any:
        self.time += 1
        ends = self.time == 2 and self.episode % 2 == 0
        return np.full((84, 84, 1), 1 + self.time, np.uint8), 1.0, ends, self.time == 3, {}


def test_a_rollout_keeps_memory_with_the_steps() -> None:
    gymnasium.register("Cut-v0", Cut)
    try:
        envs = make_envs("ppo_atari_lstm", "Cut-v0", 2)
    finally:
        del gymnasium.registry["Cut-v0"]
    run: Run[Any] = _Run(envs)  # type: ignore[assignment]
    rollout = Rollout(run, 7, initial_memory=np.full((2, 1), -1.0, np.float32))
    before = []
    for t, _ in enumerate(rollout.collect(Update(0, 7, 0, 14, 0.0))):
        before.append(rollout.memory[:, 0].tolist())
        rollout.memory[:] = 10.0 + t
        rollout.step([0, 1], values=np.zeros(2, np.float32))
    # Three steps and cut off, two steps and an end, then two of three.
    assert rollout.starts[:, 0].tolist() == [1, 0, 0, 1, 0, 1, 0]
    assert [row[0] for row in before] == [-1, 10, 11, -1, 13, -1, 15]
    assert rollout.first_memory[:, 0].tolist() == [-1, -1]
    assert [(t, index, obs[0, 0, 0]) for t, index, obs in rollout.final_obs] == [(2, 0, 4), (2, 1, 4)]
    assert [memory.tolist() for memory in rollout.final_memory] == [[12.0], [12.0]]
    state = {name: value.copy() for name, value in rollout.state().items()}
    assert state["memory"][:, 0].tolist() == [16, 16]
    again = Rollout(run, 7, initial_memory=np.full((2, 1), -1.0, np.float32))
    again.load(state)
    next(again.collect(Update(1, 7, 14, 28, 0.5)))
    assert again.first_memory[:, 0].tolist() == [16, 16] and again.starts[0].tolist() == [0, 0]

    values = np.arange(16, dtype=np.float32).reshape(8, 2)
    final = np.array([100.0, 200.0], np.float32)
    following = values[1:] * (1.0 - rollout.dones)
    following[2] = final
    expected = advantages(rollout.rewards, rollout.dones, values[:-1], following, 0.9, 0.8)
    np.testing.assert_array_equal(gae_of_values(rollout, values, final, 0.9, 0.8), expected)
    envs.close()


def test_minibatches_have_whole_environments_in_their_order() -> None:
    columns = [np.arange(12).reshape(3, 4) for _ in range(7)]
    batch = ppo_atari_lstm.Batch(np.arange(4)[:, None], *columns)
    taken = take_envs(batch, np.array([3, 1]))
    assert taken.memory[:, 0].tolist() == [3, 1]
    assert taken.obs.tolist() == [[3, 1], [7, 5], [11, 9]]


def test_the_loss_with_memory_at_the_first_update_has_a_ratio_of_one() -> None:
    """What was seen while acting is what the loss sees of the same steps, through starts and memory."""
    torch.manual_seed(1)
    agent, args = NatureLSTMAgent((84, 84, 1), 4), ppo_atari_lstm.Args()
    random = np.random.default_rng(1)
    steps, envs = 6, 2
    obs = random.integers(0, 256, (steps, envs, 84, 84, 1), np.uint8)
    starts = np.zeros((steps, envs), np.float32)
    starts[3, 0] = starts[0, 1] = 1.0
    first = random.standard_normal((envs, agent.memory_size)).astype(np.float32)
    memory, logits = first.copy(), []
    for t in range(steps):
        memory[starts[t] == 1.0] = 0.0
        found, _, memory = ppo_atari_lstm.look(agent, obs[t], memory, "cpu")
        logits.append(found)
    chosen = random.integers(0, 4, (steps, envs, 1))
    each = torch.from_numpy(np.stack(logits)).log_softmax(2).gather(2, torch.from_numpy(chosen))[:, :, 0]
    floats = random.standard_normal((3, steps, envs)).astype(np.float32)
    batch = ppo_atari_lstm.Batch(first, starts, obs, chosen, each.numpy(), *floats)
    tensors = ppo_atari_lstm.Batch(*(torch.from_numpy(column) for column in batch))
    logged = dict(
        zip(ppo_atari_lstm.LOGGED, ppo_atari_lstm.ppo_loss(agent, args, tensors)[1].tolist(), strict=True)
    )
    assert abs(logged["old_approx_kl"]) < 1e-5 and logged["clipfrac"] == 0.0
    wrong = tensors._replace(starts=torch.zeros(steps, envs))
    assert abs(float(ppo_atari_lstm.ppo_loss(agent, args, wrong)[1][3])) > 1e-5


class Recalls:
    """A network that remembers the brightness of the lit corner: it solves `mosaic/Recall-v0`."""

    def __call__(self, obs: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, ...]:
        corners = torch.stack([obs[:, y, x, 0] for y in (20, 60) for x in (20, 60)], dim=1).float()
        lit = torch.where((corners == 255.0).any(dim=1, keepdim=True), corners, memory)
        return lit, lit.sum(dim=1), lit


def test_a_policy_with_memory_plays_with_it_and_begins_each_episode_without() -> None:
    policy = RecurrentPolicy(Recalls(), 4, gymnasium.spaces.Discrete(4))
    args = dataclasses.replace(ppo_atari_lstm.Args(), env_id="mosaic/Recall-v0")
    with open_episodes(ppo_atari_lstm.SPEC, args, 3) as envs:
        assert evaluate(policy, envs, 20, 5).mean == 1.0
        # A corner that is remembered from an earlier episode would be answered again.
        obs = np.zeros((2, 84, 84, 1), np.uint8)
        memory = policy.initial_memory(2)
        obs[0, 20, 60], obs[1, 60, 20] = 255, 255
        assert policy.act(obs, memory=memory) == [1, 2]
        obs[:] = 0
        told = policy.judge(obs, memory)
        assert told.values is not None and told.values.tolist() == [255.0, 255.0]
        assert policy.act(obs, memory=memory) == [1, 2]
        assert policy.act(obs, memory=policy.initial_memory(2)) == policy.act(obs) == [0, 0]


class Lives:
    """A network that says how many steps it has seen since its memory was new."""

    longest = 0.0

    def __call__(self, obs: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, ...]:
        after = memory + 1.0
        self.longest = max(self.longest, float(after.max()))
        logits = torch.zeros(len(obs), 4)
        return logits, after[:, 0], after


def test_a_lost_life_ends_memory_and_not_the_evaluated_game() -> None:
    network = Lives()
    policy = RecurrentPolicy(network, 1, gymnasium.spaces.Discrete(4))
    args = dataclasses.replace(ppo_atari_lstm.Args(), env_id="ALE/Breakout-v5")
    with open_episodes(ppo_atari_lstm.SPEC, args, 1) as envs:
        (game,) = evaluate(policy, envs, 1, 5).episodes
    # Five lives without a move: each is a fifth of the game, and none is remembered in the next.
    assert 0 < network.longest < game.length / 3


def save_atari(folder: Path, algo: str, env_id: str, actions: int) -> Path:
    torch.manual_seed(1)
    agent = (
        NatureAgent((84, 84, 4), actions) if algo == "ppo_atari" else NatureLSTMAgent((84, 84, 1), actions)
    )
    return save_policy(folder / "model.cleanrl_model", agent.state_dict(), algo, env_id)


def game_lives(score: Score) -> int:
    lives: int = score.unwrapped.ale.lives()  # type: ignore[attr-defined]
    return lives


@pytest.mark.parametrize("algo", ["ppo_atari", "ppo_atari_lstm"])
def test_a_session_plays_the_game_as_the_policy_was_trained_to_see_it(algo: str, tmp_path: Path) -> None:
    model = open_model(save_atari(tmp_path, algo, "ALE/Qbert-v5", 6))
    session = Session(model, seed=4, deterministic=False, frames=False)
    assert session.init()["action_space"]["meanings"][1] == "fire"
    session.reset(Request("reset", seed=4))
    score, told = session._score, 0.0
    before = game_lives(score)
    while game_lives(score) == before:
        (answer,) = session.step(Request("step"))
        told += answer["reward"]
    # Jumps of Q*bert pay 25 each; a lost life is not the end, and only the agent begins anew.
    assert not answer["terminated"] and answer["next"] is not None
    assert told >= 25.0 and told == answer["return"] and told % 25.0 == 0.0
    assert np.array(answer["observation"]).shape == (84, 84, 4 if algo == "ppo_atari" else 1)
    if algo == "ppo_atari_lstm":
        # It has seen one frame since.
        fresh = session._policy.initial_memory(1)
        session._policy.act(session._row, memory=fresh)
        np.testing.assert_allclose(session._memory, fresh, rtol=1e-5)
    session.close()


def test_an_image_is_counted_as_the_bytes_that_a_learner_keeps() -> None:
    parts = estimated_memory(
        {"num_envs": 8, "num_steps": 128, "total_timesteps": 10**7}, find_environment("ALE/Pong-v5")
    )
    assert parts is not None and parts["rollout"] < 150 and parts["convolutions"] > 100


def test_env_kwargs_of_the_user_override_those_of_the_algorithm() -> None:
    spec, args = ppo_atari.SPEC, ppo_atari.Args()
    made = json.loads(spec.env_kwargs(args))
    assert made == {"frameskip": 1, "repeat_action_probability": 0.0, "obs_type": "grayscale"}
    sticky = dataclasses.replace(args, env_kwargs='{"repeat_action_probability": 0.25}')
    assert json.loads(spec.env_kwargs(sticky)) == {**made, "repeat_action_probability": 0.25}
    assert spec.env_kwargs(dataclasses.replace(args, env_id="mosaic/Catch-v0")) == "{}"
    assert spec.env_kwargs(dataclasses.replace(args, env_kwargs="[1")) == "[1"


def test_a_video_has_the_whole_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ("--env-id=ALE/Breakout-v5", "--num-envs=1", "--num-steps=100", "--total-timesteps=400")
    quick = ("--update-epochs=1", "--capture-video", "--no-save-model", "--checkpoint-every=0", "--seed=2")
    assert ppo_atari.main([*flags, *quick]) == 0
    (chunk,) = EventReader(tmp_path / "runs").poll(1_000_000)
    lengths = chunk.series["charts/episodic_length"].values
    (path,) = tmp_path.glob("videos/episode-0-step-*.mp4")
    with av.open(str(path)) as film:
        frames = sum(1 for _ in film.decode(video=0))
    # A frame for each step of the learner and each reset, of which a game of five lives has five.
    assert frames > 60 and frames > lengths[0] / 8
