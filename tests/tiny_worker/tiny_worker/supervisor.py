"""One run of the tiny worker: everything that a supervisor must do, and nothing more."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.contract.atomic import write_json
from mosaic.contract.errors import MosaicError
from mosaic.contract.events import EventKind
from mosaic.contract.paths import VarPaths
from mosaic.worker.causes import cause_of, last_lines
from mosaic.worker.environment import surroundings
from mosaic.worker.telemetry import Introduction, LifecycleEmitter
from mosaic.worker.training_process import TrainingProcess, Watch
from tiny_worker.config import TinyConfig
from tiny_worker.pipe import PublishingPipe

if TYPE_CHECKING:
    from mosaic.worker.link import TrainerLink

_TRAINING = Path(__file__).with_name("training.py")
_HEARTBEAT_SECONDS = 30.0


class Supervisor:
    """`run()` gives the exit code of the process."""

    def __init__(self, config: TinyConfig, var: VarPaths, target: str | None) -> None:
        self._config = config
        self._var = var
        self._target = target
        self._paths = var.run(config.run_id)
        self._paths.logs.mkdir(parents=True, exist_ok=True)
        self._emitter = LifecycleEmitter(config.run_id, self._paths.events)
        self._link: TrainerLink | None = None
        self._beat_at = 0.0

    def run(self) -> int:
        watch = Watch()
        pipe = PublishingPipe() if self._config.publish and self._target else None
        training = self._start(pipe)
        try:
            self._shake_hands(watch)
        except MosaicError as error:
            training.end_tree()
            return self._ended("failed", 1, str(error))
        if pipe is not None and self._link is not None:
            pipe.attach(self._link)
        self._emitter.say(EventKind.RUN_STARTED, {"training_pid": training.pid})
        self._nudge()
        training.go()
        watch.until_end(training, self._beat, {pipe.read_fd: pipe.read} if pipe else None)
        code = training.end_tree()
        if pipe is not None:
            pipe.close()
        if self._link is not None:
            self._link.close()
        if watch.cancelled:
            return self._ended("cancelled", code)
        if code != 0:
            return self._ended("failed", code, cause_of(code, last_lines(self._paths.stderr)))
        return self._ended("completed", 0)

    def _start(self, pipe: PublishingPipe | None) -> TrainingProcess:
        descriptors = [pipe.write_fd] if pipe else []
        training = TrainingProcess(
            [sys.executable, str(_TRAINING)],
            [json.dumps(self._config.as_json()), *map(str, descriptors)],
            self._paths,
            surroundings(),
            descriptors,
        )
        for descriptor in descriptors:
            os.close(descriptor)
        return training

    def _shake_hands(self, watch: Watch) -> None:
        if self._target is None:
            return
        from mosaic.worker.link import TrainerLink

        introduction = Introduction(self._config.run_id, f"tiny-{os.getpid()}", "tiny", supports_pause=True)
        self._link = TrainerLink(introduction, self._var, self._target)
        self._link.register()
        self._link.listen(watch.wish_pause)

    def _beat(self, paused: bool = False, at_once: bool = False) -> None:
        if at_once or time.monotonic() - self._beat_at > _HEARTBEAT_SECONDS:
            self._beat_at = time.monotonic()
            self._emitter.heartbeat({"phase": "paused" if paused else "training"})
            self._nudge()

    def _ended(self, status: str, code: int, cause: str | None = None) -> int:
        manifest = {"run_id": self._config.run_id, "status": status, "exit_code": code, "artifacts": {}}
        write_json(self._paths.manifest, manifest)
        payload: dict[str, Any] = {"exit_code": code, "headline": {}, "manifest": manifest}
        if status == "failed":
            payload["cause"] = cause
        self._emitter.say(EventKind(f"run_{status}"), payload)
        return code

    def _nudge(self) -> None:
        if self._link is not None:
            self._link.heartbeat(self._emitter.last_seq)
