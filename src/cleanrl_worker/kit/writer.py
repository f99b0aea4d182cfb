"""The results folder of a run: curves while it trains, weights when it ends.

Writing waits for space when the disk is full, so that a run goes on where it stood.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cleanrl_worker.config.checkpoint_files import MODEL_SUFFIX, PolicyCard
from cleanrl_worker.curriculum.stages import StageNote
from cleanrl_worker.kit import stopping
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.envs import Episode
from cleanrl_worker.kit.state import State
from mosaic.analytics.event_files import EventWriter
from mosaic.contract.atomic import insist, is_full, write_atomic
from mosaic.contract.errors import StorageError, UserError
from mosaic.contract.phases import set_waiting

if TYPE_CHECKING:
    from mosaic.tracking.beside import Trackers

RUN_DIR_VARIABLE = "CLEANRL_RUN_DIR"

NEWEST = 10
"""Of so many episodes the return is known one by one."""

Result = TypeVar("Result")


def write_patiently(write: Callable[[], Result], again: Callable[[], Result] | None = None) -> Result:
    """Do `write`; while the disk is full, wait and do it again, until the process is asked to stop.

    The supervisor sees that from outside, and tells.
    """
    told = False

    def may_wait(error: OSError) -> bool:
        nonlocal told
        if not is_full(error):
            return False
        if not told:
            _tell(True)
            told = True
        return not stopping.asked

    try:
        return insist(write, may_wait, again)
    finally:
        if told:
            _tell(False)


def _tell(waits: bool) -> None:
    if RUN_DIR_VARIABLE in os.environ:
        set_waiting(Path(os.environ[RUN_DIR_VARIABLE]), waits)


class PatientEvents(EventWriter):
    """An event file that waits for space."""

    def flush(self) -> None:
        """Hands everything recorded so far to the operating system."""
        write_patiently(super().flush)


def _track(args: CommonArgs, folder: Path) -> Trackers:
    """A process of its own that passes the run on to Weights & Biases; under a supervisor that is its job."""
    if find_spec("wandb") is None:
        raise UserError("--track needs wandb, which is not installed; run `./mosaic extras install wandb`.")
    from mosaic.contract.paths import resolve_var
    from mosaic.tracking.beside import Trackers
    from mosaic.tracking.request import Request

    named = {"project_name": args.wandb_project_name, "entity": args.wandb_entity}
    own = ("track", *(f"wandb_{name}" for name in named))
    request = Request(
        tracker="wandb",
        # A run that is resumed has the same folder, and goes on there too.
        run_id=os.environ.get("WANDB_RUN_ID") or hashlib.sha256(str(folder).encode()).hexdigest()[:16],
        run_dir=str(folder),
        var=str(resolve_var()),
        run_name=f"{args.env_id}__{args.exp_name}__{args.seed}",
        parameters={name: value for name, value in dataclasses.asdict(args).items() if name not in own},
        settings={name: value for name, value in named.items() if value},
        training_pid=os.getpid(),
    )
    environment = {**os.environ, "WANDB_DIR": os.environ.get("WANDB_DIR") or os.getcwd()}
    return Trackers([request], folder, environment, tied=False)


@dataclasses.dataclass(frozen=True)
class Earlier:
    """Where a run was when its checkpoint was taken."""

    folder: str
    step: int


class RecentReturns:
    """What training has earned since somebody last asked."""

    def __init__(self) -> None:
        self._total = 0.0
        self._count = 0
        self.newest: deque[float] = deque(maxlen=NEWEST)
        """Those of the newest episodes, the last one at the end."""

    def add(self, total_reward: float) -> None:
        """An episode has ended."""
        self._total += total_reward
        self._count += 1
        self.newest.append(total_reward)

    def take_mean(self) -> float | None:
        """The mean return, counted anew from here; None when no episode has ended."""
        mean = self._total / self._count if self._count else None
        self._total, self._count = 0.0, 0
        return mean

    def state(self) -> State:
        return {"total": self._total, "count": self._count, "newest": list(self.newest)}

    def load(self, state: State) -> None:
        self._total, self._count = float(state["total"]), int(state["count"])
        # Checkpoints from before they were kept have none.
        self.newest.extend(map(float, state.get("newest", ())))


class RunWriter:
    """Curves and weights in `runs/<env>__<exp_name>__<seed>__<time>/` of the current folder."""

    def __init__(self, args: CommonArgs, earlier: Earlier | None = None) -> None:
        """`earlier` is where a resumed run was: curves after its step are taken back and go on from there."""
        self._trackers: Trackers | None = None
        self._exp_name = folder_name(args.exp_name)
        self.recent_returns = RecentReturns()
        self._stage: int | None = None
        with _storage_errors(Path("runs")):
            self._goes_on = earlier is not None and (Path("runs") / earlier.folder).is_dir()
            if earlier is not None and self._goes_on:
                self.folder = (Path("runs") / earlier.folder).absolute()
                purge_step: int | None = earlier.step + 1
            else:
                self.folder, purge_step = write_patiently(lambda: make_run_folder(args)), None
            self._events = write_patiently(lambda: PatientEvents(self.folder, purge_step))
            if purge_step is None:
                self._events.add_text("hyperparameters", hyperparameter_table(args))
            self._events.flush()
        if args.track:
            self._trackers = _track(args, self.folder)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Record one number of a curve."""
        with _storage_errors(self.folder):
            self._events.add_scalar(tag, value, step)

    def add_episodes(self, episodes: Iterable[Episode], step: int, whose: str = "") -> None:
        """Record return and length of every finished episode, and how far a curriculum has come.

        `whose` they are where the policy that is trained did not play them: they have curves of their own.
        """
        if whose:
            for episode in episodes:
                self.add_scalar(f"charts/{whose}/episodic_return", episode.total_reward, step)
            return
        note = None
        for episode in episodes:
            note = episode.stage
            if note is not None:
                self.add_scalar(f"curriculum/stage_{note.played}_return", episode.total_reward, step)
                if note.now != self._stage:
                    self._go_on(note, step)
            if note is None or note.in_turn or note.played == note.now:
                self.recent_returns.add(episode.total_reward)
            self.add_scalar("charts/episodic_return", episode.total_reward, step)
            if episode.player:
                self.add_scalar(f"charts/episodic_return/{episode.player}", episode.total_reward, step)
            self.add_scalar("charts/episodic_length", episode.length, step)
        if note is not None:
            self.add_scalar("curriculum/steps", note.steps, step)

    def begin_stage(self, stage: int | None, step: int) -> None:
        """A curriculum, if there is one, begins or is taken up in a stage."""
        self._stage = stage
        if stage is not None and not self._goes_on:
            self.add_scalar("curriculum/stage", stage, step)

    def _go_on(self, note: StageNote, step: int) -> None:
        self._stage = note.now
        self.add_scalar("curriculum/stage", note.now, step)
        if not note.in_turn:
            # What was earned in an easier stage says nothing of this one.
            self.recent_returns.take_mean()

    def flush(self) -> None:
        """Write out what was recorded."""
        with _storage_errors(self.folder):
            self._events.flush()

    def model_path(self, best: bool = False) -> Path:
        """Where the weights lie: those of the end, or the best ones."""
        return self.folder / f"{self._exp_name}{'.best' if best else ''}{MODEL_SUFFIX}"

    def save_model(self, data: bytes, card: PolicyCard, best: bool = False) -> None:
        """Write a model file and its card, each whole or not at all; where weights are, their card is."""
        path = self.model_path(best)
        with _storage_errors(path):
            write_patiently(lambda: card.write(path))
            write_patiently(lambda: write_atomic(path, data))

    def close(self) -> None:
        """Write out what is left."""
        with _storage_errors(self.folder):
            self._events.close()
        if self._trackers is not None:
            deadline = time.monotonic() + self._trackers.end_seconds
            self._trackers.end("completed", lambda: deadline - time.monotonic(), lambda: None)
            for problem in self._trackers.look().values():
                print(problem, file=sys.stderr)


def make_run_folder(args: CommonArgs) -> Path:
    """A new folder for this run's results."""
    started = int(time.time())
    while True:
        name = f"{folder_name(args.env_id)}__{folder_name(args.exp_name)}__{args.seed}__{started}"
        folder = Path("runs", name).absolute()
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            # Two runs that start within a second still get a folder each.
            started += 1
        else:
            return folder


def folder_name(text: str) -> str:
    """The text with what a file name cannot hold, such as the slash of `ALE/Pong-v5`, replaced."""
    return re.sub(r"[^\w.+=-]", "_", text).lstrip(".") or "_"


def hyperparameter_table(args: CommonArgs) -> str:
    """All arguments as a Markdown table."""
    rows = [f"|{name}|{value}|" for name, value in dataclasses.asdict(args).items()]
    return "\n".join(["|param|value|", "|-|-|", *rows])


@contextlib.contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}; free space or check the folder."
        ) from error
