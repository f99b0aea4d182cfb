"""What every algorithm has around its loop: seeds, environments, curves, checkpoints and a clean end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from cleanrl_worker.training.checkpoints import Checkpoints
from cleanrl_worker.training.common import CommonArgs
from cleanrl_worker.training.device import pick_device
from cleanrl_worker.training.envs import VectorEnv, make_envs
from cleanrl_worker.training.seeding import seed_everything
from cleanrl_worker.training.state import Held, Stateful
from cleanrl_worker.training.stopping import Stopped, StopSignals
from cleanrl_worker.training.timing import Stopwatch
from cleanrl_worker.training.writer import RunWriter
from mosaic.contract.errors import MosaicError, UserError


@dataclass
class Run:
    """One training run while it is open."""

    envs: VectorEnv
    writer: RunWriter
    checkpoints: Checkpoints
    device: torch.device
    stop: StopSignals
    watch: Stopwatch = field(default_factory=Stopwatch)
    model: Any = None
    """What `save_model` writes at the end: a module, or the algorithm's known form of several."""

    def resume(self, loop: Held, **parts: Stateful) -> None:
        """Let checkpoints hold the loop's values and these parts, and take them up from an earlier run."""
        self.checkpoints.hold(loop=loop, envs=self.envs, **parts)
        self.checkpoints.restore()

    def between_updates(self, step: int, loop: Held, **values: Any) -> None:
        """The loop is between two updates at `step`: a moment to report, to checkpoint and to stop."""
        self.watch.report(self.writer, step)
        loop.values.update(values)
        self.checkpoints.between_updates(step, self.writer, self.stop)

    def add_losses(self, losses: dict[str, float], step: int) -> None:
        """Record the losses of an update; training that has come apart ends here, with a word."""
        for name, value in losses.items():
            if value != value or value in (float("inf"), float("-inf")):
                raise MosaicError(
                    f"The loss {name} is no longer finite at step {step}; try a lower learning rate."
                )
            self.writer.add_scalar(f"losses/{name}", value, step)


@contextlib.contextmanager
def open_run(algo: str, args: CommonArgs, num_envs: int, stop: StopSignals) -> Iterator[Run]:
    """A run of `algo`; its model is saved when the loop ends or is asked to stop."""
    if args.total_timesteps < num_envs:
        raise UserError(
            f"total_timesteps is {args.total_timesteps}, which is less than one step of {num_envs} "
            "environments; raise it or lower num_envs."
        )
    seed_everything(args.seed, args.torch_deterministic)
    checkpoints = Checkpoints(algo, args)
    with (
        make_envs(algo, args.env_id, num_envs, args.env_kwargs) as envs,
        RunWriter(args, checkpoints.earlier) as writer,
    ):
        run = Run(envs, writer, checkpoints, pick_device(args.cuda), stop)
        try:
            yield run
        except Stopped:
            if args.save_model and run.model is not None:
                writer.save_model(run.model)
            raise
        if args.save_model and run.model is not None:
            writer.save_model(run.model)
