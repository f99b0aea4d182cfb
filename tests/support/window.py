"""Driving the window in a test: waiting for what it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pytestqt.qtbot import QtBot

from gym_gui.app import Desktop
from gym_gui.models.words import state_of
from mosaic.client import RunRecord
from support.records import plain_record

PATIENCE_MS = 90_000
"""What takes a moment may take so long on a busy machine."""


class Driver:
    """A window on a daemon of the test's own."""

    def __init__(self, desktop: Desktop, qtbot: QtBot) -> None:
        self.desktop = desktop
        self.window = desktop.window
        self.qtbot = qtbot

    def until(self, condition: Callable[[], object], timeout: int = PATIENCE_MS) -> None:
        """Let the window work until `condition` holds."""
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=timeout)

    @property
    def run(self) -> RunRecord:
        """The run that is shown."""
        assert self.window.page.run is not None
        return self.window.page.run

    def until_state(self, *words: str) -> RunRecord:
        """Wait until the run that is shown is in one of these states."""
        self.until(lambda: self.window.page.run is not None and state_of(self.run).word in words)
        return self.run

    def submit(self, *configs: dict[str, Any]) -> RunRecord:
        """Submit configs as the window does, and wait until the first is shown."""
        before = len(self.window.context.runs)
        self.window.actions_on_runs.submit(configs)
        self.until(lambda: len(self.window.context.runs) == before + len(configs))
        self.until(lambda: self.window.page.run is not None)
        return self.run

    def told(self) -> list[str]:
        """What the notifications say now."""
        return [card.told.text for card in self.window.notification_area.cards]


def made_run(number: int, **changes: Any) -> RunRecord:
    """A record that no daemon has: run `number` of ppo on CartPole, completed."""
    asked = {
        "algo": changes.pop("algo", "ppo"),
        "env_id": changes.pop("env_id", "CartPole-v1"),
        "seed": changes.pop("seed", 1),
        "total_timesteps": changes.pop("total_timesteps", 1000 + number),
        "extras": changes.pop("extras", {}),
    }
    run_id = f"{number:026d}"
    record = plain_record(
        run_id,
        run_name=f"{asked['algo']}-{asked['env_id']}".lower(),
        outcome="completed",
        run_dir=f"/nowhere/{run_id}",
        submitted_at=1_000_000.0 + number * 1000,
        started_at=1_000_001.0 + number * 1000,
        ended_at=1_000_024.0 + number * 1000,
        exit_code=0,
        config={"metadata": {"worker": {"type": "cleanrl", "config": {**asked, "run_id": run_id}}}},
        headline={"step": 500_000, "mean_return": 487.25, "progress": 1.0},
    )
    return replace(record, **changes)


def live(run: RunRecord, status: str = "EXEC", **changes: Any) -> RunRecord:
    """The same run while it lives."""
    return replace(run, status=status, outcome=None, ended_at=None, **changes)


def ids(runs: Sequence[RunRecord]) -> list[str]:
    return [run.run_id for run in runs]
