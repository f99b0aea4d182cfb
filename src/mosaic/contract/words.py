"""Numbers, times and states as a person reads them, in the terminal and in the window."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

NONE = "–"
MINUS = "−"
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


class Standing(Protocol):
    """What stands somewhere: a run, or one of its state changes."""

    @property
    def status(self) -> str: ...

    @property
    def outcome(self) -> str | None: ...


def state(run: Standing) -> str:
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
            parts.append(_amount(amount, name))
        elif parts:
            break
    return " ".join(parts[:2])


def ago(then: float, now: float | None = None) -> str:
    """`now`, `12 s ago`, `3 min ago`, `5 days ago`."""
    passed = max(0, int((time.time() if now is None else now) - then))
    for name, size in _UNITS:
        if passed >= size:
            return f"{_amount(passed // size, name)} ago"
    return "now"


def _amount(number: int, unit: str) -> str:
    return count(number, unit) if unit == "day" else f"{number} {unit}"


def moment(at: float) -> str:
    """A point in time on the user's clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def short(number: float | None) -> str:
    """A return or another measured number; a dash when there is none yet."""
    if number is None:
        return NONE
    return f"{number:,.1f}" if abs(number) < 1e6 else f"{number:.3g}"


def measured(number: float | None) -> str:
    """A score: with two decimals where it is small enough for them to matter."""
    return short(number) if number is None or abs(number) >= 1000 else f"{number:.2f}"


def whole(number: float | None) -> str:
    """A count with separators; a dash when there is none yet."""
    return NONE if number is None else f"{number:,.0f}"


def percent(share: float | None) -> str:
    """A share of 1 as a percentage that is 100 only at the end."""
    return NONE if share is None else f"{int(max(0.0, share) * 100)} %"


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


def space_text(space: Mapping[str, Any], dtype: bool = False) -> str:
    """`box of 4 × 84 × 84`, with `dtype` also `(uint8)`; `discrete, 7 choices`, `dict of image, mission`."""
    kind = str(space["kind"].replace("_", " "))
    if "spaces" in space:
        parts = space["spaces"]
        names = parts if isinstance(parts, Mapping) else [one["kind"] for one in parts]
        return f"{kind} of {', '.join(names)}"
    if "n" in space:
        return f"{kind}, {space['n']} choices"
    shape = " × ".join(map(str, space.get("shape", ())))
    values = f" ({space['dtype']})" if dtype and space.get("dtype") else ""
    return f"{kind} of {shape}{values}" if shape else kind


def pictures_text(pictures: Mapping[str, Any], quote: str = "") -> str:
    """Whether there will be something to see, or what keeps it away and what to do."""
    if pictures["come"]:
        return "yes, while somebody looks"
    told = f"{'not known' if pictures['come'] is None else 'none'}: {pictures['reason']}"
    return f"{told}; run {quote}{pictures['install']}{quote}" if pictures["install"] else told


def curriculum_facts(stages: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> list[tuple[str, str]]:
    """A line for each stage of a curriculum: where it trains, and until when; or for each task to draw."""
    if isinstance(stages, Mapping):
        named = [(f"task {number}", str(task)) for number, task in enumerate(stages["tasks"], 1)]
        return [("curriculum", f"{stages['curriculum']} of Syllabus-RL"), *named]
    return [
        (f"stage {number}", f"{stage['env_id']} until {stage.get('condition', 'the end of the budget')}")
        for number, stage in enumerate(stages, 1)
    ]


def number(value: float | None) -> str:
    """A measured number in about four figures: `487.3`, `1,304`, `0.0121`; a dash when there is none."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-4:
        text = f"{value:.3g}"
    elif size >= 1000:
        text = f"{value:,.0f}"
    elif size >= 10:
        text = f"{value:.1f}"
    elif size >= 0.1 or size == 0:
        text = f"{value:.2f}"
    else:
        text = f"{value:.4f}"
    return text.replace("-", MINUS) if "e" not in text else text


def short_steps(count: float | None) -> str:
    """`812`, `370k`, `2.5M`."""
    if count is None:
        return NONE
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            scaled = count / size
            decimals = abs(scaled) < 10 and scaled % 1 >= 0.05
            return f"{scaled:.1f}{unit}" if decimals else f"{int(scaled)}{unit}"
    return f"{count:.0f}"


def seeds_text(seeds: Sequence[int | None]) -> str:
    """`seed 1`, `seeds 1–3`, `seeds 1, 4, 9`; empty when there is none."""
    known = sorted({seed for seed in seeds if seed is not None})
    if not known:
        return ""
    if len(known) == 1:
        return f"seed {known[0]}"
    if known[-1] - known[0] == len(known) - 1:
        return f"seeds {known[0]}–{known[-1]}"
    listed = ", ".join(map(str, known[:4]))
    return f"seeds {listed}{' …' if len(known) > 4 else ''}"
