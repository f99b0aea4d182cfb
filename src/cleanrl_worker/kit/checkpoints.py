"""Full checkpoints: everything that a run needs to go on as if it had never stopped, part by part."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cleanrl_worker.config.checkpoint_files import (
    BEST,
    FORMAT,
    Origin,
    find_origin,
    list_checkpoints,
    read_origin,
    take_over,
)
from cleanrl_worker.config.registry import AlgorithmFile
from cleanrl_worker.config.resuming import check_budget, explain_values, refuse_changes
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.spec import Misfit
from cleanrl_worker.kit.state import Chunked, State, Stateful, decode, encode
from cleanrl_worker.kit.writer import Earlier, RunWriter, write_patiently
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError, StorageError, UserError

KEPT = 2
"""How many of the newest checkpoints stay."""


class Checkpoints:
    """The checkpoints of one run, in `checkpoints/` of its folder. A newer one never harms an older one."""

    def __init__(self, algo: str, args: CommonArgs, file: AlgorithmFile | None = None) -> None:
        self._folder = Path("checkpoints")
        self._algo = algo
        self._file = file
        self._args = args
        self._kept: list[Path] = []
        self._best_score = -math.inf
        self._best_stage: int | None = None
        self.origin = self._find_origin(Path(args.resume_from)) if args.resume_from else None
        self._saved: State | None = None
        self.saved_at = 0
        """The step of the newest checkpoint."""
        if self.origin is not None and self.origin.step is not None:
            self._saved = decode(self.origin.path)["parts"]
            self.saved_at = self.origin.step

    def _find_origin(self, place: Path) -> Origin:
        """What the run goes on from; a checkpoint comes to this run's own folder first."""
        origin = find_origin(place)
        if origin.name not in (None, self._algo):
            raise UserError(f"{origin.path} is of {origin.name}, not of {self._algo}.")
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
        if self.origin is None or self.origin.step is None:
            return None
        return Earlier(self.origin.folder, self.origin.step)

    def restore(self, name: str, part: Stateful) -> None:
        """Bring a part to where it was, if this run goes on from a checkpoint."""
        if self._saved is None:
            return
        with self._misfits():
            state = self._saved[name]
            if isinstance(part, Chunked):
                part.fetch(self._folder, state)
            part.load(state)

    @contextmanager
    def _misfits(self) -> Iterator[None]:
        assert self.origin is not None
        try:
            yield
        except MosaicError:
            raise
        except (KeyError, TypeError, ValueError, RuntimeError, Misfit) as error:
            what = f"it has no part {error}" if isinstance(error, KeyError) else repr(error)
            raise StorageError(f"The checkpoint {self.origin.path} does not fit this run: {what}.") from error

    def begin(self) -> None:
        """Every part is where it was: drop what this run wrote after the step that it goes on from, as its
        curves are taken back."""
        if self._saved is None:
            return
        self._saved = {}
        for path in (*list_checkpoints(self._folder), self._folder / BEST):
            found = _read_if_good(path)
            if found is None or (found.step or 0) > self.saved_at:
                path.unlink(missing_ok=True)
            elif found.score is not None and path.name == BEST:
                self._best_score, self._best_stage = found.score, found.stage
        self._kept = list_checkpoints(self._folder)
        self._drop_unneeded()

    def save(self, step: int, writer: RunWriter, parts: Mapping[str, Stateful]) -> None:
        """Write a checkpoint, whole or not at all, then drop what is no longer kept."""
        path = self._folder / f"step-{step:012d}.npz"
        self._write(path, step, writer, parts)
        self.saved_at = step
        self._kept = [*(kept for kept in self._kept if kept != path), path][-KEPT:]
        self._drop_unneeded()

    def save_best(
        self,
        step: int,
        writer: RunWriter,
        parts: Mapping[str, Stateful],
        score: float,
        stage: int | None = None,
    ) -> bool:
        """Write `best.npz` if no earlier score of this run was as high; says whether it was written.

        Scores of different stages of a curriculum do not compare: the later stage is the better one.
        """
        if stage == self._best_stage and not score > self._best_score:
            return False
        self._write(self._folder / BEST, step, writer, parts, score, stage)
        self._best_score, self._best_stage = score, stage
        self._drop_unneeded()
        return True

    def _write(
        self,
        path: Path,
        step: int,
        writer: RunWriter,
        parts: Mapping[str, Stateful],
        score: float | None = None,
        stage: int | None = None,
    ) -> None:
        # A resumed run goes on after this step: the curves up to it must not be lost with the process.
        writer.flush()
        content = {
            "format": FORMAT,
            "algo": self._algo,
            **({"file": dataclasses.asdict(self._file)} if self._file else {}),
            "step": step,
            "score": score,
            "stage": stage,
            "folder": writer.folder.name,
            "args": dataclasses.asdict(self._args),
        }
        data = encode({**content, "parts": {name: part.state() for name, part in parts.items()}})

        def store() -> None:
            self._folder.mkdir(parents=True, exist_ok=True)
            for part in parts.values():
                if isinstance(part, Chunked):
                    part.store(self._folder)
            write_atomic(path, data)

        try:
            write_patiently(store)
        except OSError as error:
            raise StorageError(
                f"The checkpoint at step {step} cannot be written: {error.strerror}; free some space."
            ) from error

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
