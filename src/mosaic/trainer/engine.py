"""The heart of the daemon: accepts runs, starts them in order, and moves them through their states."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import subprocess
import time
from typing import Any

from ulid import ULID

from mosaic.contract.errors import ConflictError, MosaicError, StorageError
from mosaic.contract.events import EventKind, LifecycleEvent
from mosaic.contract.fsm import STARTED, Outcome, RunStatus
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import NOBODY, ProcessIdentity, boot_id
from mosaic.trainer import intake, log
from mosaic.trainer.attached import SILENCE_SECONDS, AttachedRun
from mosaic.trainer.broker import Broker
from mosaic.trainer.log import Code
from mosaic.trainer.registry import Registry, RunRow
from mosaic.trainer.scheduler import next_starts
from mosaic.trainer.supervisors import (
    RunSecrets,
    end_leftovers,
    find_supervisor,
    lock_is_held,
    spawn_supervisor,
)
from mosaic.trainer.verdict import Verdict, judge


class Engine:
    """Everything that happens to runs. Lives in the event loop's thread."""

    def __init__(self, paths: VarPaths, registry: Registry, broker: Broker, cpus: int) -> None:
        self.paths = paths
        self.registry = registry
        self.broker = broker
        self.cpus = cpus
        self.target = ""
        self.waits: dict[str, str] = {}
        self._attached: dict[str, AttachedRun] = {}

    # What clients ask for

    def submit(self, payload: Any, request_id: str) -> RunRow:
        """Accept a run: its files first, then its row, so that a crash between leaves nothing half-made."""
        known = self.registry.by_request(request_id)
        if known is not None:
            return known
        run_id = str(ULID())
        accepted = intake.accept(payload, run_id, self.paths, self.cpus)
        try:
            intake.write_files(accepted, run_id, self.paths)
            run = self.registry.add(run_id, request_id, accepted.config, "waits for its turn")
        except (OSError, StorageError) as error:
            intake.remove_files(run_id, self.paths)
            raise StorageError(f"The run cannot be stored under {self.paths.root}: {error}") from error
        log.info(Code.RUN_ACCEPTED, run.run_name, run_id)
        self.broker.publish(run_id)
        self.schedule()
        return self.registry.get(run_id)

    def cancel(self, run_id: str, reason: str) -> RunRow:
        """End a run. A waiting one ends now, a started one when its processes are gone."""
        run = self.registry.get(run_id)
        if run.status == RunStatus.TERM:
            raise ConflictError(f"Run {run_id} has ended already ({run.outcome}).")
        self._stop(run, Outcome.CANCELLED, reason or "cancelled by the user")
        return self.registry.get(run_id)

    async def remove(self, run_id: str) -> int:
        """Forget an ended run and remove its files; gives the bytes freed."""
        run = self.registry.get(run_id)
        if run.status != RunStatus.TERM:
            raise ConflictError(f"Run {run_id} is still {run.status}: cancel it first.")
        freed = await asyncio.to_thread(intake.remove_run, run_id, self.paths)
        self.registry.remove(run_id)
        log.info(Code.RUN_REMOVED, f"{freed} bytes freed", run_id)
        return freed

    # What workers say

    def register(self, run_id: str, secret: str, worker: dict[str, Any]) -> str | None:
        """Take a worker's handshake: its session token, or None when the secret is wrong."""
        run = self.registry.get(run_id)
        held = RunSecrets.read(self.paths.run_secrets(run_id)) if run.status in STARTED else None
        if held is None or not hmac.compare_digest(held.run_secret, secret):
            return None
        token = secrets.token_hex(32)
        changes: dict[str, Any] = {"worker": worker, "session_hash": _hash(token)}
        if run.status == RunStatus.HSHK:
            self._move(run, RunStatus.RDY, **changes)
        else:
            self.registry.update(run_id, **changes)
        return token

    def heartbeat(self, run_id: str, token: str) -> bool:
        """Look at the run's event file; False when the session token is wrong."""
        run = self.registry.get(run_id)
        if run.session_hash is None or not hmac.compare_digest(run.session_hash, _hash(token)):
            return False
        if run_id in self._attached:
            self._attached[run_id].look()
        return True

    # What the daemon does by itself

    def schedule(self) -> None:
        """Start the runs that may start now, and tell the others what they wait for."""
        live = self.registry.live()
        starts, waits = next_starts(live, self.cpus)
        for run_id in waits.keys() | self.waits.keys():
            if waits.get(run_id) != self.waits.get(run_id) and run_id in waits:
                self.broker.publish(run_id, {"phase": "waiting", "waits_for": waits[run_id]})
        self.waits = waits
        for run in starts:
            self._start(run)

    def recover(self) -> None:
        """Take up where an earlier daemon was: the lock of each run tells whether its supervisor lives."""
        intake.sweep_files(self.registry.run_ids(), self.paths)
        for run in self.registry.live():
            run_paths = self.paths.run(run.run_id)
            held = lock_is_held(run_paths)
            if run.status == RunStatus.FAULT:
                self._settle(run)
            elif held:
                supervisor = run.supervisor or find_supervisor(run.run_id, run_paths) or NOBODY
                if run.status == RunStatus.INIT:
                    run = self._record_start(run, supervisor)
                log.info(Code.RUN_RECOVERED, f"supervisor {supervisor.pid} goes on", run.run_id)
                self._attach(run, supervisor, None)
            elif run.status in STARTED:
                self._attach(run, run.supervisor or NOBODY, None)
        self.schedule()

    def check_silence(self) -> None:
        """Fault runs whose supervisor no longer writes."""
        for run_id, attached in list(self._attached.items()):
            attached.look()
            if attached.silent_for() > SILENCE_SECONDS and run_id in self._attached:
                attached.kill(f"no heartbeat for {SILENCE_SECONDS:.0f} s")

    def detach_all(self) -> None:
        """Stop watching, for the end of the daemon; the runs go on."""
        for attached in self._attached.values():
            attached.detach()
        self._attached.clear()

    def has_live_runs(self) -> bool:
        return bool(self._attached or self.waits)

    def headline(self, run: RunRow) -> dict[str, Any]:
        """The newest headline: of a live run from its events, of an ended one from its row."""
        attached = self._attached.get(run.run_id)
        return attached.headline if attached is not None and attached.headline else run.headline

    def reason(self, run: RunRow) -> str | None:
        """Why the run is where it is; for a waiting one what it waits for now."""
        return self.waits.get(run.run_id, run.reason) if run.status == RunStatus.INIT else run.reason

    # Moves

    def _start(self, run: RunRow) -> None:
        try:
            process = spawn_supervisor(self.paths, run.run_id, run.config, self.target)
        except (OSError, MosaicError) as error:
            self._fault(run, f"the supervisor cannot be started: {error}")
            return
        identity = ProcessIdentity.of(process.pid) or ProcessIdentity(process.pid, 0)
        try:
            run = self._record_start(run, identity)
        except MosaicError:
            process.kill()
            process.wait()
            raise
        self._attach(run, identity, process)

    def _record_start(self, run: RunRow, supervisor: ProcessIdentity) -> RunRow:
        return self._move(
            run,
            RunStatus.HSHK,
            started_at=run.started_at or time.time(),
            supervisor_pid=supervisor.pid,
            supervisor_start=supervisor.start,
            boot_id=boot_id(),
        )

    def _attach(
        self, run: RunRow, supervisor: ProcessIdentity, process: subprocess.Popen[bytes] | None
    ) -> None:
        attached = AttachedRun(
            run.run_id,
            self.paths.run(run.run_id),
            supervisor,
            process,
            run.events_offset,
            self._on_event,
            self._on_end,
        )
        attached.headline = run.headline
        self._attached[run.run_id] = attached
        attached.attach(started=run.status in (RunStatus.EXEC, RunStatus.PAUSE))
        if run.status == RunStatus.HSHK:
            attached.expect_handshake(lambda run_id: self.registry.get(run_id).status != RunStatus.HSHK)
        if run.stop_outcome is not None:
            attached.ask_to_end()

    def _on_event(self, run_id: str, event: LifecycleEvent) -> None:
        if event.event == EventKind.RUN_STARTED:
            run = self.registry.get(run_id)
            if run.status == RunStatus.RDY:
                self._move(run, RunStatus.EXEC, training_pid=event.payload.get("training_pid"))
        elif event.event == EventKind.HEARTBEAT:
            self.broker.publish(run_id, dict(event.payload))

    def _on_end(self, run_id: str, final: LifecycleEvent | None, code: int | None) -> None:
        attached = self._attached.pop(run_id)
        run = self.registry.get(run_id)
        stderr = self.paths.kept_logs(run_id) / "supervisor.stderr.log"
        verdict = judge(run, final, code, stderr)
        if not verdict.clean:
            swept = end_leftovers(run_id)
            if swept:
                log.warning(Code.RUN_SWEPT, f"killed {swept}, left by the supervisor", run_id)
        headline = dict(final.payload.get("headline") or attached.headline) if final else attached.headline
        self.registry.update(run_id, headline=headline, exit_code=verdict.exit_code)
        self._conclude(run, verdict, attached.lost_reason)
        self.schedule()

    def _conclude(self, run: RunRow, verdict: Verdict, lost_reason: str | None) -> None:
        if verdict.status == RunStatus.FAULT:
            self._fault(run, lost_reason or verdict.reason or "unknown")
        else:
            self._move(run, RunStatus.TERM, verdict.reason, verdict.outcome, ended_at=time.time())

    def _stop(self, run: RunRow, outcome: Outcome, reason: str) -> None:
        attached = self._attached.get(run.run_id)
        if attached is None:
            self._move(run, RunStatus.TERM, reason, outcome, ended_at=time.time())
            self.schedule()
        elif run.stop_outcome is None:
            self.registry.update(run.run_id, stop_outcome=outcome, stop_reason=reason)
            attached.ask_to_end()

    def _fault(self, run: RunRow, reason: str) -> None:
        self._settle(self._move(run, RunStatus.FAULT, reason))

    def _settle(self, run: RunRow) -> None:
        self._move(run, RunStatus.TERM, run.reason, Outcome.FAILED, ended_at=time.time())

    def _move(
        self,
        run: RunRow,
        status: RunStatus,
        reason: str | None = None,
        outcome: Outcome | None = None,
        **changes: Any,
    ) -> RunRow:
        moved = self.registry.move(run.run_id, status, reason, outcome, **changes)
        detail = f" {outcome or ''} {reason or ''}".rstrip()
        log.info(Code.RUN_MOVED, f"{run.status} → {status}{detail}", run.run_id)
        if status == RunStatus.TERM:
            intake.close_files(run.run_id, self.paths)
        self.broker.publish(run.run_id)
        return moved


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
