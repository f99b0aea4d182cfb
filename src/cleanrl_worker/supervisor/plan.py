"""What a run will execute: its script, the command line, and what it goes on from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.modes import RESUME
from cleanrl_worker.config.scripts import Script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from cleanrl_worker.supervisor.arguments import algorithm_values, script_arguments, training_command

if TYPE_CHECKING:
    from cleanrl_worker.config.checkpoint_files import Origin


@dataclass(frozen=True)
class RuntimeSummary:
    """What would run."""

    config: CleanRLWorkerConfig
    script: Script
    arguments: list[str]
    command: list[str]
    origin: Origin | None
    values: dict[str, Any] | None = None
    """The arguments of an algorithm, which gets them as a file."""

    def resumed_from(self) -> dict[str, Any] | None:
        """What the run goes on from; None when it begins."""
        if self.origin is None:
            return None
        # Only here, because most runs begin at their beginning.
        from cleanrl_worker.config.resuming import explain

        said = explain(self.origin, self.config)
        return {"checkpoint": str(self.origin.path), "step": self.origin.step, "explanation": said}

    def as_json(self) -> dict[str, Any]:
        extras = self.config.extras
        return {
            "run_id": self.config.run_id,
            "algo": self.config.algo,
            "env_id": self.config.env_id,
            "mode": self.config.mode,
            "resumed_from": self.resumed_from(),
            "module": self.script.target,
            "args": self.arguments,
            "command": self.command,
            "config": self.config.as_json(),
            "extras": {
                name: extras.get(name) for name in ("tensorboard_dir", "eval_batch_size", "eval_repeat")
            },
        }


def make_plan(
    config: CleanRLWorkerConfig,
    script: Script,
    origin: Origin | None,
    python: str | None,
    taken: Path | None = None,
) -> RuntimeSummary:
    """The plan of a run; `taken` is where its origin lies in the run's own folder."""
    if origin is not None and config.mode == RESUME:
        from cleanrl_worker.config.resuming import with_origin

        config = with_origin(config, origin)
    arguments = script_arguments(config, script)
    values = algorithm_values(config) if script.ours else None
    if origin is not None:
        place = str(taken or origin.path)
        arguments.append(f"--resume-from={place}")
        values = {**(values or {}), "resume_from": place}
    command = training_command(python, script, arguments)
    return RuntimeSummary(config, script, arguments, command, origin, values)
