"""Games of several players: each player is a row of the learner, and each earns its own."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from cleanrl_worker.algorithms import ppo_pettingzoo_ma_atari
from cleanrl_worker.evaluation.episodes import evaluate
from cleanrl_worker.kit import matches
from cleanrl_worker.kit.open_envs import open_envs, open_episodes
from cleanrl_worker.kit.policy import Policy
from cleanrl_worker.portable.fastlane import wrapper
from cleanrl_worker.portable.fastlane.lane import SEGMENT_VARIABLE
from cleanrl_worker.schemas.environments import find_environment
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.errors import UserError
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.segment import create_segment

SPEC = ppo_pettingzoo_ma_atari.SPEC
RALLY, PONG = "mosaic/Rally-v0", "pettingzoo/pong_v3"
ALGO = SPEC.name


def opened(env_id: str, num_envs: int = 4, **kwargs: Any) -> tuple[Any, NDArray[np.uint8]]:
    """A run's rows after their reset, and what they see."""
    envs = open_envs(SPEC, SPEC.args(env_id=env_id, num_envs=num_envs, env_kwargs=json.dumps(kwargs)))
    obs = np.zeros((num_envs, *envs.observation_space.shape), envs.obs_dtype)
    envs.reset(3, obs)
    return envs, obs


def follow(envs: Any, lower_only: bool = False) -> list[int]:
    """Actions that move bats under the ball in Rally; all bats, or only the lower ones."""
    found = []
    for row in range(envs.num_envs):
        game = envs._games.bare(row // 2)
        off = game._bats[row % 2] + game.BAT / 2 - game._x - game.BALL / 2
        moves = 0 if abs(off) < 2 else 1 if off > 0 else 2
        found.append(0 if lower_only and row % 2 == 0 else moves)
    return found


def test_a_player_sees_the_game_and_which_player_it_is() -> None:
    envs, obs = opened(RALLY)
    with envs:
        assert envs.observation_space.shape == obs.shape[1:] == (84, 84, 6)
        assert envs.action_space.n == 3
        for row in range(4):
            assert (obs[row, :, :, 4 + row % 2] == 255).all()
            assert (obs[row, :, :, 5 - row % 2] == 0).all()
        assert (obs[0, :, :, :4] == obs[1, :, :, :4]).all()
        assert (obs[0, :, :, 3] != obs[2, :, :, 3]).any()
        before = obs.copy()
        envs.step([1, 2, 0, 0], obs)
        assert (obs[:, :, :, :3] == before[:, :, :, 1:4]).all()
        # The upper bat has moved to the left, the lower one to the right.
        assert obs[1, 0, :, 3].argmax() < before[0, 0, :, 3].argmax()
        assert obs[0, 83, :, 3].argmax() > before[0, 83, :, 3].argmax()


def test_each_player_earns_its_own_and_a_game_ends_for_both_at_once() -> None:
    envs, obs = opened(RALLY)
    finished: list[Any] = []
    totals, found = np.zeros(4), []
    with envs:
        for _ in range(450):
            step = envs.step(follow(envs), obs)
            totals += step.rewards
            assert step.terminated[0::2] == step.terminated[1::2]
            assert set(step.final_obs) == {row for row in range(4) if step.terminated[row]}
            for row in sorted(step.final_obs):
                # Its own channel is bright in the last observation too.
                assert (step.final_obs[row][:, :, 4 + row % 2] == 255).all()
                found.append(totals[row])
                totals[row] = 0.0
            finished += step.episodes
    assert len(finished) == 12
    assert [episode.player for episode in finished] == ["upper", "lower"] * (len(finished) // 2)
    assert [episode.total_reward for episode in finished] == found == [4.0] * len(finished)


def test_who_misses_the_ball_earns_less() -> None:
    envs, obs = opened(RALLY)
    earned: dict[str, list[float]] = {"upper": [], "lower": []}
    with envs:
        for _ in range(1000):
            for episode in envs.step(follow(envs, lower_only=True), obs).episodes:
                earned[episode.player].append(episode.total_reward)
    assert np.mean(earned["lower"]) > np.mean(earned["upper"]) + 0.2


def test_pong_is_a_game_of_two_whose_returns_are_opposite_where_nobody_is_late() -> None:
    envs, obs = opened(PONG, num_envs=2)
    random = np.random.default_rng(0)
    totals = np.zeros(2)
    with envs:
        assert obs.shape == (2, 84, 84, 6) and envs.action_space.n == 6
        for _ in range(300):
            step = envs.step(random.integers(6, size=2).tolist(), obs)
            totals += step.rewards
            assert len(step.final_obs) == 0
            assert (obs[0, :, :, :4] == obs[1, :, :, :4]).all()
    assert totals.any() and set(np.abs(totals)) <= {float(n) for n in range(22)}


def test_a_game_is_played_again_up_to_where_it_was() -> None:
    random = np.random.default_rng(1)
    before = random.integers(6, size=(80, 2)).tolist()
    after = random.integers(6, size=(80, 2)).tolist()
    envs, obs = opened(PONG, num_envs=2)
    other, again = opened(PONG, num_envs=2)
    with envs, other:
        for actions in before:
            envs.step(actions, obs)
        other.load(envs.state())
        assert envs.exact and not other.begun
        for actions in after:
            step, repeated = envs.step(actions, obs), other.step(actions, again)
            assert step.rewards == repeated.rewards and (obs == again).all()


def test_seeds_give_games_of_their_own_and_the_same_ones_again() -> None:
    seen = []
    for seed in (1, 1, 2):
        env = gymnasium.make(PONG)
        wrapped = SPEC.wrap(env, SPEC.args())  # type: ignore[misc]
        first, _ = wrapped.reset(seed=seed)
        frames = [wrapped.step([2, 3])[0] for _ in range(40)]
        seen.append(np.stack([first, *frames]))
        env.close()
    assert (seen[0] == seen[1]).all() and (seen[0] != seen[2]).any()


def test_four_players_have_a_channel_each() -> None:
    envs, obs = opened(PONG, num_envs=4, num_players=4)
    with envs:
        assert obs.shape == (4, 84, 84, 8)
        assert [int(obs[row, 0, 0, 4:].argmax()) for row in range(4)] == [0, 1, 2, 3]


class Following(Policy):
    """Plays Rally perfectly from what both players see."""

    def __init__(self) -> None:
        self.games: Any = None

    def seed(self, seed: int) -> None: ...

    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Any = None) -> list[Any]:
        choices = []
        for game in obs:
            picture = game[0, :, :, 3]
            ball = np.argwhere(picture == matches.BRIGHT)[:, 1].mean()
            bats = [np.flatnonzero(picture[row] == matches.DIM).mean() for row in (0, 83)]
            choices.append([0 if abs(bat - ball) < 2 else 1 if bat > ball else 2 for bat in bats])
        return choices

    def judge(self, obs: NDArray[Any], memory: Any = None) -> Any:
        raise NotImplementedError


def test_an_evaluation_tells_what_each_player_earned() -> None:
    with open_episodes(SPEC, SPEC.args(env_id=RALLY), 2) as envs:
        found = evaluate(Following(), envs, 5, seed=1)
    assert found.returns == [4.0] * 5
    assert found.players == {"upper": [4.0] * 5, "lower": [4.0] * 5}


def test_both_players_are_in_the_live_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path))
        patch.setenv(SEGMENT_VARIABLE, str(create_segment("MATCH", "grid")))
        patch.setattr("cleanrl_worker.portable.fastlane.lane._opened", {})
        for module in (gymnasium, gymnasium.envs, wrapper.registration):
            patch.setattr(module, "make", gymnasium.make)
        wrapper.install()
        envs, obs = opened(PONG, num_envs=4)
        grid = LiveGrid("MATCH")
    deadline = time.monotonic() + 60
    with grid, envs:
        while len(grid.shown) < 2 or len(grid.frames()) < 2:
            assert time.monotonic() < deadline, grid.status()
            envs.step([0, 1, 2, 3], obs)
            grid.look()
        frames = list(grid.frames().values())
    # The wrappers and what they watch hold each other, and with them the segment.
    del envs
    gc.collect()
    assert [frame.pixels.shape for frame in frames] == [(210, 160, 3)] * 2
    assert all(frame.mission.startswith("first_0 ") and "second_0 " in frame.mission for frame in frames)


