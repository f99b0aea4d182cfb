"""Full checkpoints: everything that a run needs to go on as if it had never stopped."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from cleanrl_worker.training.common import CommonArgs
from cleanrl_worker.training.randomness import Randomness
from cleanrl_worker.training.state import Chunked, State, Stateful, decode, encode
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.writer import Earlier, RunWriter
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError, UserError

FORMAT = 1
KEPT = 2
"""How many of the newest checkpoints stay."""
_NAME = re.compile(r"step-(\d+)\.npz")


class Checkpoints:
    """The checkpoints of one run, in `checkpoints/` of its folder. A newer one never harms an older one."""

    def __init__(self, algo: str, args: CommonArgs) -> None:
        self._folder = Path("checkpoints")
        self._algo = algo
        self._args = args
        self._parts: dict[str, Stateful] = {"randomness": Randomness()}
        self._saved_at_step = 0
        self._resumed = read_checkpoint(Path(args.resume_from)) if args.resume_from else None
        if self._resumed is not None and self._resumed["algo"] != algo:
            raise UserError(
                f"The checkpoint {args.resume_from} is of {self._resumed['algo']}, not of {algo}."
            )

    @property
    def earlier(self) -> Earlier | None:
        """Where the run was that is resumed; None for a new run."""
        if self._resumed is None:
            return None
        return Earlier(self._resumed["folder"], int(self._resumed["step"]))

    def hold(self, **parts: Stateful) -> None:
        """From now on checkpoints hold these parts of the run, by name."""
        self._parts |= parts

    def restore(self) -> None:
        """Bring every held part to where it was, if this run goes on from a checkpoint."""
        if self._resumed is None:
            return
        for name, part in self._parts.items():
            # The random states come last: making and replaying other parts may have drawn numbers.
            if name != "randomness":
                state = self._resumed["parts"][name]
                if isinstance(part, Chunked):
                    part.fetch(Path(self._args.resume_from or "").parent, state)
                part.load(state)
        self._parts["randomness"].load(self._resumed["parts"]["randomness"])
        self._saved_at_step = int(self._resumed["step"])
        self._resumed = None

    def between_updates(self, step: int, writer: RunWriter, stop: StopSignals) -> None:
        """Write a checkpoint when one is due or the run is asked to stop; then raise Stopped in that case."""
        every = self._args.checkpoint_every
        if every and (stop.requested or step - self._saved_at_step >= every):
            self.save(step, writer)
        stop.check()

    def save(self, step: int, writer: RunWriter) -> Path:
        """Write a checkpoint, whole or not at all, then drop what is no longer kept."""
        # A resumed run goes on after this step: the curves up to it must not be lost with the process.
        writer.flush()
        try:
            self._store_chunks()
            return self._write(step, writer)
        except OSError as error:
            raise StorageError(
                f"The checkpoint at step {step} cannot be written: {error.strerror}; free some space."
            ) from error

    def _store_chunks(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in self._parts.values():
            if isinstance(part, Chunked):
                part.store(self._folder)

    def _write(self, step: int, writer: RunWriter) -> Path:
        content: State = {
            "format": FORMAT,
            "algo": self._algo,
            "step": step,
            "folder": writer.folder.name,
            "args": dataclasses.asdict(self._args),
            "parts": {name: part.state() for name, part in self._parts.items()},
        }
        path = self._folder / f"step-{step:012d}.npz"
        write_atomic(path, encode(content))
        self._saved_at_step = step
        for old in list_checkpoints(self._folder)[:-KEPT]:
            old.unlink(missing_ok=True)
        return path


def list_checkpoints(folder: Path) -> list[Path]:
    """The full checkpoints in a folder, oldest first."""
    return sorted(path for path in folder.glob("step-*.npz") if _NAME.fullmatch(path.name))


def read_checkpoint(path: Path) -> State:
    """The content of a checkpoint of a format that this release knows."""
    content = decode(path)
    if content.get("format") != FORMAT:
        raise StorageError(
            f"The checkpoint {path} has format {content.get('format')}, this release knows {FORMAT}."
        )
    return content
