"""A run's way from state to state: started, watched, paused, ended, started again, recovered."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.contract.events import EventKind, LifecycleEvent
from mosaic.contract.fsm import STARTED, Outcome, RunStatus
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import NOBODY, ProcessIdentity, boot_id, process_state
from mosaic.fastlane.segment import remove_segment
from mosaic.trainer import intake, log, supervisors
from mosaic.trainer.attached import SILENCE_SECONDS, AttachedRun
from mosaic.trainer.broker import Broker
from mosaic.trainer.crash_points import reach
from mosaic.trainer.log import Code
from mosaic.trainer.machine import Machine
from mosaic.trainer.registry import Registry
from mosaic.trainer.rows import RunRow, seconds_worked
from mosaic.trainer.scheduler import Start, next_starts
from mosaic.trainer.storage import RETRY_SECONDS, Storage, is_full
from mosaic.trainer.verdict import judge


class Lifecycle:
    """All moves of all runs. Lives in the event loop's thread."""

    def __init__(self, paths: VarPaths, registry: Registry, broker: Broker, machine: Machine) -> None:
        self.paths = paths
        self.registry = registry
        self.broker = broker
        self.machine = machine
        self.storage = Storage(paths.root)
        registry.on_failure = self.storage.failed
        self.target = ""
        self.waits: dict[str, str] = {}
        self._attached: dict[str, AttachedRun] = {}
        self._next_schedule: asyncio.TimerHandle | None = None

    def attached(self, run_id: str) -> AttachedRun | None:
        return self._attached.get(run_id)

    @property
    def busy(self) -> bool:
        """Whether a run waits or lives."""
        return bool(self._attached or self.waits)

    def schedule(self) -> None:
        """Start the next run that may start, and tell the others what they wait for.

        Starting takes a while: before the one after it, calls that have come in meanwhile are answered.
        """
        try:
            starts, waits = next_starts(self.registry.queue(), self.machine)
            for run_id, lack in waits.items():
                if lack != self.waits.get(run_id):
                    self.broker.publish(run_id, {"phase": "waiting", "waits_for": lack})
            self.waits = waits
            if starts:
                self._start(starts[0])
            if len(starts) > 1:
                self._schedule_in(0)
        except (OSError, StorageError) as error:
            self._schedule_later(error)

    def recover(self) -> None:
        """Take up where an earlier daemon was: the lock of each run tells whether its supervisor lives."""
        live = self.registry.live()
        intake.sweep_files(self.registry.run_ids(), {run.run_id for run in live}, self.paths)
        for run in live:
            try:
                self._recover_run(run)
            except (OSError, MosaicError):
                # One run whose files are out of order must not keep all the others from going on.
                log.exception(Code.RUN_RECOVERED, "cannot be taken up", run.run_id)
        self.schedule()

    def _recover_run(self, run: RunRow) -> None:
        if run.status == RunStatus.FAULT:
            self._settle(run)
        elif supervisors.lock_is_held(self.paths.run(run.run_id)):
            self._take_up(run)
        elif run.status in STARTED:
            self._attach(run, run.supervisor or NOBODY, None)

    def check_silence(self) -> None:
        """Fault runs whose supervisor no longer writes."""
        for attached in list(self._attached.values()):
            attached.look()
            if attached.silent_for() > SILENCE_SECONDS:
                attached.kill(f"no heartbeat for {SILENCE_SECONDS:.0f} s")

    def stop(self, run: RunRow, outcome: Outcome, reason: str) -> None:
        """End a run. A waiting one ends now, a started one when its processes are gone."""
        attached = self._attached.get(run.run_id)
        if attached is None:
            self.move(run, RunStatus.TERM, reason, outcome, ended_at=time.time())
            self.schedule()
        elif run.stop_outcome is None:
            try:
                self.registry.update(run.run_id, stop_outcome=outcome, stop_reason=reason)
            except StorageError as error:
                # The run that fills the disk must be stoppable: its last event tells what became of it.
                log.warning(Code.STORAGE_FAILED, str(error), run.run_id)
            reach("stop.recorded")
            attached.ask_to_end()
            reach("stop.signalled")

    def detach_all(self) -> None:
        """Stop watching, for the end of the daemon; the runs go on."""
        for attached in self._attached.values():
            attached.detach()
        self._attached.clear()
        if self._next_schedule is not None:
            self._next_schedule.cancel()

    def move(
        self,
        run: RunRow,
        status: RunStatus,
        reason: str | None = None,
        outcome: Outcome | None = None,
        **changes: Any,
    ) -> RunRow:
        """Change a run's state, for all to see."""
        if status == RunStatus.TERM:
            intake.keep_logs(run.run_id, self.paths)
        reach(f"before.{status}")
        moved = self.registry.move(run.run_id, status, reason, outcome, **changes)
        reach(f"after.{status}")
        detail = f" {outcome or ''} {reason or ''}".rstrip()
        log.info(Code.RUN_MOVED, f"{run.status} → {status}{detail}", run.run_id)
        if status == RunStatus.TERM:
            intake.drop_secrets(run.run_id, self.paths)
        elif status in (RunStatus.EXEC, RunStatus.PAUSE):
            self._limit_time(moved)
        self.broker.publish(run.run_id)
        return moved

    # Starting

    def _start(self, start: Start) -> None:
        run = self.registry.get(start.run.run_id)
        try:
            process = supervisors.spawn(self.paths, run.run_id, run.config, self.target, start.gpu_ids)
        except (OSError, MosaicError) as error:
            if is_full(error):
                raise
            self._fault(run, f"the supervisor cannot be started: {error}")
            return
        reach("start.spawned")
        identity = ProcessIdentity.of(process.pid) or ProcessIdentity(process.pid, 0)
        try:
            run = self._record_start(run, identity, start.gpu_ids)
        except StorageError:
            # It has not trained yet: before that it needs a handshake, which a run that is INIT does not get.
            process.kill()
            process.wait()
            raise
        self._attach(run, identity, process)

    def _record_start(self, run: RunRow, supervisor: ProcessIdentity, gpu_ids: Sequence[int]) -> RunRow:
        return self.move(
            run,
            RunStatus.HSHK,
            started_at=run.started_at or time.time(),
            supervisor_pid=supervisor.pid,
            supervisor_start=supervisor.start,
            boot_id=boot_id(),
            gpu_ids=list(gpu_ids),
        )

    def _schedule_later(self, error: Exception) -> None:
        log.warning(Code.STORAGE_FAILED, str(error))
        self.storage.failed(error)
        self._schedule_in(RETRY_SECONDS)

    def _schedule_in(self, seconds: float) -> None:
        if self._next_schedule is not None:
            self._next_schedule.cancel()
        self._next_schedule = asyncio.get_running_loop().call_later(seconds, self.schedule)

    # Watching

    def _take_up(self, run: RunRow) -> None:
        """Go on with a run whose supervisor lives, also one whose start was never recorded."""
        supervisor = run.supervisor or supervisors.find(run.run_id, self.paths.run(run.run_id)) or NOBODY
        if run.status == RunStatus.INIT:
            run = self._record_start(run, supervisor, supervisors.reserved_gpus(supervisor.pid))
        log.info(Code.RUN_RECOVERED, f"supervisor {supervisor.pid} goes on", run.run_id)
        self._attach(run, supervisor, None)

    def _attach(
        self, run: RunRow, supervisor: ProcessIdentity, process: subprocess.Popen[bytes] | None
    ) -> None:
        run_paths = self.paths.run(run.run_id)
        attached = AttachedRun(run, run_paths, supervisor, process, self._on_event, self._on_end)
        self._attached[run.run_id] = attached
        attached.attach(started=run.status in (RunStatus.EXEC, RunStatus.PAUSE))
        run = self.registry.get(run.run_id)
        if run.status == RunStatus.HSHK:
            attached.expect_handshake(lambda: self.registry.get(run.run_id).status != RunStatus.HSHK)
        if run.stop_outcome is not None:
            attached.ask_to_end()
        elif run.status in (RunStatus.EXEC, RunStatus.PAUSE):
            if run.training_pid is not None and process_state(run.training_pid) is not None:
                self._see_pause(run, process_state(run.training_pid) == "T")
            self._limit_time(self.registry.get(run.run_id))

    def _on_event(self, run_id: str, event: LifecycleEvent) -> None:
        if event.event == EventKind.RUN_STARTED:
            run = self.registry.get(run_id)
            if run.status == RunStatus.RDY:
                self.move(run, RunStatus.EXEC, training_pid=event.payload.get("training_pid"))
        elif event.event == EventKind.HEARTBEAT:
            self._see_pause(self.registry.get(run_id), event.payload.get("phase") == "paused")
            self.broker.publish(run_id, dict(event.payload))

    def _see_pause(self, run: RunRow, paused: bool) -> None:
        """Take the truth about a pause from the processes."""
        if run.status == RunStatus.EXEC and paused:
            why = "paused by the user" if run.pause_wanted else "stopped from outside"
            self.move(run, RunStatus.PAUSE, why)
        elif run.status == RunStatus.PAUSE and not paused:
            self.move(run, RunStatus.EXEC)

    def _limit_time(self, run: RunRow) -> None:
        """End the run when it has worked for as long as it may; paused time does not count."""
        attached = self._attached.get(run.run_id)
        if attached is None or run.max_seconds is None:
            return
        if run.status != RunStatus.EXEC:
            attached.limit_time(None, lambda: None)
            return
        worked = seconds_worked(self.registry.history(0, run.run_id), time.time())
        reason = f"worked for {run.max_seconds / 60:g} minutes, the most it may"
        attached.limit_time(
            run.max_seconds - worked,
            lambda: self.stop(self.registry.get(run.run_id), Outcome.TIMED_OUT, reason),
        )

    # Ending

    def _on_end(self, run_id: str, final: LifecycleEvent | None, code: int | None) -> None:
        """Move an ended run on. Called again when something could not be written."""
        attached, run = self._attached[run_id], self.registry.get(run_id)
        if run.status in STARTED:
            verdict = judge(run, final, code, self.paths.kept_logs(run_id) / "supervisor.stderr.log")
            if not verdict.clean:
                self._sweep(run_id)
            given = final.payload.get("headline") if final else None
            failed = verdict.status == RunStatus.FAULT
            run = self.move(
                run,
                verdict.status,
                (attached.lost_reason if failed else None) or verdict.reason,
                verdict.outcome,
                headline=given or attached.headline,
                exit_code=verdict.exit_code,
                ended_at=None if failed else time.time(),
            )
        if run.status == RunStatus.FAULT:
            self._settle(run)
        del self._attached[run_id]
        self._schedule_in(0)

    def _sweep(self, run_id: str) -> None:
        """End what a killed supervisor left: processes, and live frames."""
        remove_segment(run_id)
        swept = supervisors.end_leftovers(run_id)
        if swept:
            log.warning(Code.RUN_SWEPT, f"killed {swept}, left by the supervisor", run_id)

    def _fault(self, run: RunRow, reason: str) -> None:
        self._settle(self.move(run, RunStatus.FAULT, reason))

    def _settle(self, run: RunRow) -> None:
        """Start a faulted run again while it may; a wrong config stays wrong."""
        faults = self.registry.count(run.run_id, RunStatus.FAULT)
        wrong_config = run.exit_code == UserError.exit_code
        if faults > run.max_restarts or wrong_config or run.stop_outcome is not None:
            self.move(run, RunStatus.TERM, run.reason, Outcome.FAILED, ended_at=time.time())
            return
        events = self.paths.run(run.run_id).events
        self.move(
            run,
            RunStatus.INIT,
            f"restart {faults} of {run.max_restarts} after: {run.reason}",
            events_offset=events.stat().st_size if events.exists() else 0,
            session_hash=None,
            supervisor_pid=None,
            supervisor_start=None,
            training_pid=None,
            gpu_ids=[],
            pause_wanted=False,
        )
