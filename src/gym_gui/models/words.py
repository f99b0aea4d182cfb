"""Numbers, times and states as the window tells them; what the terminal tells alike is in the contract."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from mosaic.client import RunRecord
from mosaic.contract import words
from mosaic.contract.capabilities import NO_ENVIRONMENT
from mosaic.contract.phases import WAITING_FOR_SPACE
from mosaic.contract.run_filter import kind_text
from mosaic.contract.words import MINUS as MINUS
from mosaic.contract.words import NONE as NONE
from mosaic.contract.words import ago as ago
from mosaic.contract.words import number as number
from mosaic.contract.words import percent as percent
from mosaic.contract.words import seeds_text as seeds_text
from mosaic.contract.words import short_steps as short_steps
from mosaic.contract.words import whole
from mosaic.fastlane.layout import START_PHASES
from mosaic.sweeps import WORKER_TYPE as SWEEP

BEHIND = "waits behind "
"""How the reason of a run begins that has others before it in the queue."""


@dataclass(frozen=True)
class State:
    """Where a run stands: a word, and the role of its colour in the palette."""

    word: str
    role: str


_LIVE = {
    "INIT": State("Waiting", "warn"),
    "HSHK": State("Starting", "accent"),
    "RDY": State("Starting", "accent"),
    "EXEC": State("Running", "good"),
    "PAUSE": State("Paused", "paused"),
    "FAULT": State("Failed", "bad"),
}
_ENDED = {
    "completed": State("Completed", "dim"),
    "cancelled": State("Cancelled", "dim"),
    "timed_out": State("Timed out", "bad"),
    "failed": State("Failed", "bad"),
}
_UNKNOWN = State("Unknown", "dim")


def state_of(run: RunRecord) -> State:
    """The state of a run in a word and a colour."""
    if run.ended:
        return _ENDED.get(run.outcome or "", _UNKNOWN)
    if run.status == "INIT" and (run.reason or "").startswith("restart "):
        return State("Restarting", "warn")
    if start_phase(run):
        return State("Starting", "accent")
    if run.status == "EXEC" and run.headline.get("phase") == WAITING_FOR_SPACE:
        return State("Waiting for space", "warn")
    if stall_text(run):
        return State("Stalled", "bad")
    return _LIVE.get(run.status, _UNKNOWN)


def start_phase(run: RunRecord) -> str:
    """What a started run does before its first step: `importing`, `making environments`; else empty."""
    phase = str(run.headline.get("phase", ""))
    return phase if run.status == "EXEC" and phase in START_PHASES else ""


def stall_text(run: RunRecord) -> str:
    """What a run does that takes no step any more; empty for others."""
    stalled = run.status == "EXEC" and run.headline.get("phase") == "stalled"
    return str(run.headline["stall"]["text"]) if stalled else ""


steps = whole


def duration(seconds: float | None) -> str:
    """`0:06`, `12:34`, `1:02:03`, `3 days 2:00`."""
    if seconds is None:
        return NONE
    days, rest = divmod(int(seconds), 86_400)
    if days < 1:
        return words.clock(seconds)
    hours, minutes = divmod(rest // 60, 60)
    return f"{words.count(days, 'day')} {hours}:{minutes:02}"


def clock(at: float, now: float | None = None) -> str:
    """`14:02` today, `Mon 14:02` this week, else `12 Mar 14:02`."""
    then, today = time.localtime(at), time.localtime(time.time() if now is None else now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    age = (time.time() if now is None else now) - at
    return time.strftime("%a %H:%M" if age < 6 * 86400 else "%-d %b %H:%M", then)


def own_name(run: RunRecord) -> str:
    """The name that somebody gave the run; empty when it has the one that is made for every run."""
    if is_sweep(run):
        return ""
    asked = run.worker_config
    parts = [PurePath(str(asked.get("algo") or "")).stem, str(asked.get("env_id") or "")]
    made = "-".join(part for part in parts if part not in ("", NO_ENVIRONMENT))
    usual = made.replace("/", "-").replace(":", "-").lower()
    return "" if run.run_name.lower() == usual else run.run_name


def tags_text(tags: Sequence[str]) -> str:
    """`#night #sweep`."""
    return " ".join(f"#{tag}" for tag in tags)


def title_of(run: RunRecord) -> str:
    """The run's own name, else what it is."""
    return own_name(run) or kind_of(run)


def kind_of(run: RunRecord) -> str:
    """`ppo · CartPole-v1`; an evaluation says so."""
    asked = run.worker_config
    return kind_text(asked.get("algo"), asked.get("env_id"), mode_of(run), run.run_name)


def mode_of(run: RunRecord) -> str:
    """What the run does: `train`, `resume_training`, `policy_eval` or another word of its worker."""
    return run.mode


def is_evaluation(run: RunRecord) -> bool:
    """Whether the run plays a policy and trains none."""
    return mode_of(run) == "policy_eval"


def is_sweep(run: RunRecord) -> bool:
    """Whether the run searches for parameters, and its trials are runs of their own."""
    return run.worker_type == SWEEP


def trial_number(run: RunRecord) -> int | None:
    """Which trial of its sweep a run belongs to."""
    told = run.config.get("metadata", {}).get("ui", {}).get("trial")
    return told if isinstance(told, int) else None


def short_id(run_id: str) -> str:
    """`01KATF46…TX33Z`."""
    return f"{run_id[:8]}…{run_id[-5:]}" if len(run_id) > 16 else run_id


def behind(ahead: int) -> str:
    """Why a run waits that has so many before it, in the words of the daemon."""
    return f"{BEHIND}{words.count(ahead, 'run')} in the queue"


def sentence(text: str) -> str:
    """The same with a capital letter."""
    return text[:1].upper() + text[1:]
