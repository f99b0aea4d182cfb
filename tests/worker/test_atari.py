"""Games of Atari and other pictures as a learner sees them, frame by frame, and as the game counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from cleanrl_worker.kit.vector_env import Score, VectorEnv
from cleanrl_worker.wrappers.atari import AtariGame, Pictures, atari_defaults, wrap_atari
from mosaic.contract.errors import UserError

gymnasium.register_envs(ale_py)


@dataclass
class Args:
    episodic_life: bool = True
    clip_rewards: bool = True


class Lives(gymnasium.Env[Any, int]):
    """A game with lives, as ALE's look from outside: its frames count what was done, a life takes 50 frames.

    Action 1 is FIRE, action 3 loses a life at once; each frame pays 2.
    """

    observation_space = spaces.Box(0, 255, (84, 84), np.uint8)
    action_space = spaces.Discrete(4)

    def __init__(self, lives: int = 2, life: int = 50) -> None:
        self._all, self._life = lives, life
        self._frameskip = 1
        self.ale = self
        self.actions: list[int] = []

    def lives(self) -> int:
        return self._left

    def get_action_meanings(self) -> list[str]:
        return ["NOOP", "FIRE", "RIGHT", "LEFT"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left, self._at = self._all, 0
        self.actions = []
        return self._frame(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.append(action)
        self._at += 1
        if action == 3 or self._at >= self._life:
            self._left, self._at = self._left - 1, 0
        return self._frame(), 2.0, self._left == 0, False, {}

    def _frame(self) -> Any:
        """Things are shown in turns: on even frames on the left, on odd ones on the right."""
        frame = np.zeros((84, 84), np.uint8)
        half = slice(0, 42) if len(self.actions) % 2 == 0 else slice(42, 84)
        frame[:, half] = len(self.actions)
        return frame


def test_a_game_begins_with_no_ops_and_the_fire_button() -> None:
    counts = set()
    for seed in range(40):
        game = Lives(life=10_000)
        AtariGame(game).reset(seed=seed)
        noops = game.actions.index(1)
        assert game.actions == [0] * noops + [1] * 4 + [2] * 4
        counts.add(noops)
    assert min(counts) >= 1 and max(counts) <= 30 and len(counts) > 10
    again = Lives(life=10_000)
    AtariGame(again).reset(seed=39)
    assert len(again.actions) == noops + 8


def test_an_action_lasts_for_four_frames_of_which_the_last_two_are_seen() -> None:
    game = Lives(life=10_000)
    env = AtariGame(game, clip_rewards=False)
    env.reset(seed=1)
    before = len(game.actions)
    frame, reward, terminated, truncated, _ = env.step(2)
    assert game.actions[before:] == [2] * 4
    assert reward == 8.0 and not terminated and not truncated
    assert set(np.unique(frame).tolist()) == {before + 3, before + 4}
    assert AtariGame(Lives(life=10_000)).reset(seed=1)
    clipped = AtariGame(Lives(life=10_000))
    clipped.reset(seed=1)
    assert clipped.step(2)[1] == 1.0


def test_a_game_that_skips_frames_itself_does_not_skip_more() -> None:
    game = Lives(life=10_000)
    game._frameskip = 4
    env = AtariGame(game)
    env.reset(seed=1)
    before = len(game.actions)
    env.step(2)
    assert game.actions[before:] == [2]


def test_a_lost_life_ends_the_episode_and_not_the_game() -> None:
    game = Lives(lives=3, life=10_000)
    score = Score(game)
    env = AtariGame(score)
    env.reset(seed=1)
    taken = len(game.actions)
    *_, terminated, _, _ = env.step(3)
    # All four frames lost a life: the game is over at the third.
    assert terminated and score.over and len(game.actions) == taken + 3
    env.reset(seed=2)
    game._life = game._at + 2
    *_, terminated, _, _ = env.step(2)
    assert terminated and not score.over and game.lives() == 2
    game._life = 10_000
    taken, total = len(game.actions), score.total
    env.reset()
    assert game.actions[taken:] == [0] * 4 + [1] * 4 + [2] * 4
    assert game.lives() == 2 and score.total == total + 24
    # Without it a life is only a number.
    whole = AtariGame(Lives(lives=3, life=10_000), episodic_life=False)
    whole.reset(seed=1)
    whole.unwrapped._at = 9_999  # type: ignore[attr-defined]
    assert whole.step(2)[2] is False


def test_a_game_that_ends_while_it_is_reset_is_counted() -> None:
    game = Lives(lives=2, life=10_000)
    envs = VectorEnv([game], wrap=lambda env: wrap_atari(env, Args(), stack=1))
    out = np.zeros((1, 84, 84, 1), np.uint8)
    envs.reset(1, out)
    # A life is lost now, and the last one within the no-ops that follow.
    game._at, game._life = 9_998, 10_000
    game._all = 2
    frames = len(game.actions)
    original = game.step

    def step(action: int) -> Any:
        if action == 0:
            game._at = 9_999
        return original(action)

    game.step = step  # type: ignore[method-assign]
    found = envs.step([2], out)
    assert found.terminated == [True] and found.episodes == []
    found = envs.step([2], out)
    assert found.terminated == [True]
    (episode,) = found.episodes
    assert episode.length == frames + 4 + 1 and episode.total_reward == 2.0 * episode.length


@pytest.mark.parametrize("env_id", ["ALE/Breakout-v5", "PongNoFrameskip-v4"])
def test_pictures_of_a_real_game_are_those_of_the_emulator(env_id: str) -> None:
    kwargs = dict(atari_defaults(env_id))
    seen = wrap_atari(gymnasium.make(env_id, **kwargs), Args(), stack=4)
    raw: Any = gymnasium.make(env_id, **kwargs)
    found, _ = seen.reset(seed=5)
    raw.reset(seed=5)
    random = raw.unwrapped.np_random
    for _ in range(int(random.integers(1, 31))):
        raw.step(0)

    def act(action: int) -> tuple[Any, float]:
        frames = [raw.step(action) for _ in range(4)]
        picture = np.maximum(frames[2][0], frames[3][0])
        return cv2.resize(picture, (84, 84), interpolation=cv2.INTER_AREA), sum(one[1] for one in frames)

    act(1)
    first, _ = act(2)
    stack = [first] * 4
    np.testing.assert_array_equal(found, np.stack(stack, axis=2))
    actions = np.random.default_rng(1).integers(0, seen.action_space.n, 25)  # type: ignore[attr-defined]
    for action in actions.tolist():
        # A lost life is only told: until a reset the game goes on.
        found, reward, _, _, _ = seen.step(action)
        picture, paid = act(action)
        stack = [*stack[1:], picture]
        np.testing.assert_array_equal(found, np.stack(stack, axis=2))
        assert reward == np.sign(paid)
    seen.close()
    raw.close()


def test_both_names_of_a_game_are_the_same_game() -> None:
    envs = [
        wrap_atari(gymnasium.make(name, **atari_defaults(name)), Args())
        for name in ("ALE/Pong-v5", "PongNoFrameskip-v4")
    ]
    one, other = (env.reset(seed=3)[0] for env in envs)
    assert np.array_equal(one, other)
    for action in range(40):
        one, other = (env.step(action % 6)[0] for env in envs)
        assert np.array_equal(one, other)
    for env in envs:
        env.close()


def test_returns_of_real_games_are_true_under_clipping_and_lost_lives() -> None:
    # Rows of bricks in Q*bert pay 25 and more, and it has four lives.
    env_id = "ALE/Qbert-v5"
    game = gymnasium.make(env_id, **atari_defaults(env_id))
    paid: list[float] = []
    plain_step = game.unwrapped.step

    def step(action: Any) -> Any:
        result = plain_step(action)
        paid.append(float(result[1]))
        return result

    game.unwrapped.step = step  # type: ignore[method-assign]
    envs = VectorEnv([game], wrap=lambda env: wrap_atari(env, Args()))
    out = np.zeros((1, 84, 84, 4), np.uint8)
    envs.reset(1, out)
    ends, seen, random = 0, set[float](), np.random.default_rng(0)
    for _ in range(3_000):
        found = envs.step([int(random.integers(6))], out)
        seen |= set(found.rewards)
        ends += found.terminated[0]
        if found.episodes:
            break
    (episode,) = found.episodes
    assert seen == {0.0, 1.0}
    assert ends == 4
    assert episode.total_reward > 20 and episode.total_reward <= sum(paid)
    envs.close()


class Picture(gymnasium.Env[Any, int]):
    """An environment that shows random pictures."""

    action_space = spaces.Discrete(2)

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.uint8) -> None:
        self.observation_space = spaces.Box(0, 255, shape, dtype)
        self.observation_space.seed(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.shown = [self.observation_space.sample()]
        return self.shown[-1], {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.shown.append(self.observation_space.sample())
        return self.shown[-1], 7.0, False, False, {}


@pytest.mark.parametrize("stack", [1, 3, 4])
@pytest.mark.parametrize(
    "shape", [(84, 84, 1), (84, 84), (84, 84, 3), (96, 120, 3), (3, 96, 120), (64, 64, 1)]
)
def test_other_pictures_are_only_fitted_and_stacked(shape: tuple[int, ...], stack: int) -> None:
    game = Picture(shape)
    env = wrap_atari(game, Args(), stack)
    assert isinstance(env, Pictures) and env.env is game
    found, _ = env.reset(seed=1)
    assert env.observation_space.contains(found) and found.shape == (84, 84, stack)
    assert all(np.array_equal(found[:, :, at], found[:, :, 0]) for at in range(stack))
    kept = found
    frames = [_grey(game.shown[0])] * stack
    np.testing.assert_array_equal(kept, np.stack(frames, axis=2))
    for _ in range(5):
        found, reward, terminated, truncated, _ = env.step(0)
        frames = [*frames[1:], _grey(game.shown[-1])]
        np.testing.assert_array_equal(found, np.stack(frames[-stack:], axis=2))
        assert reward == 7.0 and not terminated and not truncated
    # What was given is not changed by what comes later.
    np.testing.assert_array_equal(kept[:, :, 0], _grey(game.shown[0]))


def _grey(picture: Any) -> Any:
    if picture.ndim == 3 and picture.shape[0] == 3:
        picture = np.ascontiguousarray(picture.transpose(1, 2, 0))
    if picture.ndim == 3 and picture.shape[2] == 3:
        picture = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    picture = picture.reshape(picture.shape[:2])
    return (
        picture if picture.shape == (84, 84) else cv2.resize(picture, (84, 84), interpolation=cv2.INTER_AREA)
    )


@pytest.mark.parametrize(
    ("shape", "dtype"), [((84, 84, 4), np.uint8), ((84, 84, 3), np.float32), ((84,), np.uint8)]
)
def test_what_is_not_a_picture_is_refused(shape: tuple[int, ...], dtype: Any) -> None:
    with pytest.raises(
        UserError, match=r"Picture returns arrays of shape .* wrap it so that it returns such"
    ):
        wrap_atari(Picture(shape, dtype), Args())


class Emulator:
    """A game as ALE gives it, frame by frame, in colour and with its lives; and what a learner should see of
    it, written with none of the wrappers."""

    def __init__(self, env_id: str, seed: int) -> None:
        self.env: Any = gymnasium.make(env_id, frameskip=1, repeat_action_probability=0.0)
        self.game: Any = self.env.unwrapped
        self.fires = "FIRE" in self.game.get_action_meanings()[:2]
        self.env.reset(seed=seed)
        self.paid, self.frames = 0.0, 0
        self.begin()

    def begin(self) -> None:
        """A new game: no-ops, then the fire button."""
        for _ in range(int(self.game.np_random.integers(1, 31))):
            self.frame(0)
        self.over = False
        self.begin_episode(self.fit(self.game.ale.getScreenGrayscale()))

    def go_on(self) -> None:
        """The learner's next episode in the same game: a no-op, then the fire button."""
        self.begin_episode(self.act(0)[0])

    def begin_episode(self, picture: Any) -> None:
        for action in (1, 2) if self.fires else ():
            picture = self.act(action)[0]
        self.stack = [picture] * 4
        self.lives = self.game.ale.lives()

    def frame(self, action: int) -> tuple[float, bool]:
        _, reward, terminated, truncated, _ = self.env.step(action)
        self.paid, self.frames = self.paid + reward, self.frames + 1
        return float(reward), terminated or truncated

    def fit(self, shown: Any) -> Any:
        return cv2.resize(shown, (84, 84), interpolation=cv2.INTER_AREA)

    def act(self, action: int) -> tuple[Any, float]:
        """Four frames; the brighter of the last two, and what they paid."""
        total, shown = 0.0, []
        for _ in range(4):
            reward, self.over = self.frame(action)
            total += reward
            shown.append(self.game.ale.getScreenGrayscale())
            if self.over:
                break
        return self.fit(np.max(shown[-2:], axis=0)), total

    def step(self, action: int) -> tuple[Any, float, bool]:
        """What the learner sees, its reward, and whether its episode ended."""
        picture, total = self.act(action)
        self.stack = [*self.stack[1:], picture]
        lives = self.game.ale.lives()
        lost, self.lives = 0 < lives < self.lives, lives
        return np.stack(self.stack, axis=2), float(np.sign(total)), self.over or lost


