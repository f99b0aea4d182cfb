"""The supervisor: starts the training process, tells the daemon how it fares, and ends with it."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from cleanrl_worker.analytics import make_tensorboard_folder
from cleanrl_worker.arguments import script_arguments
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.environment import PYTHON_VARIABLE, training_environment, user_folder
from cleanrl_worker.provenance import write_provenance
from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.reporter import Reporter
from cleanrl_worker.scripts import Script, resolve_script
from cleanrl_worker.training_process import TrainingProcess, training_command
from mosaic.contract.errors import MosaicError
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import grace_seconds

if TYPE_CHECKING:
    from cleanrl_worker.link import TrainerLink

TICK_SECONDS = 1.0


@dataclass(frozen=True)
class RuntimeSummary:
    """What would run, for a dry run."""

    config: CleanRLWorkerConfig
    script: Script
    arguments: list[str]
    command: list[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "run_id": self.config.run_id,
            "algo": self.config.algo,
            "env_id": self.config.env_id,
            "mode": self.config.mode,
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
        self._cancelled_at: float | None = None
        self._pause_wanted = False
        self._paused = False

    def summary(self) -> RuntimeSummary:
        arguments = script_arguments(self._config, self._script.ours)
        command = training_command(os.environ.get(PYTHON_VARIABLE), self._script, arguments)
        return RuntimeSummary(self._config, self._script, arguments, command)

    def run(self) -> int:
        """Train until the script ends or a signal asks for the end."""
        self._listen_to_signals()
        self._paths.logs.mkdir(parents=True, exist_ok=True)
        make_tensorboard_folder(self._config, self._paths)
        reporter = Reporter(self._config, self._paths)
        command = self.summary().command
        try:
            environment = training_environment(self._config, self._paths.run_dir)
            training = TrainingProcess(command, self._paths, environment)
        except OSError as error:
            cause = f"the interpreter {command[0]} cannot be started: {error.strerror}"
            return reporter.ended("failed", 1, cause)
        link: TrainerLink | None = None
        try:
            link = self._shake_hands()
            reporter.line = link
            reporter.started(self._start_payload(training.pid))
        except (MosaicError, OSError) as error:
            training.end_tree()
            return reporter.ended("failed", 1, str(error))
        training.go()
        self._write_provenance(command)
        self._watch(training, reporter)
        code = training.end_tree()
        if link is not None:
            link.close()
        if self._cancelled_at is not None:
            return reporter.ended("cancelled", code)
        if code != 0:
            return reporter.ended("failed", code, _cause(code, reporter.stderr_lines()))
        return reporter.ended("completed", 0)

    def _listen_to_signals(self) -> None:
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _shake_hands(self) -> TrainerLink | None:
        if self._grpc_target is None:
            return None
        # Imported while the training process is busy with imports of its own.
        from cleanrl_worker.link import TrainerLink

        link = TrainerLink(self._config, self._var, self._grpc_target)
        link.register()
        link.listen(self._on_pause)
        return link

    def _write_provenance(self, command: list[str]) -> None:
        try:
            write_provenance(self._config, self._paths, command, self._folder)
        except OSError as error:
            print(f"{self._paths.provenance} cannot be written: {error.strerror}", file=sys.stderr)

    def _watch(self, training: TrainingProcess, reporter: Reporter) -> None:
        """Heartbeats until the training process has ended, and its end when that was asked for."""
        poller = select.poll()
        poller.register(training.pidfd, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        asked = False
        while training.exit_code is None:
            for descriptor, _ in poller.poll(TICK_SECONDS * 1000):
                if descriptor == self._wake_read:
                    os.read(self._wake_read, 64)
            training.reap()
            if self._cancelled_at is not None:
                if not asked:
                    training.ask_to_end()
                    asked = True
                if time.monotonic() - self._cancelled_at > grace_seconds():
                    return
            elif self._pause_wanted != self._paused:
                self._paused = self._pause_wanted
                training.set_paused(self._paused)
                reporter.beat(self._paused, at_once=True)
            reporter.beat(self._paused)

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

    def _on_pause(self, wanted: bool) -> None:
        """Called from the control thread: note the wish and wake the main thread."""
        self._pause_wanted = wanted
        os.write(self._wake_write, b"p")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()


def _cause(code: int, stderr: list[str]) -> str:
    how = f"killed by {signal.Signals(code - 128).name}" if code > 128 else f"exit code {code}"
    return f"{stderr[-1]} ({how})" if stderr else f"the script ended with {how}"
