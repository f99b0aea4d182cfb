"""What a disk holds after a loss of power: all that was synced, and any part of the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fault_cases.traces import Step


@dataclass
class Disk:
    """What surely survives, and the later steps on it, which may or may not."""

    names: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    pending: list[Step] = field(default_factory=list)

    def take(self, step: Step) -> bool:
        """One more step; whether something surely survives now that did not before."""
        if step.kind != "sync":
            self.pending.append(step)
            return False
        moved = [one for one in self.pending if _is_synced_by(one, step)]
        self.pending = [one for one in self.pending if not _is_synced_by(one, step)]
        for one in moved:
            _apply(one, self.names, self.files)
        return bool(moved)

    def after_loss(self, survives: Callable[[], float]) -> dict[str, bytes]:
        """The files that are found afterwards; `survives` gives the part of a pending step that made it."""
        names, files = set(self.names), dict(self.files)
        for step in self.pending:
            part = survives()
            if part >= 1.0 or (part > 0.5 and step.kind != "write"):
                _apply(step, names, files)
            elif part > 0.0 and step.kind == "write":
                kept = step.data[: int(len(step.data) * part) // 512 * 512]
                _apply(Step("write", step.path, step.offset, kept), names, files)
        return {name: files.get(name, b"") for name in names}


def _is_synced_by(step: Step, sync: Step) -> bool:
    """A folder's fsync makes names last, a file's its content."""
    about_names = step.kind in ("create", "unlink")
    return about_names if sync.path == "" else step.path == sync.path and not about_names


def _apply(step: Step, names: set[str], files: dict[str, bytes]) -> None:
    content = files.get(step.path, b"")
    if step.kind == "create":
        names.add(step.path)
    elif step.kind == "unlink":
        names.discard(step.path)
        files.pop(step.path, None)
    elif step.kind == "truncate":
        files[step.path] = content[: step.offset].ljust(step.offset, b"\0")
    elif step.data:
        head = content[: step.offset].ljust(step.offset, b"\0")
        files[step.path] = head + step.data + content[step.offset + len(step.data) :]
