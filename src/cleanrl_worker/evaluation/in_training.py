"""Evaluation of a run's own policy, which leaves its training as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cleanrl_worker.evaluation.episodes import EPISODE_CAP, Evaluation
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.backend import Backend
from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.stopping import Stopped, StopSignals
from cleanrl_worker.kit.video import warn
from cleanrl_worker.portable.fastlane.lane import unwatched
from mosaic.contract.errors import MosaicError

if TYPE_CHECKING:
    from cleanrl_worker.evaluation.models import SavedModel

MOST_ENVS = 10
FIRST_SEED = 1_000_000
"""Added to the run's seed: episodes that training has not seen, the same in each evaluation."""


class Evaluator:
    """Plays policies in environments of its own, which are made when first needed."""

    def __init__(self, args: CommonArgs, backend: Backend, stop: StopSignals) -> None:
        self._args = args
        self._backend = backend
        self._stop = stop
        self._envs: EpisodeEnvs | None = None
        self._warned: set[str] = set()

    def play(self, name: str, load: Callable[[], SavedModel]) -> Evaluation | None:
        """How a model's episodes went; None, with a word, when that cannot be seen. May raise Stopped."""
        try:
            with self._backend.untouched():
                return self._play(load())
        except Stopped:
            raise
        except MosaicError as error:
            self._warn(f"{name} could not be evaluated: {error}")
        except Exception as error:
            # The environment is the user's, and what it does here must not cost a trained model.
            self._warn(f"{name} could not be evaluated: {type(error).__name__}: {error}")
        return None

    def _play(self, model: SavedModel) -> Evaluation:
        args = self._args
        if self._envs is None:
            with unwatched():
                self._envs = model.make_envs(min(args.eval_episodes, MOST_ENVS))
        policy = model.load_policy(self._envs)
        seed = args.seed + FIRST_SEED
        found = model.entry.evaluate(
            policy, self._envs, args.eval_episodes, seed, check_stop=self._stop.check
        )
        for note in policy.notes:
            self._warn(note)
        if found.cut_off:
            self._warn(f"Episodes of an evaluation were cut off after {EPISODE_CAP} steps, as they went on.")
        return found

    def _warn(self, text: str) -> None:
        line = " ".join(text.split())
        if line not in self._warned:
            self._warned.add(line)
            warn(line)

    def close(self) -> None:
        """Release the environments."""
        if self._envs is not None:
            self._envs.close()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
