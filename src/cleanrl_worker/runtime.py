"""The supervisor: starts the training process, tells the daemon how it fares, and ends with it."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from cleanrl_worker.analytics import make_tensorboard_folder, write_manifest
from cleanrl_worker.arguments import script_arguments
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.environment import PYTHON_VARIABLE, training_environment, user_folder
from cleanrl_worker.provenance import write_provenance
from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.scripts import Script, resolve_script
from cleanrl_worker.telemetry import LifecycleEmitter
from cleanrl_worker.training_process import TrainingProcess, training_command
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.headline import Headline, HeadlineTracker
from mosaic.contract.errors import MosaicError
from mosaic.contract.events import LifecycleEvent
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import grace_seconds

HEARTBEAT_SECONDS = 30.0
TICK_SECONDS = 1.0
_STDERR_LINES = 20
_STDERR_BYTES = 16_384


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
        self._started_at = time.time()
        self._tracker = HeadlineTracker(config.total_timesteps)
        self._reader = EventReader(self._paths.run_dir)
        self._link: Any = None

    def summary(self) -> RuntimeSummary:
        arguments = script_arguments(self._config, self._script.ours)
        command = training_command(os.environ.get(PYTHON_VARIABLE), self._script, arguments)
        return RuntimeSummary(self._config, self._script, arguments, command)

    def run(self) -> int:
        """Train until the script ends or a signal asks for the end."""
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._paths.logs.mkdir(parents=True, exist_ok=True)
        make_tensorboard_folder(self._config, self._paths)
        self._emitter = LifecycleEmitter(self._config.run_id, self._paths.events)
        command = self.summary().command
        try:
            training = TrainingProcess(
                command, self._paths, training_environment(self._config, self._paths.run_dir)
            )
        except OSError as error:
            cause = f"the interpreter {command[0]} cannot be started: {error.strerror}"
            return self._finish("failed", 1, cause)
        try:
            self._shake_hands()
        except MosaicError as error:
            training.end_tree()
            return self._finish("failed", 1, str(error))
        self._tell(self._emitter.run_started(self._start_payload(training.pid)))
        training.go()
        write_provenance(self._config, self._paths, command, self._folder)
        self._watch(training)
        code = training.end_tree()
        self._tracker.update(self._reader.poll())
        if self._cancelled_at is not None:
            return self._finish("cancelled", code, None)
        return self._finish("failed" if code else "completed", code, self._cause(code) if code else None)

    def _shake_hands(self) -> None:
        if self._grpc_target is not None:
            # Imported while the training process is busy with imports of its own.
            from cleanrl_worker.link import TrainerLink

            self._link = TrainerLink(self._config, self._var, self._grpc_target)
            self._link.register()

    def _watch(self, training: TrainingProcess) -> None:
        """Heartbeats until the training process has ended, and its end when that was asked for."""
        told, told_at = Headline(), 0.0
        poller = select.poll()
        poller.register(training.pidfd, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        asked = False
        while training.exit_code is None:
            for descriptor, _ in poller.poll(TICK_SECONDS * 1000):
                if descriptor == self._wake_read:
                    os.read(self._wake_read, 64)
            training.reap()
            now = time.monotonic()
            if self._cancelled_at is not None and not asked:
                training.ask_to_end()
                asked = True
            if self._cancelled_at is not None and now - self._cancelled_at > grace_seconds():
                return
            self._tracker.update(self._reader.poll())
            headline = self._tracker.headline()
            due = TICK_SECONDS * 0.9 if headline != told else HEARTBEAT_SECONDS
            if now - told_at >= due:
                told, told_at = headline, now
                self._tell(self._emitter.heartbeat(headline.as_json()))

    def _tell(self, event: LifecycleEvent) -> None:
        if self._link is not None:
            self._link.heartbeat(event.seq)

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

    def _finish(self, status: str, code: int, cause: str | None) -> int:
        """Write the manifest and the last event; gives the exit code."""
        headline = self._tracker.headline().as_json()
        ended_at = time.time()
        result = {
            "status": status,
            "exit_code": code,
            "cause": cause,
            "started_at": self._started_at,
            "ended_at": ended_at,
            "duration_seconds": round(ended_at - self._started_at, 3),
            "headline": headline,
        }
        manifest = write_manifest(self._config, self._paths, result)
        payload = {"exit_code": code, "headline": headline}
        if status == "completed":
            self._emitter.run_completed({**payload, "manifest": manifest})
        elif status == "cancelled":
            self._emitter.run_cancelled(payload)
        else:
            self._emitter.run_failed({**payload, "cause": cause, "stderr": self._stderr_lines()})
        if self._link is not None:
            self._link.close()
        return code

    def _cause(self, code: int) -> str:
        how = f"killed by {signal.Signals(code - 128).name}" if code > 128 else f"exit code {code}"
        lines = self._stderr_lines()
        return f"{lines[-1]} ({how})" if lines else f"the script ended with {how}"

    def _stderr_lines(self) -> list[str]:
        try:
            with self._paths.stderr.open("rb") as file:
                file.seek(max(0, self._paths.stderr.stat().st_size - _STDERR_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()][-_STDERR_LINES:]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
