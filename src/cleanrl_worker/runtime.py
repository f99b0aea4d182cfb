"""The supervisor: starts the training process, tells the daemon how it fares, and ends with it."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.analytics import make_tensorboard_folder
from cleanrl_worker.arguments import script_arguments, training_command
from cleanrl_worker.checkpoint_files import Origin, find_origin, read_origin
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.environment import training_environment
from cleanrl_worker.introduction import introduce
from cleanrl_worker.live import LiveFrames, LiveSettings
from cleanrl_worker.provenance import write_provenance
from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.reporter import Reporter, complain
from cleanrl_worker.resuming import RESUME, check_resume, explain, with_origin
from cleanrl_worker.scripts import Script, resolve_script
from cleanrl_worker.taking_over import take_over
from mosaic.contract.errors import MosaicError, NotFoundError
from mosaic.contract.paths import VarPaths
from mosaic.worker.causes import cause_of, last_lines
from mosaic.worker.environment import PYTHON_VARIABLE, user_folder
from mosaic.worker.training_process import TrainingProcess
from mosaic.worker.watch import Watch

if TYPE_CHECKING:
    from mosaic.worker.link import TrainerLink

_ATTEMPTS = 5


@dataclass(frozen=True)
class RuntimeSummary:
    """What would run, for a dry run."""

    config: CleanRLWorkerConfig
    script: Script
    arguments: list[str]
    command: list[str]
    origin: Origin | None

    def resumed_from(self) -> dict[str, Any] | None:
        """What the run goes on from; None when it begins."""
        if self.origin is None:
            return None
        said = explain(self.origin, self.config)
        return {"checkpoint": str(self.origin.path), "step": self.origin.step, "explanation": said}

    def as_json(self) -> dict[str, Any]:
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
        }


class CleanRLWorkerRuntime:
    """One run. `run()` gives the exit code of the process."""

    def __init__(
        self,
        config: CleanRLWorkerConfig,
        paths: VarPaths,
        *,
        grpc_target: str | None = None,
        algo_registry: Mapping[str, str] = DEFAULT_ALGO_REGISTRY,
    ) -> None:
        self._config = config
        self._var = paths
        self._paths = paths.run(config.run_id)
        self._grpc_target = grpc_target
        self._folder = user_folder()
        self._script = resolve_script(config, self._folder, algo_registry)

    def summary(self) -> RuntimeSummary:
        """What would run now; a UserError when the checkpoint to go on from is not one for this run."""
        return self._summarise(self._origin())

    def _origin(self) -> Origin | None:
        """What this start goes on from: after a fault where it was last safe, else what the config names."""
        own = self._paths.full_checkpoints() if self._script.ours else []
        if own:
            return read_origin(own[-1])
        if self._config.mode != RESUME:
            return None
        origin = find_origin(Path(self._config.extras["checkpoint_path"]))
        check_resume(self._config, origin)
        return origin

    def _prepare(self) -> RuntimeSummary:
        """The same, with the checkpoint in this run's own folder too, where no other run can remove it."""
        for _ in range(_ATTEMPTS):
            origin = self._origin()
            if origin is None or origin.step is None:
                return self._summarise(origin)
            try:
                return self._summarise(origin, take_over(origin, self._paths.checkpoints))
            except NotFoundError:
                # The run that it is of still trains, and has newer ones by now.
                continue
        return self.summary()

    def _summarise(self, origin: Origin | None, taken: Path | None = None) -> RuntimeSummary:
        config = self._config
        if origin is not None and config.mode == RESUME:
            config = with_origin(config, origin)
        arguments = script_arguments(config, self._script.ours)
        if origin is not None:
            arguments.append(f"--resume-from={taken or origin.path}")
        command = training_command(os.environ.get(PYTHON_VARIABLE), self._script, arguments)
        return RuntimeSummary(config, self._script, arguments, command, origin)

    def run(self) -> int:
        """Train until the script ends or a signal asks for the end."""
        watch = Watch()
        summary = self._prepare()
        self._paths.logs.mkdir(parents=True, exist_ok=True)
        make_tensorboard_folder(self._config, self._paths)
        reporter = Reporter(self._config, self._paths)
        live = LiveFrames(self._config.run_id, LiveSettings.from_extras(self._config.extras))
        if live.trouble is not None:
            complain(live.trouble)
        try:
            return self._supervise(summary, watch, reporter, live)
        finally:
            live.close()

    def _supervise(self, summary: RuntimeSummary, watch: Watch, reporter: Reporter, live: LiveFrames) -> int:
        command = summary.command
        bridge = self._paths.run_dir / "bridge" if os.environ.get(PYTHON_VARIABLE) else None
        try:
            environment = live.add_to(training_environment(self._config, self._paths.run_dir), bridge)
            training = TrainingProcess(command[:2], command[2:], self._paths, environment)
        except OSError as error:
            cause = f"the interpreter {command[0]} cannot be started: {error.strerror}"
            return reporter.ended("failed", 1, cause)
        link: TrainerLink | None = None
        try:
            link = self._shake_hands(watch)
            reporter.line = link
            reporter.started({**self._start_payload(training.pid), "resumed_from": summary.resumed_from()})
        except (MosaicError, OSError) as error:
            training.end_tree()
            return reporter.ended("failed", 1, str(error))
        training.go()
        self._write_provenance(command)
        watch.until_end(training, reporter.beat)
        code = training.end_tree()
        if link is not None:
            link.close()
        if watch.cancelled:
            return reporter.ended("cancelled", code)
        if code != 0:
            return reporter.ended("failed", code, cause_of(code, last_lines(self._paths.stderr)))
        return reporter.ended("completed", 0)

    def _shake_hands(self, watch: Watch) -> TrainerLink | None:
        if self._grpc_target is None:
            return None
        # Imported while the training process is busy with imports of its own. Imports make no garbage.
        gc.disable()
        from mosaic.worker.link import TrainerLink

        gc.freeze()
        gc.enable()
        link = TrainerLink(introduce(self._config), self._var, self._grpc_target)
        link.register()
        link.listen(watch.wish_pause)
        return link

    def _write_provenance(self, command: list[str]) -> None:
        try:
            write_provenance(self._config, self._paths, command, self._folder)
        except OSError as error:
            complain(f"{self._paths.provenance} cannot be written: {error.strerror}")

    def _start_payload(self, pid: int) -> dict[str, Any]:
        config = self._config
        return {
            "algo": config.algo,
            "env_id": config.env_id,
            "seed": config.effective_seed,
            "total_timesteps": config.total_timesteps,
            "mode": config.mode,
            "module": self._script.target,
            "training_pid": pid,
        }
