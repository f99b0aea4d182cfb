"""What clients and workers can have done: accept, cancel, pause, reorder, remove, register."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from ulid import ULID

from mosaic.contract.errors import ConflictError, MosaicError, NotFoundError, StorageError, UserError
from mosaic.contract.fsm import STARTED, Outcome, RunStatus
from mosaic.contract.machine import Machine
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import check_priority, checked_name, checked_notes, checked_tags
from mosaic.trainer import intake, log
from mosaic.trainer.broker import Broker, Control, Published
from mosaic.trainer.lifecycle import Lifecycle
from mosaic.trainer.listing import Listing
from mosaic.trainer.log import Code, reach
from mosaic.trainer.rebuild import check_staged, is_run_id, place_staged
from mosaic.trainer.registry import Registry
from mosaic.trainer.rows import RunRow, with_notes
from mosaic.trainer.scheduler import behind
from mosaic.trainer.storage import DamagedError
from mosaic.trainer.supervisors import RunSecrets


class Engine:
    """The daemon without its wire. Lives in the event loop's thread."""

    def __init__(self, paths: VarPaths, registry: Registry, machine: Machine) -> None:
        self.paths = paths
        self.registry = registry
        self.listing = Listing(registry)
        self.machine = machine
        self.broker = Broker()
        self.control = Control()
        self.published = Published()
        self.lifecycle = Lifecycle(paths, registry, self.broker, machine)

    def submit(self, payload: Any, request_id: str, caller: Mapping[str, str]) -> RunRow:
        """Accept a run: its files first, then its row, so that a crash between leaves nothing half-made."""
        known = self.registry.by_request(request_id)
        if known is not None:
            return known
        run_id = str(ULID())
        config, held = intake.accept(payload, run_id, self.paths, self.machine, caller)
        reach("submit.checked")
        try:
            intake.write_files(config, held, run_id, self.paths)
            reach("submit.files")
            run = self.registry.add(run_id, request_id, config, "waits for its turn")
        except (OSError, StorageError) as error:
            intake.remove_files(run_id, self.paths)
            if isinstance(error, DamagedError):
                raise
            self.lifecycle.storage.failed(error)
            raise StorageError(
                f"The run cannot be stored under {self.paths.root} ({error}): free some space there."
            ) from error
        reach("submit.stored")
        log.info(Code.RUN_ACCEPTED, run.run_name, run_id)
        self.broker.publish(run_id)
        self.lifecycle.schedule()
        return self.registry.get(run_id)

    def cancel(self, prefix: str, reason: str) -> RunRow:
        """End a run, soon."""
        run = self.registry.resolve(prefix)
        if run.status == RunStatus.TERM:
            raise ConflictError(f"Run {run.run_id} has ended already ({run.outcome}).")
        self.lifecycle.stop(run, Outcome.CANCELLED, reason or "cancelled by the user")
        return self.registry.get(run.run_id)

    def pause(self, run_id: str, wanted: bool) -> None:
        """Have the run's processes stopped, or go on. The run's state follows when that has happened."""
        run = self.registry.get(run_id)
        if run.status not in (RunStatus.EXEC, RunStatus.PAUSE) or run.stop_outcome is not None:
            raise ConflictError(
                f"Run {run_id} is {run.status}: only a run that trains can be paused and resumed."
            )
        self.registry.update(run_id, pause_wanted=wanted)
        reach("pause.recorded")
        self.control.tell(run_id, pause=wanted)

    def reorder(self, prefix: str, priority: int | None, before: str) -> RunRow:
        """Give a waiting run another priority or another place."""
        run = self.registry.resolve(prefix)
        run_id = run.run_id
        if run.status != RunStatus.INIT:
            raise ConflictError(f"Run {run_id} is {run.status}: only a waiting run has a place in the queue.")
        if before:
            self.registry.place_before(run_id, self.registry.resolve(before).run_id)
        elif priority is not None:
            check_priority(priority)
            self.registry.update(run_id, priority=priority)
        self.broker.publish(run_id, changed=True)
        self.lifecycle.schedule()
        return self.registry.get(run_id)

    def label(self, prefix: str, name: str | None, tags: Sequence[str] | None, notes: str | None) -> RunRow:
        """Give a run another name, other tags or other notes, in whatever state it is."""
        run = self.registry.resolve(prefix)
        changes: dict[str, Any] = {}
        if name is not None:
            changes["run_name"] = checked_name(name)
        if tags is not None:
            changes["tags"] = checked_tags(tags)
        if notes is not None:
            # What was submitted stays as it was: the worker's own settings are part of what it is known by.
            changes["config"] = with_notes(run.config, checked_notes(notes))
        if changes:
            self.registry.update(run.run_id, **changes)
            self.broker.publish(run.run_id, changed=True)
        return self.registry.get(run.run_id)

    async def remove(self, prefix: str) -> int:
        """Forget an ended run and remove its files; gives the bytes freed."""
        run = self.registry.resolve(prefix)
        run_id = run.run_id
        if run.status != RunStatus.TERM:
            raise ConflictError(f"Run {run_id} is still {run.status}: cancel it first.")
        freed = await asyncio.to_thread(intake.remove_run, run_id, self.paths)
        reach("remove.files")
        self.registry.remove(run_id)
        self.broker.publish(run_id, changed=True)
        self.published.forget(run_id)
        log.info(Code.RUN_REMOVED, f"{freed} bytes freed", run_id)
        return freed

    async def adopt(self, run_id: str) -> RunRow:
        """Take in an ended run whose files were laid ready; asked again, it already exists."""
        if not is_run_id(run_id):
            raise UserError(f"'{run_id}' is not a run id.")
        known, staged = self.registry.known(run_id), self.paths.staged(run_id)
        if known is not None and not staged.mark.exists():
            return known
        if not staged.mark.exists():
            raise NotFoundError(f"No files of run {run_id} are ready to be taken in.")
        if staged.has_folder:
            # Else it was taken in by half, and only the rest is to be done.
            try:
                if known is not None or self.paths.run(run_id).run_dir.exists():
                    raise ConflictError(f"Run {run_id} already exists.")
                check_staged(self.paths, run_id)
            except MosaicError:
                # It would be refused each time, and stand in the way of another import of this run.
                staged.mark.unlink()
                raise
        await asyncio.to_thread(place_staged, self.paths, run_id)
        reach("adopt.files")
        run = self.registry.adopt(run_id)
        self.broker.publish(run_id, changed=True)
        log.info(Code.RUN_ADOPTED, run.run_name, run_id)
        return run

    def register(self, run_id: str, secret: str, worker: dict[str, Any]) -> str | None:
        """Take a worker's handshake: its session token, or None when the secret is wrong."""
        run = self.registry.get(run_id)
        held = RunSecrets.read(self.paths.run_secrets(run_id)) if run.status in STARTED else None
        if held is None or not hmac.compare_digest(held.run_secret, secret):
            return None
        token = secrets.token_hex(32)
        changes: dict[str, Any] = {"worker": worker, "session_hash": _hash(token)}
        if run.status == RunStatus.HSHK:
            self.lifecycle.move(run, RunStatus.RDY, **changes)
        else:
            self.registry.update(run_id, **changes)
        return token

    def is_session(self, run_id: str, token: str) -> bool:
        """Whether `token` is the one that the run's worker got at its handshake."""
        held = self.registry.get(run_id).session_hash
        return held is not None and hmac.compare_digest(held, _hash(token))

    def hear(self, run_id: str) -> None:
        """The run's supervisor has called: take in what its event file has got."""
        attached = self.lifecycle.attached.get(run_id)
        if attached is not None:
            attached.hear()
            attached.look()

    def live_headline(self, run_id: str) -> dict[str, Any] | None:
        """The newest headline of a live run, from its events; None where the one in its row is the newest."""
        attached = self.lifecycle.attached.get(run_id)
        return (attached.headline or None) if attached is not None else None

    def waits_for(self, run_id: str, ahead: int) -> str | None:
        """What a waiting run waits for now; None where its row says why it waits."""
        told = self.lifecycle.waits.get(run_id)
        return told or (behind(ahead) if ahead else None)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
