"""Games of several players, each as one environment of Gymnasium's: one picture, an action of each player.

`pettingzoo/pong_v3` and its like are PettingZoo's games of Atari; `mosaic/Rally-v0` is a small one, on which
an algorithm proves itself in minutes. Importing this module registers them.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.kit.pixel_tasks import BRIGHT, DIM, SIZE, enlarge

Frame = NDArray[np.uint8]


class Turn(NamedTuple):
    """What one frame of a game gave."""

    picture: Frame
    rewards: Sequence[float]
    """Those of each player."""
    terminated: bool
    truncated: bool


class Match(gymnasium.Env[Frame, Any], ABC):
    """What such games share. All players see the same picture, and an action has a choice for each of them.

    The reward of the environment is the mean of those of its players; `totals` has what each has earned.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    skip = 1
    """On how many frames an action is kept by who learns from pictures."""

    def __init__(self, players: Sequence[str], actions: int, render_mode: str | None = None) -> None:
        self.players = tuple(players)
        self.seat_action_space: Any = spaces.Discrete(actions)
        """The actions of one player."""
        self.action_space: Any = spaces.MultiDiscrete([actions] * len(self.players))
        self.render_mode = render_mode
        self.totals = [0.0] * len(self.players)
        """What each player has earned in this game."""
        self.finished = list(self.totals)
        """What each earned in the last game that ended."""
        self.earned = list(self.totals)
        """What each earned with the last step of a learner, who may keep an action for several frames."""

    @property
    def mission(self) -> str:
        """How the game stands, which the live view shows below its picture."""
        return ", ".join(
            f"{player} {total:g}" for player, total in zip(self.players, self.totals, strict=True)
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frame, Any]:
        super().reset(seed=seed)
        self.totals = [0.0] * len(self.players)
        return self._begin(), {}

    def step(self, action: Any) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        turn = self._advance([int(choice) for choice in action])
        self.totals = [total + float(reward) for total, reward in zip(self.totals, turn.rewards, strict=True)]
        if turn.terminated or turn.truncated:
            self.finished = self.totals
        return turn.picture, fmean(map(float, turn.rewards)), turn.terminated, turn.truncated, {}

    @abstractmethod
    def _begin(self) -> Frame:
        """Begin a game; all that is random in it comes from `np_random`."""

    @abstractmethod
    def _advance(self, choices: list[int]) -> Turn:
        """One frame of the game."""


class AtariMatch(Match):
    """A game of PettingZoo's Atari, frame by frame and grey. It ends for all players at once.

    A player without lives takes no more part, as long as others go on.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012
    skip = 4

    def __init__(self, game: str, render_mode: str | None = None, **options: Any) -> None:
        """`options` are PettingZoo's, such as `num_players` or `game_version` where a game has them."""
        made = importlib.import_module(f"pettingzoo.atari.{game}").raw_env(
            obs_type="grayscale_image",
            render_mode="rgb_array",
            auto_rom_install_path=str(_rom_folder()),
            **options,
        )
        self._game = made.unwrapped
        first = self._game.possible_agents[0]
        actions = int(self._game.action_space(first).n)
        super().__init__(self._game.possible_agents, actions, render_mode)
        self.observation_space = self._game.observation_space(first)

    def _begin(self) -> Frame:
        seen, _ = self._game.reset(seed=int(self.np_random.integers(2**31)))
        return next(iter(seen.values()))

    def _advance(self, choices: list[int]) -> Turn:
        playing = self._game.agents
        actions = {player: choices[seat] for seat, player in enumerate(self.players) if player in playing}
        seen, rewards, terminations, truncations, _ = self._game.step(actions)
        picture = next(iter(seen.values()))
        given = [rewards.get(player, 0.0) for player in self.players]
        return Turn(picture, given, all(terminations.values()), all(truncations.values()))

    def render(self) -> Any:
        """The game's picture in colour; None without a render mode."""
        return None if self.render_mode is None else self._game.render()


def _rom_folder() -> Path:
    """Where ale-py keeps the games that it brings."""
    return Path(str(importlib.import_module("ale_py").__file__)).parent / "roms"


