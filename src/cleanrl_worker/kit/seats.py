"""Games of several players as a learner's rows: each player is one, and all are the same policy's."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.envs import Envs, Episode, Step
from cleanrl_worker.kit.making import EnvMaker
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import State
from cleanrl_worker.kit.vector_env import VectorEnv, make_envs
from cleanrl_worker.portable.fastlane.lane import unwatched
from cleanrl_worker.schemas.environments import check_seats


class SeatRows(Envs):
    """The players of all games, those of a game behind each other.

    Rewards, returns and ends are each player's own; a game ends for all of its players at once.
    """

    exact = True

    def __init__(self, games: VectorEnv, clip: bool) -> None:
        """`clip`: let the learner see rewards between -1 and 1."""
        self._games = games
        self._clip = clip
        self._seats = len(games.bare(0).players)
        whole = games.observation_space
        self.num_envs = games.num_envs * self._seats
        self.observation_space = spaces.Box(0, 255, whole.shape[1:], np.uint8)
        self.obs_dtype = games.obs_dtype
        self.action_space = games.bare(0).seat_action_space
        self.begun = {}

    def _of_games(self, rows: NDArray[Any]) -> NDArray[Any]:
        """An array with a row for each player as one with a row for each game, in the same memory."""
        return rows.reshape(self._games.num_envs, self._seats, *rows.shape[1:])

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        self._games.reset(seed, self._of_games(out))

    def step(self, actions: list[Any], out: NDArray[Any]) -> Step:
        seats, games = self._seats, self._games
        choices = self._of_games(np.asarray(actions, np.int64))
        step = games.step(list(choices), self._of_games(out))
        matches = [games.bare(index) for index in range(games.num_envs)]
        rewards = [reward for match in matches for reward in match.earned]
        if self._clip:
            rewards = [min(max(reward, -1.0), 1.0) for reward in rewards]
        final_obs = {
            index * seats + seat: obs[seat] for index, obs in step.final_obs.items() for seat in range(seats)
        }
        episodes = [
            Episode(total, whole.length, player=player)
            # A game that ended is one whose last observation is there, and they come in the same order.
            for index, whole in zip(step.final_obs, step.episodes, strict=True)
            for player, total in zip(matches[index].players, matches[index].finished, strict=True)
        ]
        return Step(
            rewards,
            [ended for ended in step.terminated for _ in range(seats)],
            [ended for ended in step.truncated for _ in range(seats)],
            final_obs,
            episodes,
        )

    def render(self, index: int) -> Any:
        return self._games.render(index // self._seats)

    def state(self) -> State:
        return self._games.state()

    def load(self, state: State) -> None:
        """Play each game again up to where it was."""
        self._games.load(state)
        self.begun = {
            index * self._seats + seat: obs[seat]
            for index, obs in self._games.begun.items()
            for seat in range(self._seats)
        }

    def close(self) -> None:
        self._games.close()


def open_seats(spec: AlgorithmSpec, args: CommonArgs) -> SeatRows:
    """The games of a run; UserError says what does not fit."""
    maker = EnvMaker(spec.name, spec.env_kwargs(args), False)
    with unwatched(), contextlib.closing(maker.make(args.env_id)) as env:
        entry = maker.check(args.env_id, env)
    num_envs: int = vars(args)["num_envs"]
    check_seats(num_envs, bool(args.curriculum), entry)
    games = make_envs(
        spec.name,
        args.env_id,
        num_envs // entry.players,
        spec.env_kwargs(args),
        args.capture_video,
        wrap=spec.wrapper(args),
    )
    return SeatRows(games, bool(getattr(args, "clip_rewards", False)))
