"""What the window says around a run: its header, its labels, the bottom bar, the empty middle, commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import psutil

from gym_gui.models import words
from gym_gui.models.listing import Finder, overall_state, reason_text, shared_tags
from gym_gui.models.run_files import RunFacts
from gym_gui.models.runs import RunBook
from gym_gui.models.words import State, ago, is_evaluation, is_sweep, short_id, state_of, title_of
from mosaic.client import HealthRecord, RunRecord
from mosaic.contract.outside import bytes_text

_MOST_SEEDS = 8
_REASON = 56
"""So many letters of a reason stand in the bar; all of it is in the tooltip, and in the middle."""
_MOST = 60


@dataclass(frozen=True)
class Doable:
    """For how many of some runs each thing makes sense."""

    pausing: str | None
    """`Pause` or `Resume`; None when neither makes sense."""
    pauses: int
    cancels: int
    removes: int
    waits: int
    """How many of those that can be cancelled have not begun."""


def doable_with(runs: Sequence[RunRecord]) -> Doable:
    """What can be done with these runs."""
    statuses = [run.status for run in runs]
    pausing = "Pause" if "EXEC" in statuses else "Resume" if "PAUSE" in statuses else None
    ended = sum(run.ended for run in runs)
    pauses = statuses.count("EXEC" if pausing == "Pause" else "PAUSE")
    return Doable(pausing, pauses, len(runs) - ended, ended, statuses.count("INIT"))


def for_all(word: str, count: int) -> str:
    """`Cancel`, or `Cancel 3 runs`."""
    return f"{word} {count:,} runs" if count > 1 else word


@dataclass(frozen=True)
class HeaderWords:
    """The header of one run, or of all seeds of a configuration together."""

    title: str
    state: State
    meta: str
    """Seed, since when, id."""
    labels: str
    """Tags and notes."""
    reason: str
    can: Doable
    plays: bool
    """Whether it is a training, whose policy can be evaluated once there is one."""
    can_evaluate: bool
    can_resume_training: bool
    seeds: tuple[tuple[str, str], ...]
    """For a group of several: id and seed of each run. The list has them where they are too many."""
    count: int
    """How many runs the buttons are for."""


def header_words(
    run: RunRecord,
    meant: Sequence[RunRecord],
    group: Sequence[RunRecord],
    marked: bool,
    facts: RunFacts,
    find: Finder,
) -> HeaderWords:
    """The header for `run`. The buttons are for those `meant`: it, its group, or all that are `marked`."""
    shown = [run] if marked else meant
    state = overall_state(shown)
    seeds = words.seeds_text([one.worker_config.get("seed") for one in shown])
    chosen = f"{len(meant)} runs selected" if marked else ""
    kind = words.kind_of(run) if words.own_name(run) else ""
    meta = (chosen, kind, seeds, _since(run), words.short_id(run.run_id))
    can = doable_with(meant)
    return HeaderWords(
        title=title_of(run),
        state=state,
        meta=" · ".join(filter(None, meta)),
        # In one line: notes may have a hundred.
        labels="   ".join(filter(None, (words.tags_text(run.tags), " ".join(run.notes.split())))),
        reason=reason_text(shown, state, find),
        # Of a group of which some still live, those that have ended are not removed by its buttons.
        can=can if marked or not can.cancels else replace(can, removes=0),
        plays=not is_evaluation(run) and not is_sweep(run),
        can_evaluate=can_evaluate(run, facts),
        can_resume_training=can_resume(run, facts),
        seeds=tuple((one.run_id, _seed(one)) for one in group) if 1 < len(group) <= _MOST_SEEDS else (),
        count=len(meant),
    )


def can_evaluate(run: RunRecord, facts: RunFacts) -> bool:
    """Whether the run has a policy of its own to play."""
    return facts.has_policy and not is_evaluation(run)


def can_resume(run: RunRecord, facts: RunFacts) -> bool:
    """Whether a training may go on from what the run has left."""
    return can_evaluate(run, facts) and run.ended


def _seed(run: RunRecord) -> str:
    seed = run.worker_config.get("seed")
    return words.NONE if seed is None else str(seed)


def _since(run: RunRecord) -> str:
    if run.ended and run.ended_at and run.started_at:
        took = words.duration(run.ended_at - run.started_at)
        return f"ended {words.clock(run.ended_at)} after {took}"
    if run.started_at:
        return f"started {words.clock(run.started_at)}"
    return f"submitted {words.clock(run.submitted_at)}"


def empty_words(state: str, reason: str, listed: bool, any_runs: bool) -> tuple[str, str, bool]:
    """A title, what it means, and whether a first run is offered.

    For a daemon in `state`; `listed` says whether its runs are known, `any_runs` whether it has any.
    """
    if state == "unreachable":
        again = "Trying again every few seconds; started runs continue without it."
        return "The daemon cannot be reached", f"{reason} {again}", False
    if not listed:
        return "Connecting to the daemon", reason or "It is started if it is not running.", False
    if any_runs:
        return "No run is chosen", "Choose a run on the left to see it.", False
    return (
        "Train your first agent",
        "One click trains PPO on CartPole, with its picture from the first seconds. "
        "Everything else is in the form: algorithms, environments, seeds, curricula.",
        True,
    )


def daemon_words(state: str, reason: str) -> tuple[str, str, str]:
    """Whether the daemon is there: a few words, all of them, and the role of their colour."""
    if state == "alive":
        return "Daemon on this machine", "", "good"
    if state == "connecting":
        return "Daemon restarting…" if reason else "Connecting to the daemon…", reason, "warn"
    first = reason.split(". ")[0].rstrip(".")
    short = first if len(first) <= _REASON else f"{first[:_REASON].rstrip()}…"
    return f"Daemon unreachable: {short}" if short else "Daemon unreachable", reason, "bad"


def queue_words(health: HealthRecord) -> str:
    """`Queue 2`, or that nothing waits."""
    return f"Queue {health.waiting_runs}" if health.waiting_runs else "Queue empty"


def room_words(health: HealthRecord) -> str:
    """The first problem, else the room on the disk."""
    return health.problems[0] if health.problems else f"{bytes_text(health.disk_free_bytes)} free"


def machine_words() -> tuple[str, str, str]:
    """CPU since this was last asked, memory and GPU; in a task, as a GPU's driver may take its time."""
    memory = psutil.virtual_memory()
    used, total = (memory.total - memory.available) / 1e9, memory.total / 1e9
    loads = ", ".join(f"{load * 100:.0f} %" for load in _gpu_loads())
    gpu = f"GPU {loads}" if loads else "No GPU"
    return f"CPU {psutil.cpu_percent():.0f} %", f"Memory {used:.1f} of {total:.0f} GB", gpu


