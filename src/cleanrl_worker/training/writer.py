"""The results folder of a run: curves while it trains, weights when it ends."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from torch import nn

from cleanrl_worker.training.common import CommonArgs
from cleanrl_worker.training.envs import Episode
from cleanrl_worker.training.tracking import WandbRun
from mosaic.analytics.event_files import EventWriter
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError

FLUSH_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Earlier:
    """Where a run was when its checkpoint was taken."""

    folder: str
    step: int


class RunWriter:
    """Curves and weights in `runs/<env>__<exp_name>__<seed>__<time>/` of the current folder."""

    def __init__(self, args: CommonArgs, earlier: Earlier | None = None) -> None:
        """`earlier` is where a resumed run was: curves after its step are taken back and go on from there."""
        self._wandb = WandbRun(args) if args.track else None
        self._exp_name = folder_name(args.exp_name)
        with _storage_errors(Path("runs")):
            if earlier is not None and (Path("runs") / earlier.folder).is_dir():
                self.folder = (Path("runs") / earlier.folder).absolute()
                self._events = EventWriter(self.folder, purge_step=earlier.step + 1)
            else:
                self.folder = make_run_folder(args)
                self._events = EventWriter(self.folder)
                self._events.add_text("hyperparameters", hyperparameter_table(args))
            self._events.flush()
        self._flushed_at = monotonic()

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Record one number of a curve."""
        with _storage_errors(self.folder):
            self._events.add_scalar(tag, value, step)
        if self._wandb:
            self._wandb.log(tag, value, step)

    def add_episodes(self, episodes: Iterable[Episode], step: int) -> None:
        """Record return and length of every finished episode."""
        for episode in episodes:
            self.add_scalar("charts/episodic_return", episode.total_reward, step)
            self.add_scalar("charts/episodic_length", episode.length, step)

    def flush_when_due(self) -> None:
        """Show readers what was recorded, once a second; called at each step, as steps may be slow."""
        if monotonic() - self._flushed_at >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write out what was recorded."""
        self._flushed_at = monotonic()
        with _storage_errors(self.folder):
            self._events.flush()

    def save_model(self, model: Any) -> Path:
        """Write the weights as `<exp_name>.cleanrl_model`, whole or not at all."""
        data = io.BytesIO()
        torch.save(plain_weights(model), data)
        path = self.folder / f"{self._exp_name}.cleanrl_model"
        with _storage_errors(path):
            write_atomic(path, data.getvalue())
        return path

    def close(self) -> None:
        """Write out what is left."""
        with _storage_errors(self.folder):
            self._events.close()
        if self._wandb:
            self._wandb.close()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def plain_weights(model: Any) -> Any:
    """A module's weights as plain tensors; tuples and dicts of modules keep their shape."""
    if isinstance(model, nn.Module):
        return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
    if isinstance(model, tuple):
        return tuple(plain_weights(part) for part in model)
    if isinstance(model, dict):
        return {name: plain_weights(part) for name, part in model.items()}
    return model


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
