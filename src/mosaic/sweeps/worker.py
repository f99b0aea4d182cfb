"""`python -m mosaic.sweeps.worker --config FILE --grpc --grpc-target HOST:PORT`, as the daemon starts it.

A sweep has no training process: it supervises runs of the same daemon. It is started again after any crash,
and continues where it was.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosaic.client import Client
from mosaic.contract.atomic import is_full, write_json
from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.contract.events import EventKind
from mosaic.contract.outside import read_json
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.sweeps.configs import check_config
from mosaic.sweeps.engine import Ending, Engine, Wishes
from mosaic.sweeps.population import Population
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.study import FILE, StudyWriter
from mosaic.worker.link import TrainerLink
from mosaic.worker.telemetry import Introduction, LifecycleEmitter

_HEARTBEAT_SECONDS = 30.0
_SOON_SECONDS = 1.0
_MOST_CRASHES = 3
"""So often in a row a sweep may fail by itself before it has told of a trial."""
_AWAY_SECONDS = 3600.0
"""So long is a database waited for that was there before."""
_RETRY_SECONDS = 5.0
_CLOCK = "clock.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mosaic.sweeps.worker", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--grpc", action="store_true")
    parser.add_argument("--grpc-target", default="127.0.0.1:50055")
    options = parser.parse_args()
    try:
        return SweepWorker(_load(options.config), VarPaths(resolve_var()), options.grpc_target).run()
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _load(path: Path) -> dict[str, Any]:
    try:
        return check_config(read_json(path))
    except (OSError, ValueError) as error:
        raise UserError(f"The config {path} cannot be read: {error}.") from error


class SweepWorker:
    """The supervisor of a sweep. `run()` gives the exit code of the process."""

    def __init__(self, config: Mapping[str, Any], var: VarPaths, target: str) -> None:
        self._run_id = str(config["run_id"])
        self._spec = SweepSpec.from_json(config["sweep"])
        self._continues = str(config.get("continues") or "")
        self._var = var
        self._target = target
        self._paths = var.run(self._run_id)
        self._paths.logs.mkdir(parents=True, exist_ok=True)
        self._emitter = LifecycleEmitter(self._run_id, self._paths.events)
        self._link: TrainerLink | None = None
        self._beat_at, self._paused = 0.0, False
        self._told: dict[str, Any] = {}
        self._newest: dict[str, Any] = {}
        self._clock = _Clock(self._paths.run_dir / _CLOCK)

    def run(self) -> int:
        wishes = Wishes()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: wishes.cancel())
        try:
            self._shake_hands(wishes)
            self._emitter.say(EventKind.RUN_STARTED, {"trials": self._spec.trials})
            self._nudge()
            ending = self._work(wishes)
        except MosaicError as error:
            return self._ended("failed", error.exit_code, str(error))
        except Exception as error:
            traceback.print_exc()
            if is_full(error):
                # Whoever makes room lets us go on.
                time.sleep(_RETRY_SECONDS)
                code = 1
            else:
                code = 1 if self._clock.crashed() < _MOST_CRASHES else UserError.exit_code
            return self._ended("failed", code, f"{type(error).__name__}: {error}")
        finally:
            self._clock.stop()
        # With this code it is not started again: what has ended it for good would do so again.
        code = UserError.exit_code if ending.status == "failed" else 0
        return self._ended(ending.status, code, ending.cause)

    def _work(self, wishes: Wishes) -> Ending:
        if self._spec.benchmark:
            return self._train_all(wishes)
        if self._spec.population is not None:
            return self._train_population(self._spec.population, wishes)
        gc.disable()
        from mosaic.sweeps.search import Search

        gc.freeze()
        gc.enable()
        continues = (self._continues, self._var.run(self._continues).run_dir) if self._continues else None
        client = Client.connect(self._var.root, guest=True)

        def has_ended(sweep: str) -> bool:
            try:
                return client.get(sweep).ended
            except MosaicError:
                # Of another data folder, or removed: nobody knows.
                return False

        begun, deadline = (self._paths.run_dir / FILE).exists(), time.monotonic() + _AWAY_SECONDS
        while True:
            try:
                search = Search(
                    self._spec, self._run_id, self._paths.run_dir, os.environ, continues, has_ended
                )
                break
            except StorageError:
                # After a reboot a database may be there later than we are.
                if not begun or wishes.cancelled or time.monotonic() > deadline:
                    raise
                self._emitter.heartbeat({"phase": "waiting for its database"})
                self._nudge()
                time.sleep(_RETRY_SECONDS)
        engine = Engine(
            self._spec, self._run_id, client, search, StudyWriter(self._paths.run_dir), wishes, self._beat
        )
        return engine.run(self._clock.left(self._spec.max_minutes))

    def _train_all(self, wishes: Wishes) -> Ending:
        """The same for a benchmark, which needs no Optuna."""
        from mosaic.sweeps.benchmark import BenchmarkEngine, Cells

        client = Client.connect(self._var.root, guest=True)
        cells = Cells(self._spec, self._run_id, client)
        mirror = StudyWriter(self._paths.run_dir)
        engine = BenchmarkEngine(self._spec, self._run_id, client, cells, mirror, wishes, self._beat)
        return engine.run(self._clock.left(self._spec.max_minutes))

    def _train_population(self, population: Population, wishes: Wishes) -> Ending:
        """The same for a population, which needs no Optuna either."""
        from mosaic.sweeps.generations import Generations, PopulationEngine

        before = self._var.run(self._continues).run_dir if self._continues else None
        generations = Generations(self._spec, population, self._run_id, self._paths.run_dir, before)
        client = Client.connect(self._var.root, guest=True)
        mirror = StudyWriter(self._paths.run_dir)
        engine = PopulationEngine(self._spec, self._run_id, client, generations, mirror, wishes, self._beat)
        return engine.run(self._clock.left(self._spec.max_minutes))

    def _shake_hands(self, wishes: Wishes) -> None:
        introduction = Introduction(
            self._run_id, f"sweep-{os.getpid()}", "sweep", schema_id="mosaic.sweep", supports_pause=True
        )
        self._link = TrainerLink(introduction, self._var, self._target)
        self._link.register()
        self._link.listen(wishes.pause)

    def _beat(self, paused: bool, told: dict[str, Any]) -> None:
        """Tell that the sweep lives, at once when something has changed."""
        age = time.monotonic() - self._beat_at
        changed = paused != self._paused or (told != self._told and age > _SOON_SECONDS)
        if self._newest and told["trials"] != self._newest["trials"]:
            self._clock.works()
        self._newest = told
        if changed or age > _HEARTBEAT_SECONDS:
            self._beat_at, self._paused, self._told = time.monotonic(), paused, told
            self._clock.tick(paused)
            self._emitter.heartbeat({"phase": "paused" if paused else "searching", **told})
            self._nudge()

    def _nudge(self) -> None:
        if self._link is not None:
            self._link.heartbeat(self._emitter.last_seq)

    def _ended(self, status: str, code: int, cause: str = "") -> int:
        manifest = {
            "run_id": self._run_id,
            "worker_type": "sweep",
            "status": status,
            "exit_code": code,
            "sweep": self._newest,
            "artifacts": {},
        }
        write_json(self._paths.manifest, manifest)
        payload: dict[str, Any] = {"exit_code": code, "headline": self._newest, "manifest": manifest}
        if status == "failed":
            payload["cause"] = cause
        self._emitter.say(EventKind(f"run_{status}"), payload)
        self._nudge()
        if self._link is not None:
            self._link.close()
        return code


class _Clock:
    """How long a sweep has worked, over restarts and without pauses, and how often it crashed in a row."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            told = read_json(path)
            self._worked, self._crashes = float(told["worked_seconds"]), int(told["crashes"])
        except (OSError, ValueError, KeyError, TypeError):
            self._worked, self._crashes = 0.0, 0
        self._at = time.monotonic()
        self._paused = False

    def left(self, minutes: float | None) -> float | None:
        """Seconds of a limit that are left."""
        return None if minutes is None else max(0.0, minutes * 60 - self._worked)

    def works(self) -> None:
        """A trial was told: whatever went wrong before is over."""
        self._crashes = 0

    def tick(self, paused: bool) -> None:
        now = time.monotonic()
        if not self._paused:
            self._worked += now - self._at
        self._at, self._paused = now, paused
        write_json(self._path, {"worked_seconds": self._worked, "crashes": self._crashes})

    def crashed(self) -> int:
        """One more crash; gives how many there were in a row."""
        self._crashes += 1
        return self._crashes

    def stop(self) -> None:
        self.tick(self._paused)


if __name__ == "__main__":
    sys.exit(main())