def _gpu_loads() -> list[float]:
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(at) for at in range(nvml.nvmlDeviceGetCount())]
        return [nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100 for handle in handles]
    except nvml.NVMLError:
        return []


@cache
def _nvml() -> Any:
    """The library of the driver; None where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return None
    return pynvml


@dataclass(frozen=True)
class Labels:
    """What people call one run or several; None where several differ, or where a run keeps its own."""

    name: str | None = ""
    tags: tuple[str, ...] | None = ()
    """Those that all of them have."""
    notes: str | None = ""

    @classmethod
    def of_texts(cls, name: str, tags: str, notes: str, before: Labels) -> Labels:
        """What stands in the fields now; where several differ an empty field leaves each its own."""
        split = (tag.strip().removeprefix("#") for tag in tags.split(","))
        return cls(
            # A run always has a name: without one it keeps that which it has.
            name.strip() or before.name,
            tuple(dict.fromkeys(filter(None, split))),
            None if before.notes is None and not notes.strip() else notes.strip(),
        )


def shared_labels(runs: Sequence[RunRecord]) -> Labels:
    """What the runs have in common."""
    names, notes = {run.run_name for run in runs}, {run.notes for run in runs}
    return Labels(
        names.pop() if len(names) == 1 else None,
        tuple(shared_tags(runs)),
        notes.pop() if len(notes) == 1 else None,
    )


def changes_for(runs: Sequence[RunRecord], before: Labels, after: Labels) -> dict[str, Labels]:
    """What each run gets, by its id. Tags that are not shared by all stay where they are."""
    shared, wanted = before.tags or (), after.tags or ()
    made = {}
    for run in runs:
        tags = tuple(dict.fromkeys([*(tag for tag in run.tags if tag not in shared), *wanted]))
        made[run.run_id] = Labels(
            after.name if after.name != before.name else None,
            tags if wanted != shared and list(tags) != run.tags else None,
            after.notes if after.notes != before.notes else None,
        )
    return {run_id: one for run_id, one in made.items() if one != Labels(None, None, None)}


@dataclass(frozen=True)
class Found:
    """A line of the finder: a command, or a run."""

    name: str
    title: str
    hint: str
    """A shortcut, or what tells a run from others."""
    is_run: bool = False


COMMANDS = (
    Found("train", "Train…", "Ctrl+T"),
    Found("again", "Train again", "Ctrl+Shift+T"),
    Found("sweep", "Sweep parameters…", ""),
    Found("policy", "Evaluate a policy…", "Ctrl+E"),
    Found("resume", "Resume training…", "Ctrl+R"),
    Found("script", "Run a script…", "Ctrl+J"),
    Found("hand", "Play an environment by hand…", "Ctrl+H"),
    Found("pull", "Get a model from Hugging Face…", ""),
    Found("import", "Import runs…", ""),
    Found("compare", "Compare the selected runs", "Ctrl+D"),
    Found("filter", "Filter the runs", "Ctrl+F"),
    Found("table", "Show all runs in a table", "Ctrl+L"),
    Found("messages", "Show all messages", "Ctrl+M"),
    Found("theme", "Switch between light and dark", "Ctrl+Shift+L"),
    Found("theme_system", "Use the theme of the system", ""),
    Found("log", "Open the window's log", ""),
    Found("quit", "Close the window; runs continue", "Ctrl+Q"),
)


def found_by(text: str, book: RunBook, commands: Sequence[Found] = COMMANDS) -> list[Found]:
    """The commands and runs in which every word is found: commands first, then runs, newest first."""
    wanted = text.lower().split()
    lines = [one for one in commands if all(word in one.title.lower() for word in wanted)]
    runs = (run for run in book if all(word in book.text_of(run.run_id) for word in wanted))
    return [*lines, *map(run_line, islice(runs, _MOST))]


def run_line(run: RunRecord) -> Found:
    seed = run.worker_config.get("seed")
    kind = words.kind_of(run) if words.own_name(run) else ""
    parts = (kind, state_of(run).word, f"seed {seed}" if seed is not None else "", ago(run.submitted_at))
    hint = " · ".join(filter(None, (*parts, short_id(run.run_id))))
    return Found(run.run_id, title_of(run), hint, is_run=True)
