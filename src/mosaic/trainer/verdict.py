"""What an ended supervisor means for its run."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from mosaic.contract.events import EventKind, LifecycleEvent
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.trainer.rows import RunRow

_TAIL_BYTES = 4096


@dataclass(frozen=True)
class Verdict:
    """The state an ended run goes to. `status` is TERM, or FAULT with the cause as the reason."""

    status: RunStatus
    outcome: Outcome | None
    reason: str | None
    exit_code: int | None
    clean: bool
    """Whether the supervisor ended its process tree itself."""


def judge(run: RunRow, final: LifecycleEvent | None, code: int | None, stderr: Path) -> Verdict:
    """The verdict from the last event, the supervisor's exit code (if we are its parent) and its stderr."""
    if final is None:
        if run.stop_outcome is not None:
            return Verdict(RunStatus.TERM, run.stop_outcome, run.stop_reason, code, clean=False)
        return Verdict(RunStatus.FAULT, None, _gone(code, stderr), code, clean=False)
    exit_code = final.payload.get("exit_code", code)
    if final.event == EventKind.RUN_COMPLETED and code in (0, None) and run.status == RunStatus.EXEC:
        return Verdict(RunStatus.TERM, Outcome.COMPLETED, None, exit_code, clean=True)
    if final.event == EventKind.RUN_CANCELLED or run.stop_outcome is not None:
        outcome = run.stop_outcome or Outcome.CANCELLED
        reason = run.stop_reason or "the supervisor was asked to end by a signal"
        return Verdict(RunStatus.TERM, outcome, reason, exit_code, clean=True)
    if final.event == EventKind.RUN_FAILED:
        cause = str(final.payload.get("cause", "the worker gave no cause"))
        return Verdict(RunStatus.FAULT, None, cause, exit_code, clean=True)
    return Verdict(
        RunStatus.FAULT, None, f"the worker said completed, but {_how(code)}", exit_code, clean=True
    )


def _gone(code: int | None, stderr: Path) -> str:
    lines = _tail(stderr)
    last = f": {' | '.join(lines)}" if lines else ""
    return f"the supervisor ended without a word ({_how(code)}){last}"


def _how(code: int | None) -> str:
    if code is None:
        return "while no daemon was watching"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _tail(path: Path, lines: int = 3) -> list[str]:
    """The last lines of a log that say something."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]
