"""Everything that can be done from the keyboard, and finding it by a few letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from gym_gui.models import words
from gym_gui.models.runs import RunBook
from gym_gui.models.words import ago, short_id, state_of, title_of
from mosaic.client import RunRecord


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
    Found("policy", "Evaluate a policy…", "Ctrl+E"),
    Found("resume", "Resume training…", "Ctrl+R"),
    Found("script", "Run a script…", "Ctrl+J"),
    Found("compare", "Compare the chosen runs", "Ctrl+D"),
    Found("filter", "Filter the runs", "Ctrl+F"),
    Found("table", "Show all runs in a table", "Ctrl+L"),
    Found("messages", "Show all messages", "Ctrl+M"),
    Found("theme", "Change between light and dark", "Ctrl+Shift+L"),
    Found("theme_system", "Follow the theme of the system", ""),
    Found("log", "Open the window's log", ""),
    Found("quit", "Close the window; runs go on", "Ctrl+Q"),
)
_MOST = 60
RUN_PREFIX = "run."
"""Begins the names of commands for the run that is shown."""


def commands_for_run(offers: Mapping[str, str], title: str) -> list[Found]:
    """What can be done with the run that is shown."""
    return [Found(f"{RUN_PREFIX}{name}", text, title) for name, text in offers.items()]


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