@pytest.mark.parametrize(
    ("env_id", "lives"),
    [("BreakoutNoFrameskip-v4", 5), ("SeaquestNoFrameskip-v4", 4), ("FreewayNoFrameskip-v4", 0)],
)
def test_a_whole_game_is_what_the_emulator_shows_frame_by_frame(env_id: str, lives: int) -> None:
    emulator = Emulator(env_id, seed=2)
    game = gymnasium.make(env_id, **atari_defaults(env_id))
    envs = VectorEnv([game], wrap=lambda env: wrap_atari(env, Args()))
    out, random = np.zeros((1, 84, 84, 4), np.uint8), np.random.default_rng(2)
    envs.reset(2, out)
    np.testing.assert_array_equal(out[0], np.stack(emulator.stack, axis=2))
    assert emulator.fires == (env_id != "FreewayNoFrameskip-v4")
    ends, rewards = 0, set[float]()
    for _ in range(400 if lives == 0 else 5_000):
        action = int(random.integers(envs.action_space.n))
        found = envs.step([action], out)
        seen, reward, ended = emulator.step(action)
        assert (found.rewards, found.terminated) == ([reward], [ended])
        rewards.add(reward)
        np.testing.assert_array_equal(found.final_obs[0] if ended else out[0], seen)
        if not ended:
            continue
        ends += 1
        if emulator.over:
            break
        # The game goes on: with a no-op, and the fire button where there is one.
        assert found.episodes == []
        emulator.go_on()
        np.testing.assert_array_equal(out[0], np.stack(emulator.stack, axis=2))
    assert ends == lives
    if lives:
        (episode,) = found.episodes
        assert (episode.total_reward, episode.length) == (emulator.paid, emulator.frames)
        assert 1.0 in rewards and rewards <= {-1.0, 0.0, 1.0}
    envs.close()
    emulator.env.close()
