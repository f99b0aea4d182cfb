"""A run's way from state to state: started, watched, paused, ended, started again, recovered."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from mosaic.contract.atomic import drop_spare, keep_spare
from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.contract.events import EventKind, LifecycleEvent
from mosaic.contract.fsm import STARTED, Outcome, RunStatus
from mosaic.contract.machine import Machine
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import NOBODY, ProcessIdentity, boot_id, process_state
from mosaic.fastlane.segment import remove_segment
from mosaic.trainer import intake, log, supervisors
from mosaic.trainer.attached import SILENCE_SECONDS, AttachedRun, judge
from mosaic.trainer.broker import Broker
from mosaic.trainer.log import Code, reach
from mosaic.trainer.registry import Registry
from mosaic.trainer.rows import RunRow
from mosaic.trainer.scheduler import Start, next_starts
from mosaic.trainer.storage import RETRY_SECONDS, Storage, is_full

_COUNT_SECONDS = 60.0
"""So often the time that a run has worked is stored, if that is limited."""


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
        self.attached: dict[str, AttachedRun] = {}
        self._next_schedule: asyncio.TimerHandle | None = None

    def schedule(self) -> None:
        """Start the next run that may start, and tell the others what they wait for.

        Starting takes a while: before the one after it, calls that have come in meanwhile are answered.
        """
        try:
            starts, waits = next_starts(self.registry.queue(), self.machine)
            if starts and self.storage.is_full():
                lack = f"waits for space on the disk of {self.paths.root}"
                starts, waits = [], {start.run.run_id: lack for start in starts} | waits
                self._schedule_in(RETRY_SECONDS)
            for run_id, lack in waits.items():
                if lack != self.waits.get(run_id):
                    self.broker.publish(run_id, {"phase": "waiting", "waits_for": lack})
            self.waits = waits
            if starts:
                self._start(starts[0])
            if len(starts) > 1:
                self._schedule_in(0)
        except (OSError, StorageError) as error:
            log.warning(Code.STORAGE_FAILED, str(error))
            self.storage.failed(error)
            self._schedule_in(RETRY_SECONDS)

    def recover(self, copied_from: str = "") -> None:
        """Take up where an earlier daemon was: the lock of each run tells whether its supervisor lives.

        Runs that lived or waited in the folder of which this one is a copy go on there, not here.
        """
        if copied_from:
            self._leave_to(copied_from)
        live = self.registry.live()
        intake.sweep_files(self.registry.run_ids(), {run.run_id for run in live}, self.paths)
        for run in live:
            self._recover_run(run.run_id)
        self.schedule()

    def _recover_run(self, run_id: str) -> None:
        try:
            self._recover(self.registry.get(run_id))
        except StorageError as error:
            log.warning(Code.STORAGE_FAILED, str(error), run_id)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._recover_run, run_id)
        except (OSError, MosaicError):
            # One run whose files are out of order must not keep all the others from going on.
            log.exception(Code.RUN_RECOVERED, "cannot be taken up", run_id)

    def _recover(self, run: RunRow) -> None:
        if run.status == RunStatus.FAULT:
            self._settle(run)
        elif supervisors.lock_is_held(self.paths.run(run.run_id)):
            self._take_up(run)
        elif run.status in STARTED:
            if run.stop_outcome is None and supervisors.lives_elsewhere(run.run_id, self.paths):
                self._leave(run, "it continues in another folder, of which this one is a copy")
                run = self.registry.get(run.run_id)
            known = run.supervisor or NOBODY
            self._attach(run, known if supervisors.is_ours(known, run.run_id, self.paths) else NOBODY, None)

    def _leave_to(self, original: str) -> None:
        reason = f"this folder is a copy of {original}, where the run continued"
        for run in self.registry.live():
            if run.status == RunStatus.INIT:
                self.move(run, RunStatus.TERM, reason, Outcome.CANCELLED, ended_at=time.time())
            elif run.stop_outcome is None:
                self._leave(run, reason)

    def _leave(self, run: RunRow, reason: str) -> None:
        """Let a run of somebody else end here; what its events tell of its end counts more, if they do."""
        self.registry.update(run.run_id, stop_outcome=Outcome.CANCELLED, stop_reason=reason)

    def check_silence(self) -> None:
        """Fault runs whose supervisor neither writes nor calls."""
        for attached in list(self.attached.values()):
            attached.look()
            if process_state(attached.supervisor.pid) == "T":
                # Stopped from outside, it cannot write; it does when it is continued.
                attached.hear()
                self._see_pause_of(self.registry.get(attached.run_id))
            elif attached.silent_for() > SILENCE_SECONDS:
                full = f"; the disk of {self.paths.root} is full" if self.storage.is_full() else ""
                attached.kill(f"no heartbeat for {SILENCE_SECONDS:.0f} s{full}")

    def keep_room(self) -> None:
        """Take the room that is needed on a full disk while there is some."""
        self.registry.room.take()
        keep_spare(self.paths.daemon_file)

    def stop(self, run: RunRow, outcome: Outcome, reason: str) -> None:
        """End a run. A waiting one ends now, a started one when its processes are gone."""
        attached = self.attached.get(run.run_id)
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
        for attached in self.attached.values():
            attached.detach()
        self.attached.clear()
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
        changes["worked_seconds"] = run.worked()
        changes["works_since"] = time.monotonic() if status == RunStatus.EXEC else None
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
            self._settle(self.move(run, RunStatus.FAULT, f"the supervisor cannot be started: {error}"))
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
            **_started_as(supervisor, gpu_ids),
        )

    def _schedule_in(self, seconds: float) -> None:
        if self._next_schedule is not None:
            self._next_schedule.cancel()
        self._next_schedule = asyncio.get_running_loop().call_later(seconds, self.schedule)

    # Watching

    def _take_up(self, run: RunRow) -> None:
        """Go on with a run whose supervisor lives, also one whose start was never recorded."""
        supervisor = run.supervisor or NOBODY
        if not supervisors.is_ours(supervisor, run.run_id, self.paths):
            supervisor = supervisors.find(run.run_id, self.paths) or NOBODY
        if run.status == RunStatus.INIT:
            run = self._record_start(run, supervisor, supervisors.reserved_gpus(supervisor.pid))
        elif supervisor not in (run.supervisor, NOBODY):
            self.registry.update(
                run.run_id, **_started_as(supervisor, supervisors.reserved_gpus(supervisor.pid))
            )
        log.info(Code.RUN_RECOVERED, f"supervisor {supervisor.pid} goes on", run.run_id)
        self._attach(run, supervisor, None)

    def _attach(
        self, run: RunRow, supervisor: ProcessIdentity, process: subprocess.Popen[bytes] | None
    ) -> None:
        run_paths = self.paths.run(run.run_id)
        attached = AttachedRun(run, run_paths, supervisor, process, self._on_event, self._on_end)
        self.attached[run.run_id] = attached
        attached.attach(started=run.status in (RunStatus.EXEC, RunStatus.PAUSE))
        if supervisor == NOBODY:
            # Its end is about to be told; the processes that its row names may be somebody else's.
            return
        run = self.registry.get(run.run_id)
        if run.status == RunStatus.HSHK:
            attached.expect_handshake(lambda: self.registry.get(run.run_id).status != RunStatus.HSHK)
        if run.stop_outcome is not None:
            attached.ask_to_end()
        elif run.status in (RunStatus.EXEC, RunStatus.PAUSE):
            with contextlib.suppress(StorageError):
                # What cannot be written now, the next heartbeat tells again.
                self._see_pause_of(run)
            self._limit_time(self.registry.get(run.run_id))

    def _on_event(self, run_id: str, event: LifecycleEvent) -> None:
        if event.event == EventKind.RUN_STARTED:
            run = self.registry.get(run_id)
            if run.status == RunStatus.RDY:
                self.move(run, RunStatus.EXEC, training_pid=event.payload.get("training_pid"))
        elif event.event == EventKind.HEARTBEAT:
            self._see_pause(self.registry.get(run_id), event.payload.get("phase") == "paused")
            self.broker.publish(run_id, dict(event.payload))

    def _see_pause(self, run: RunRow, paused: bool) -> RunRow:
        """Take the truth about a pause from the processes, which others can stop and continue as well."""
        if run.status == RunStatus.EXEC and paused:
            why = "paused by the user" if run.pause_wanted else "stopped from outside"
            return self.move(run, RunStatus.PAUSE, why, pause_wanted=True)
        if run.status == RunStatus.PAUSE and not paused:
            return self.move(run, RunStatus.EXEC, pause_wanted=False)
        return run

    def _see_pause_of(self, run: RunRow) -> None:
        """The same for a run whose supervisor has not told it."""
        state = process_state(run.training_pid) if run.training_pid is not None else None
        if state is not None:
            self._see_pause(run, state == "T")

    def _limit_time(self, run: RunRow) -> None:
        """End the run when it has worked for as long as it may; paused time does not count."""
        attached = self.attached.get(run.run_id)
        if attached is None or run.max_seconds is None:
            return
        works = run.status == RunStatus.EXEC
        left = min(run.max_seconds - run.worked(), _COUNT_SECONDS) if works else None
        attached.limit_time(left, lambda: self._check_time(run.run_id))

    def _check_time(self, run_id: str) -> None:
        run = self.registry.get(run_id)
        if run.max_seconds is not None and run.worked() >= run.max_seconds:
            reason = f"reached its time limit of {run.max_seconds / 60:g} minutes"
            self.stop(run, Outcome.TIMED_OUT, reason)
            return
        # So that a loss of power, after which the clock starts anew, forgets little of it.
        with contextlib.suppress(StorageError):
            self.registry.update(run_id, worked_seconds=run.worked(), works_since=time.monotonic())
        self._limit_time(self.registry.get(run_id))

    # Ending

    def _on_end(self, run_id: str, final: LifecycleEvent | None, code: int | None) -> None:
        """Move an ended run on. Called again when something could not be written."""
        attached, run = self.attached[run_id], self.registry.get(run_id)
        if final is not None and final.event == EventKind.RUN_COMPLETED:
            # Who came to its end by itself stood still no longer.
            run = self._see_pause(run, paused=False)
        if run.status in STARTED:
            stderr = self.paths.kept_logs(run_id) / "supervisor.stderr.log"
            verdict = judge(run, final, code, self.paths.run(run_id).run_dir, stderr)
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
        del self.attached[run_id]
        self._schedule_in(0)

    def _sweep(self, run_id: str) -> None:
        """End what a killed supervisor left: processes, live frames, and the room it kept."""
        swept = supervisors.end_leftovers(run_id, self.paths)
        with contextlib.suppress(OSError):
            drop_spare(self.paths.run(run_id).manifest)
        # Frames are known by the run's id alone, which a copy of the folder has too.
        if not supervisors.lives_elsewhere(run_id, self.paths):
            remove_segment(run_id)
        if swept:
            log.warning(Code.RUN_SWEPT, f"killed {swept}, left by the supervisor", run_id)

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


def _started_as(supervisor: ProcessIdentity, gpu_ids: Sequence[int]) -> dict[str, Any]:
    """The columns that say which process a run is."""
    return {
        "supervisor_pid": supervisor.pid,
        "supervisor_start": supervisor.start,
        "boot_id": boot_id(),
        "gpu_ids": list(gpu_ids),
    }