@pytest.mark.parametrize(
    ("algo", "env_id", "extras", "words"),
    [
        ("ppo_atari", "pong_v3", {}, "ppo_atari trains one agent, but pettingzoo/pong_v3 is a game of 2 pl"),
        (ALGO, "ALE/Pong-v5", {}, f"{ALGO} trains all players of a game, but ALE/Pong-v5 has one agent; use"),
        (ALGO, "pong_v3", {"num_envs": 5}, "num_envs is 5, but it counts the players, and petting"),
        (ALGO, RALLY, {"env_backend": "envpool"}, "EnvPool does not have the environment 'mosaic/Rally-v0'"),
        (ALGO, "pong_v3", {"num_envs": 6, "env_kwargs": {"num_players": 4}}, "has 4: give a multiple of 4"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    algo: str, env_id: str, extras: dict[str, Any], words: str, tmp_path: Path
) -> None:
    config = {"run_id": "r", "algo": algo, "env_id": env_id, "total_timesteps": 1000, "extras": extras}
    with pytest.raises(UserError) as caught:
        CATALOG.describe(config, None, tmp_path, ())
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_game_is_known_by_pettingzoos_own_name_too(tmp_path: Path) -> None:
    config = {"run_id": "r", "algo": ALGO, "env_id": "pong_v3", "total_timesteps": 1000}
    told = CATALOG.describe(config, None, tmp_path, ())
    assert told["env_id"] == told["environment"]["env_id"] == PONG and told["pictures"]["come"]
    entry = find_environment("pong_v3")
    assert entry is not None and (entry.env_id, entry.extra, entry.players) == (PONG, "pettingzoo", 2)
    assert set(matches._ATARI) == {
        fact.env_id.partition("/")[2]
        for fact in CATALOG.environment_facts()
        if fact.family == "pettingzoo" and "players" in fact.spaces
    }
