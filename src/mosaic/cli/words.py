"""Numbers, times and states as a person reads them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.cli.live.board import Row
    from mosaic.client import HistoryEntry, RunRecord


def program() -> str:
    """`mosaic` as the user can type it from where they are: `mosaic`, `./mosaic` or a path."""
    launcher = Path(__file__).resolve().parents[3] / "mosaic"
    if Path(sys.argv[0]).name == "mosaic" or not launcher.is_file():
        return "mosaic"
    relative = os.path.relpath(launcher)
    if relative.startswith(".."):
        return min(relative, str(launcher), key=len)
    return f"./{relative}"


def as_typed(sentence: str) -> str:
    """The sentence with our commands as the user can type them; the daemon does not know from where."""
    return re.sub(r"`(?:\./)?mosaic ", lambda _: f"`{program()} ", sentence)


STATES = {
    "INIT": "waiting",
    "HSHK": "starting",
    "RDY": "starting",
    "EXEC": "training",
    "PAUSE": "paused",
    "FAULT": "failed",
    "TERM": "ended",
}
STATES_BY_NAME: dict[str, tuple[tuple[str, ...], str | None]] = {
    "waiting": (("INIT",), None),
    "starting": (("HSHK", "RDY"), None),
    "training": (("EXEC",), None),
    "paused": (("PAUSE",), None),
    "ended": (("TERM",), None),
    "completed": (("TERM",), "completed"),
    "cancelled": (("TERM",), "cancelled"),
    "timed_out": (("TERM",), "timed_out"),
    "failed": (("TERM", "FAULT"), "failed"),
}
"""What a person may type, and the statuses and the outcome that it stands for; no outcome stands for any."""
OUTCOMES = {"completed": "completed", "cancelled": "cancelled", "timed_out": "timed out", "failed": "failed"}
_STYLES = {
    "waiting": "dim",
    "starting": "cyan",
    "restarting": "yellow",
    "training": "bold cyan",
    "evaluating": "bold cyan",
    "paused": "yellow",
    "waiting for space": "yellow",
    "stalled": "red",
    "completed": "green",
    "cancelled": "yellow",
    "timed out": "red",
    "failed": "red",
}
_UNITS = (("day", 86400), ("h", 3600), ("min", 60), ("s", 1))


def state(run: RunRecord | HistoryEntry | Row) -> str:
    """Where a run stands, or what it became, in words."""
    return OUTCOMES.get(run.outcome or "", STATES.get(run.status, run.status.lower()))


def count(amount: int, name: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{amount} {name}{'' if amount == 1 else 's'}"


def waiting(reason: str | None) -> str:
    """The state of a run that waits, with what it waits for: `waiting for 1 more CPU`."""
    if not reason:
        return "waiting"
    return f"waiting {reason.removeprefix('waits ')}" if reason.startswith("waits ") else f"waiting: {reason}"


def restart(reason: str | None) -> str | None:
    """`restart 1 of 2 after: …` when that is why a run is where it is."""
    return reason if reason is not None and reason.startswith("restart ") else None


def style(word: str) -> str:
    """The colour of a state."""
    return _STYLES.get(word, "")


def clock(seconds: float) -> str:
    """`0:07`, `12:34` or `1:02:03`."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def duration(seconds: float) -> str:
    """`0.8 s`, `34 s`, `2 min 5 s`, `1 h 12 min`: two units at most."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    left = round(seconds)
    parts: list[str] = []
    for name, size in _UNITS:
        amount, left = divmod(left, size)
        if amount:
            plural = "s" if name == "day" and amount > 1 else ""
            parts.append(f"{amount} {name}{plural}")
        elif parts:
            break
    return " ".join(parts[:2])


def age(then: float) -> str:
    """`12 s ago`, `3 min ago`, `5 days ago`."""
    passed = max(0, int(time.time() - then))
    for name, size in _UNITS:
        if passed >= size:
            amount = passed // size
            return f"{amount} {name}{'s' if name == 'day' and amount > 1 else ''} ago"
    return "now"


def moment(at: float) -> str:
    """A point in time on the user's clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def short(number: float | None) -> str:
    """A return or another measured number; a dash when there is none yet."""
    if number is None:
        return "–"
    return f"{number:,.1f}" if abs(number) < 1e6 else f"{number:.3g}"


def measured(number: float | None) -> str:
    """A score: with two decimals where it is small enough for them to matter."""
    return short(number) if number is None or abs(number) >= 1000 else f"{number:.2f}"


def whole(number: float | None) -> str:
    """A count with separators; a dash when there is none yet."""
    return "–" if number is None else f"{number:,.0f}"


def percent(share: float | None) -> str:
    """A share of 1 as a percentage that is 100 only at the end."""
    return "–" if share is None else f"{int(max(0.0, share) * 100)} %"


def shares(parts: Mapping[str, Any]) -> str:
    """Where time goes, largest first: `update 52 %, env 31 %`."""
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in ordered if share >= 0.005)


def progress(head: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How far a run is and what it earns, each with its label; nothing before its first step."""
    if not head.get("step"):
        return []
    total = f" of {whole(head['total_steps'])}" if head.get("total_steps") else ""
    returns = f"mean {short(head.get('mean_return'))}   last {short(head.get('last_return'))}"
    return [
        ("steps", f"{whole(head['step'])}{total}   {whole(head.get('sps'))} per second"),
        ("return", f"{returns}   {whole(head.get('episodes'))} episodes"),
    ]


def phase(told: Mapping[str, Any] | None) -> str:
    """Where a script is: `2 of 3: rooms with a door`; empty when it has told nothing."""
    if not told:
        return ""
    total = f" of {told['of']}" if told.get("of") else ""
    return f"{told['number']}{total}" + (f": {told['text']}" if told.get("text") else "")


def evaluation(headline: Mapping[str, Any]) -> str:
    """How far an evaluation is: `150 of 1,000 episodes`; empty for a run that trains."""
    told = headline.get("evaluation")
    if not told:
        return ""
    total = f" of {whole(told['target_episodes'])}" if told.get("target_episodes") else ""
    return f"{whole(headline.get('episodes'))}{total} episodes"


def stage(told: Mapping[str, Any] | None) -> str:
    """Where a run is in its curriculum: `2 of 3: MiniGrid-DoorKey-6x6-v0`; empty when it has none."""
    return f"{told['stage']} of {told['stages']}: {told['env_id']}" if told else ""


def place(path: str | Path) -> str:
    """A path as short as it can be typed from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def unique_prefixes(ids: list[str], least: int = 10) -> dict[str, str]:
    """Each id cut to the length at which all differ."""
    longest = max(map(len, ids), default=0)
    lengths = range(least, longest)
    length = next((n for n in lengths if len({one[:n] for one in ids}) == len(set(ids))), longest)
    return {one: one[:length] for one in ids}


def with_short_ids(text: str, ids: Mapping[str, str]) -> str:
    """A sentence in which each id is as short as in the table beside it."""
    for long, cut in ids.items():
        text = text.replace(long, cut)
    return text
