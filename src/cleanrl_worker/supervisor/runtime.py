"""The supervisor: starts the training process, tells the daemon how it fares, and ends with it."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.config.modes import INTERACTIVE, RESUME
from cleanrl_worker.config.registry import COPY_FOLDER
from cleanrl_worker.config.scripts import resolve_script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from cleanrl_worker.supervisor.arguments import (
    RuntimeSummary,
    launch_command,
    make_plan,
    shell_environment,
    training_environment,
)
from cleanrl_worker.supervisor.manifest import checked_before, make_tensorboard_folder, write_provenance
from cleanrl_worker.supervisor.reporter import Reporter, complain
from cleanrl_worker.supervisor.stalls import Report, StallWatch, stall_seconds
from mosaic.contract.atomic import write_atomic, write_json
from mosaic.contract.errors import MosaicError, NotFoundError, StorageError, UserError
from mosaic.contract.paths import VarPaths
from mosaic.contract.phases import forget_phases, read_phase
from mosaic.worker.causes import cause_of, last_lines
from mosaic.worker.environment import PYTHON_VARIABLE, mask_logs, user_folder
from mosaic.worker.telemetry import Introduction
from mosaic.worker.training_process import TrainingProcess, Watch

if TYPE_CHECKING:
    from cleanrl_worker.config.checkpoint_files import Origin
    from mosaic.tracking.beside import Trackers
    from mosaic.worker.link import TrainerLink

_ATTEMPTS = 5
_EARLY_END = (
    "the training process ended with exit code 0 before it had finished: something that it runs, such as the "
    "environment, calls sys.exit() or os._exit()"
)


class CleanRLWorkerRuntime:
    """One run. `run()` gives the exit code of the process."""

    def __init__(self, config: CleanRLWorkerConfig, paths: VarPaths, grpc_target: str | None) -> None:
        self._config = config
        self._var = paths
        self._paths = paths.run(config.run_id)
        self._grpc_target = grpc_target
        self._folder = user_folder()
        self._script = resolve_script(config, self._folder, os.environ.get(PYTHON_VARIABLE))
        self._trackers: Trackers | None = None

    def _origin(self) -> Origin | None:
        """What this start goes on from: after a fault where it was last safe, else what the config names."""
        own = self._paths.full_checkpoints() if self._script.ours else []
        if not own and self._config.mode != RESUME:
            return None
        # Only here, because most runs begin at their beginning.
        from cleanrl_worker.config.checkpoint_files import find_origin, read_origin
        from cleanrl_worker.config.resuming import check_resume

        if own:
            return read_origin(own[-1])
        origin = find_origin(Path(self._config.extras["checkpoint_path"]))
        check_resume(self._config, origin)
        return origin

    def _prepare(self) -> RuntimeSummary:
        """What runs now, with its checkpoint in this run's own folder too, where no other run removes it."""
        for _ in range(_ATTEMPTS):
            origin = self._origin()
            if origin is None or origin.step is None:
                return self._summarise(origin)
            from cleanrl_worker.config.checkpoint_files import take_over

            try:
                return self._summarise(origin, take_over(origin, self._paths.checkpoints))
            except NotFoundError:
                # The run that it is of still trains, and has newer ones by now.
                continue
        return self._summarise(self._origin())

    def _summarise(self, origin: Origin | None, taken: Path | None = None) -> RuntimeSummary:
        return make_plan(self._config, self._script, origin, os.environ.get(PYTHON_VARIABLE), taken)

    def run(self) -> int:
        """Train until the script ends or a signal asks for the end."""
        watch = Watch()
        try:
            summary, self._stall_seconds = self._prepare(), stall_seconds()
        except MosaicError as error:
            if self._grpc_target is None:
                raise
            # What was there when the run was queued may be gone when its turn comes.
            self._paths.logs.mkdir(parents=True, exist_ok=True)
            reporter = Reporter(self._config, self._paths, self._script, lambda: watch.cancelled)
            return reporter.ended("failed", error.exit_code, str(error))
        self._paths.logs.mkdir(parents=True, exist_ok=True)
        self._pipes = self._take_pipes() if self._config.mode == INTERACTIVE else None
        forget_phases(self._paths.run_dir)
        make_tensorboard_folder(self._config, self._paths)
        live = LiveFrames(self._config.run_id, LiveSettings.from_extras(self._config.extras))
        makes = self._script.makes_environments()
        reporter = Reporter(
            summary.config, self._paths, self._script, lambda: watch.cancelled, lambda: live.phase(makes)
        )
        self._report = Report()
        if live.trouble is not None:
            complain(live.trouble)
        try:
            return self._supervise(summary, watch, reporter, live)
        finally:
            live.close()
            self._report.close()

    def _take_pipes(self) -> tuple[int, int]:
        """Our stdin and stdout for the session itself; our events go straight to their file."""
        pipes = os.dup(0), os.dup(1)
        with self._paths.events.open("ab") as events:
            os.dup2(events.fileno(), 1)
        return pipes

    def _environment(self, live: LiveFrames) -> dict[str, str]:
        bridge = self._paths.run_dir / "bridge" if os.environ.get(PYTHON_VARIABLE) else None
        environment = live.add_to(training_environment(self._config, self._paths.run_dir), bridge)
        if self._config.extras.get("track_wandb"):
            from cleanrl_worker.supervisor.tracking import prepare_own_tracking

            environment |= prepare_own_tracking(self._config, self._script, self._paths)
        if self._script.kind == "shell":
            return shell_environment(environment, self._config, self._script, self._paths)
        return environment

    def _command(self, summary: RuntimeSummary) -> list[str]:
        """The command to start. The arguments of an algorithm, and a copy of its file, come to the folder."""
        if not self._script.ours:
            return summary.command
        arguments, source = self._paths.run_dir / "arguments.json", Path(self._script.target)
        copy = self._paths.run_dir / COPY_FOLDER / source.name
        try:
            write_json(arguments, {"algo": summary.config.algo, "arguments": summary.values})
            if self._script.is_file and source != copy:
                copy.parent.mkdir(exist_ok=True)
                write_atomic(copy, source.read_bytes())
        except OSError as error:
            raise StorageError(f"{error.filename or arguments}: {error.strerror}") from error
        return launch_command(os.environ.get(PYTHON_VARIABLE), self._script, arguments)

    def _start(self, command: list[str], live: LiveFrames) -> TrainingProcess:
        try:
            environment = self._environment(live)
        except OSError as error:
            place = error.filename or self._paths.run_dir
            raise StorageError(f"{place} cannot be written: {error.strerror}") from error
        arguments = ["--report-fd", str(self._report.descriptor), *command[2:]]
        fds = [self._report.descriptor]
        try:
            return TrainingProcess(command[:2], arguments, self._paths, environment, fds, self._pipes)
        except OSError as error:
            raise UserError(f"the interpreter {command[0]} cannot be started: {error.strerror}") from error

    def _supervise(self, summary: RuntimeSummary, watch: Watch, reporter: Reporter, live: LiveFrames) -> int:
        try:
            training = self._start(self._command(summary), live)
        except MosaicError as error:
            return reporter.ended("failed", 1, str(error))
        link: TrainerLink | None = None
        try:
            link = self._shake_hands(watch)
            reporter.line = link
            reporter.started({**self._start_payload(training.pid), "resumed_from": summary.resumed_from()})
        except (MosaicError, OSError) as error:
            training.end_tree()
            return reporter.ended("failed", 1, str(error))
        reporter.look_for_stall = StallWatch(self._report, live, training.pid, self._stall_seconds).look
        training.go()
        self._track(summary, training, reporter)
        self._write_provenance(summary.command)
        watch.until_end(training, reporter.beat)
        if self._script.kind == "shell":
            # A shell ends at once when it is asked to; what it has started may still write a checkpoint.
            training.await_group(watch.seconds_to_end())
        code = training.end_tree()
        mask_logs(self._paths)
        try:
            ended = self._tell_end(reporter, watch, code)
        finally:
            # Not before the last word is said: as long as it waits for space, we call.
            if link is not None:
                link.close()
        if reporter.status == "completed" and self._config.extras.get("upload_model"):
            # Few runs do.
            from mosaic.hub.uploads import start_upload

            entity = self._config.extras.get("hf_entity")
            start_upload(self._paths.run_dir, f"{entity}/" if entity else None)
        return ended

    def _track(self, summary: RuntimeSummary, training: TrainingProcess, reporter: Reporter) -> None:
        """Start what passes the run on to trackers; whatever goes wrong with that, the run goes on."""
        if not any(name.startswith("track_") for name in self._config.extras):
            return
        from cleanrl_worker.supervisor.tracking import start_trackers

        try:
            self._trackers = start_trackers(summary, self._var, training.pid)
        except (MosaicError, OSError) as error:
            complain(f"The run is not tracked: {error}")
        if self._trackers is None:
            return
        trackers = self._trackers

        def look() -> dict[str, str]:
            told = trackers.look()
            # One that has died may have been started again.
            training.spared = frozenset(trackers.pids)
            return told

        look()
        reporter.look_at_trackers = look

    def _tell_end(self, reporter: Reporter, watch: Watch, code: int) -> int:
        status, code, cause = self._verdict(watch, code)
        if self._trackers is not None:
            from cleanrl_worker.supervisor.tracking import end_trackers

            end_trackers(self._trackers, status, watch, reporter.beat)
            mask_logs(self._paths)
        if self._config.extras.get("track_wandb"):
            from cleanrl_worker.supervisor.tracking import end_own_tracking

            end_own_tracking(self._paths)
        return reporter.ended(status, code, cause)

    def _verdict(self, watch: Watch, code: int) -> tuple[str, int, str | None]:
        """How the run has ended, its exit code, and why it failed."""
        if watch.cancelled:
            return "cancelled", code, None
        if code != 0:
            phase = read_phase(self._paths.run_dir, self._script.head.phases)
            cause = cause_of(code, last_lines(self._paths.stderr))
            return "failed", code, f"{phase}: {cause}" if phase else cause
        if self._script.has_main and not self._report.reached_end:
            return "failed", 1, _EARLY_END
        return "completed", 0, None

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
            file = Path(self._script.target) if self._script.ours and self._script.is_file else None
            checked = checked_before(self._var.run_config(self._config.run_id))
            write_provenance(self._config, self._paths, command, self._folder, file, checked)
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


def introduce(config: CleanRLWorkerConfig) -> Introduction:
    """The fields of `RegisterWorker`, from the run's config."""
    extras = config.extras
    return Introduction(
        run_id=config.run_id,
        worker_id=config.worker_id or f"cleanrl-worker-{config.run_id[:8]}",
        worker_kind="cleanrl",
        schema_id=str(extras.get("schema_id") or f"cleanrl.{config.algo}"),
        schema_version=int(extras.get("schema_version") or 1),
        supports_pause=bool(extras.get("supports_pause")),
        supports_checkpoint=bool(extras.get("supports_checkpoint")),
        details={
            "algo": config.algo,
            "env_id": config.env_id,
            "seed": config.seed,
            "mode": config.mode,
            **({"agent_id": config.agent_id} if config.agent_id else {}),
        },
    )