class Rally(Match):
    """Two bats, above and below, keep a ball in play that flies at a slant and rebounds from the walls.

    Actions of each: 0 stay, 1 left, 2 right. A player earns 1 for each ball that comes back from its bat. The
    game ends with the first ball that is missed, or after eight that were not: the most is 4 for each.
    """

    MEANINGS = ("stay", "left", "right")
    BALL, BAT, BAT_HEIGHT = 6, 14, 4
    FLY, REACH = 4, 3
    """How far the ball flies up or down and how far a bat moves with each step."""
    SPEEDS = (1, 2, 3)
    FLIGHTS = 8

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(("upper", "lower"), len(self.MEANINGS), render_mode)
        self.observation_space = spaces.Box(0, 255, (SIZE, SIZE, 1), np.uint8)
        self._x = self._y = self._drift = self._receiver = self._flights = 0
        self._bats = [0, 0]

    def _begin(self) -> Frame:
        self._receiver = int(self.np_random.integers(2))
        self._x = int(self.np_random.integers(SIZE - self.BALL + 1))
        self._y = self._heights[1 - self._receiver]
        self._flights = 0
        self._bats = [(SIZE - self.BAT) // 2] * 2
        self._serve()
        return self._look()

    @property
    def _heights(self) -> tuple[int, int]:
        """Where the ball is when it meets the upper and the lower bat."""
        return self.BAT_HEIGHT, SIZE - self.BAT_HEIGHT - self.BALL

    def _serve(self) -> None:
        speed = self.SPEEDS[self.np_random.integers(len(self.SPEEDS))]
        self._drift = speed if self.np_random.integers(2) else -speed

    def _advance(self, choices: list[int]) -> Turn:
        for seat, choice in enumerate(choices):
            moved = self._bats[seat] + (0, -self.REACH, self.REACH)[choice]
            self._bats[seat] = min(max(moved, 0), SIZE - self.BAT)
        upper, lower = self._heights
        self._y = min(max(self._y + (self.FLY if self._receiver else -self.FLY), upper), lower)
        self._x += self._drift
        most = SIZE - self.BALL
        if not 0 <= self._x <= most:
            self._x = -self._x if self._x < 0 else 2 * most - self._x
            self._drift = -self._drift
        rewards = [0.0, 0.0]
        if self._y != self._heights[self._receiver]:
            return Turn(self._look(), rewards, False, False)
        bat = self._bats[self._receiver]
        if not bat - self.BALL < self._x < bat + self.BAT:
            return Turn(self._look(), rewards, True, False)
        rewards[self._receiver] = 1.0
        self._receiver = 1 - self._receiver
        self._flights += 1
        self._serve()
        return Turn(self._look(), rewards, self._flights == self.FLIGHTS, False)

    def _look(self) -> Frame:
        frame = np.zeros((SIZE, SIZE, 1), np.uint8)
        frame[self._y : self._y + self.BALL, self._x : self._x + self.BALL] = BRIGHT
        for bat, top in zip(self._bats, (0, SIZE - self.BAT_HEIGHT), strict=True):
            frame[top : top + self.BAT_HEIGHT, bat : bat + self.BAT] = DIM
        return frame

    def render(self) -> Any:
        """The picture in colour, large enough to be looked at; None without a render mode."""
        return None if self.render_mode is None else enlarge(self._look())


_ATARI = (
    *("basketball_pong_v3", "boxing_v2", "combat_plane_v2", "combat_tank_v2", "double_dunk_v3"),
    *("entombed_competitive_v3", "entombed_cooperative_v3", "flag_capture_v2", "foozpong_v3"),
    *("ice_hockey_v2", "joust_v3", "mario_bros_v3", "maze_craze_v3", "othello_v3", "pong_v3"),
    *("quadrapong_v4", "space_invaders_v2", "space_war_v2", "surround_v2", "tennis_v3"),
    *("video_checkers_v4", "volleyball_pong_v3", "warlords_v3", "wizard_of_wor_v3"),
)
"""Those of version 1.27, which is the one that is installed."""


def _register() -> None:
    """Let `gymnasium.make` know the games; what they need is imported when one is made."""
    entries: dict[str, dict[str, Any]] = {
        f"pettingzoo/{name}": {"entry_point": f"{__name__}:AtariMatch", "kwargs": {"game": name}}
        for name in _ATARI
    }
    entries["mosaic/Rally-v0"] = {"entry_point": f"{__name__}:Rally"}
    for env_id, entry in entries.items():
        if env_id not in gymnasium.registry:
            # Gymnasium's check calls a picture of one channel odd, and prints that.
            gymnasium.register(env_id, **entry, disable_env_checker=True)


_register()
