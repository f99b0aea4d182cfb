"""Full checkpoints: everything that a run needs to go on as if it had never stopped."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

from cleanrl_worker.checkpoint_files import (
    BEST,
    FORMAT,
    Origin,
    find_origin,
    list_checkpoints,
    read_origin,
)
from cleanrl_worker.resuming import check_budget, explain_values, refuse_changes
from cleanrl_worker.taking_over import take_over
from cleanrl_worker.training.common import CommonArgs
from cleanrl_worker.training.model_start import begin_with_model
from cleanrl_worker.training.randomness import Randomness
from cleanrl_worker.training.state import Chunked, State, Stateful, decode, encode
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.writer import Earlier, RunWriter
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError, StorageError, UserError

KEPT = 2
"""How many of the newest checkpoints stay."""


class Checkpoints:
    """The checkpoints of one run, in `checkpoints/` of its folder. A newer one never harms an older one."""

    def __init__(self, algo: str, args: CommonArgs) -> None:
        self._folder = Path("checkpoints")
        self._algo = algo
        self._args = args
        self._parts: dict[str, Stateful] = {"randomness": Randomness()}
        self._saved_at_step = 0
        self._kept: list[Path] = []
        self._best_score = -math.inf
        self._best_stage: int | None = None
        self._origin = self._find_origin(Path(args.resume_from)) if args.resume_from else None

    def _find_origin(self, place: Path) -> Origin:
        """What the run goes on from; a checkpoint comes to this run's own folder first."""
        origin = find_origin(place)
        if origin.algo not in (None, self._algo):
            raise UserError(f"{origin.path} is of {origin.algo}, not of {self._algo}.")
        args = dataclasses.asdict(self._args)
        if origin.step is not None:
            refuse_changes(origin, args)
            check_budget(origin, self._args.total_timesteps)
            origin = read_origin(take_over(origin, self._folder))
        print(explain_values(origin, self._algo, args, self._args.total_timesteps), file=sys.stderr)
        return origin

    @property
    def earlier(self) -> Earlier | None:
        """Where the run was that is resumed; None for a new run."""
        if self._origin is None or self._origin.step is None:
            return None
        return Earlier(self._origin.folder, self._origin.step)

    def hold(self, **parts: Stateful) -> None:
        """From now on checkpoints hold these parts of the run, by name."""
        self._parts |= parts

    def restore(self, model: Any) -> None:
        """Bring every held part to where it was, if this run goes on from a checkpoint or a model."""
        if self._origin is None:
            return
        if self._origin.step is None:
            begin_with_model(self._origin, model, self._parts)
            return
        try:
            self._load(decode(self._origin.path)["parts"])
        except MosaicError:
            raise
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise StorageError(
                f"The checkpoint {self._origin.path} does not fit this run: {error!r}."
            ) from error
        self._saved_at_step = self._origin.step
        self._take_back_later(self._origin.step)

    def _load(self, states: State) -> None:
        for name, part in self._parts.items():
            # The random states come last: making and replaying other parts may have drawn numbers.
            if name != "randomness":
                if isinstance(part, Chunked):
                    part.fetch(self._folder, states[name])
                part.load(states[name])
        self._parts["randomness"].load(states["randomness"])

    def _take_back_later(self, step: int) -> None:
        """Drop what this run wrote after the step that it goes on from, as its curves are taken back."""
        for path in (*list_checkpoints(self._folder), self._folder / BEST):
            found = _read_if_good(path)
            if found is None or (found.step or 0) > step:
                path.unlink(missing_ok=True)
            elif found.score is not None and path.name == BEST:
                self._best_score, self._best_stage = found.score, found.stage
        self._kept = list_checkpoints(self._folder)
        self._drop_unneeded()

    def between_updates(self, step: int, writer: RunWriter, stop: StopSignals) -> None:
        """Write a checkpoint when one is due or the run is asked to stop; then raise Stopped in that case."""
        every = self._args.checkpoint_every
        if every and (stop.requested or step - self._saved_at_step >= every or self._is_last(step)):
            self.save(step, writer)
        stop.check()

    def _is_last(self, step: int) -> bool:
        """Whether the budget is used: such a checkpoint is what a run is extended from."""
        return step + int(getattr(self._args, "num_envs", 1)) > self._args.total_timesteps

    def save(self, step: int, writer: RunWriter) -> Path:
        """Write a checkpoint, whole or not at all, then drop what is no longer kept."""
        path = self._folder / f"step-{step:012d}.npz"
        self._write(path, step, writer)
        self._saved_at_step = step
        self._kept = [*(kept for kept in self._kept if kept != path), path][-KEPT:]
        self._drop_unneeded()
        return path

    def save_best(self, step: int, writer: RunWriter, score: float, stage: int | None = None) -> bool:
        """Write `best.npz` if no earlier score of this run was as high; says whether it was written.

        Scores of different stages of a curriculum do not compare: the later stage is the better one.
        """
        if stage == self._best_stage and not score > self._best_score:
            return False
        self._write(self._folder / BEST, step, writer, score, stage)
        self._best_score, self._best_stage = score, stage
        self._drop_unneeded()
        return True

    def _write(
        self,
        path: Path,
        step: int,
        writer: RunWriter,
        score: float | None = None,
        stage: int | None = None,
    ) -> None:
        # A resumed run goes on after this step: the curves up to it must not be lost with the process.
        writer.flush()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for part in self._parts.values():
                if isinstance(part, Chunked):
                    part.store(self._folder)
            write_atomic(path, encode(self._content(step, writer, score, stage)))
        except OSError as error:
            raise StorageError(
                f"The checkpoint at step {step} cannot be written: {error.strerror}; free some space."
            ) from error

    def _content(self, step: int, writer: RunWriter, score: float | None, stage: int | None) -> State:
        return {
            "format": FORMAT,
            "algo": self._algo,
            "step": step,
            "score": score,
            "stage": stage,
            "folder": writer.folder.name,
            "args": dataclasses.asdict(self._args),
            "parts": {name: part.state() for name, part in self._parts.items()},
        }

    def _drop_unneeded(self) -> None:
        """Remove older checkpoints, and the chunks that none of those which stay needs."""
        for old in list_checkpoints(self._folder):
            if old not in self._kept:
                old.unlink(missing_ok=True)
        staying = map(_read_if_good, (*self._kept, self._folder / BEST))
        needed = {name for origin in staying if origin is not None for name in origin.chunks}
        for chunk in self._folder.glob("replay/chunk-*.npz"):
            if chunk.relative_to(self._folder).as_posix() not in needed:
                chunk.unlink(missing_ok=True)


def _read_if_good(path: Path) -> Origin | None:
    """What a checkpoint tells of itself; None when it is not there or cannot be read."""
    try:
        return read_origin(path)
    except MosaicError:
        return None
