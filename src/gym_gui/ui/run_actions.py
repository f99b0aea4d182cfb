"""What can be done with runs: each is a task, and tells how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.facts import is_evaluation
from gym_gui.models.labels import Labels, changes_for
from gym_gui.models.run_table import before_in_queue
from gym_gui.services.submitting import submit_all
from gym_gui.ui.widgets.opening import open_path
from mosaic.client import Client, RunRecord, train_config
from mosaic.client.configs import again_config
from mosaic.contract.outside import bytes_text

FIRST_RUN = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 250_000}
_LAST = "last_configs"


class RunActions(QObject):
    """Pause, go on, cancel, train again, remove: for one run or for the seeds of a group."""

    queued = Signal(str)
    """The first of the runs that were queued just now."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context

    def do(self, name: str, run: RunRecord, meant: Sequence[RunRecord]) -> None:
        """Do what a button or an entry says: with `run`, or with all those that are meant."""
        named = {"run_id": run.run_id, "run_dir": run.run_dir}
        doing: dict[str, Callable[[], None]] = {
            "pause": lambda: self.pause(meant),
            "go_on": lambda: self.go_on(meant),
            "cancel": lambda: self.cancel(meant),
            "first": lambda: self.start_next(meant),
            "again": lambda: self.again(meant),
            "remove": lambda: self.remove(meant),
            "evaluate": lambda: self._context.open_form("policy", named),
            "resume_training": lambda: self._context.open_form("resume", named),
            "change": lambda: self._context.open_form("train", {"config": run.config}),
            "folder": lambda: self.open_folder(run),
            "copy_id": lambda: self.copy_ids(meant),
        }
        doing[name]()

    def pause(self, runs: Sequence[RunRecord]) -> None:
        ids = [run.run_id for run in runs if run.status == "EXEC"]
        self._each(ids, lambda client, run_id: client.pause(run_id))

    def go_on(self, runs: Sequence[RunRecord]) -> None:
        ids = [run.run_id for run in runs if run.status == "PAUSE"]
        self._each(ids, lambda client, run_id: client.resume(run_id))

    def cancel(self, runs: Sequence[RunRecord]) -> None:
        ids = [run.run_id for run in runs if not run.ended]
        self._each(ids, lambda client, run_id: client.cancel(run_id, "asked for in the window"))

    def start_next(self, runs: Sequence[RunRecord]) -> None:
        """Put waiting runs before all others in the queue."""
        queue = self._context.runs.queue()
        ids = [run.run_id for run in runs]
        self.reorder(ids, next((run_id for run_id in queue if run_id not in ids), None))

    def reorder(self, moved: Sequence[str], before: str | None) -> None:
        """Put waiting runs right before another one, or at the end of the queue."""
        link, moves = self._context.link, before_in_queue(self._context.runs.queue(), moved, before)

        def work() -> None:
            for run_id, other in moves:
                link.client().reorder(run_id, before=other)

        self._context.tasks.run(work, lambda _: None, owner=self)

    def remove(self, runs: Sequence[RunRecord]) -> None:
        """Remove ended runs with all their files."""
        link, ids = self._context.link, [run.run_id for run in runs if run.ended]
        self._context.tasks.run(
            lambda: sum(map(link.remove, ids)), lambda freed: self._removed(len(ids), freed)
        )

    def label(self, runs: Sequence[RunRecord], before: Labels, after: Labels) -> None:
        """Give runs another name, other tags or other notes."""
        link, changes = self._context.link, changes_for(runs, before, after)

        def work() -> int:
            for one in changes:
                link.client().label(one.run_id, one.name, one.tags, one.notes)
            return len(changes)

        self._context.tasks.run(work, lambda _: None, owner=self)

    def again(self, runs: Sequence[RunRecord]) -> None:
        """Submit the same configurations as new runs."""
        self.submit([again_config(run.config, run.run_id) for run in runs])

    def train_again(self) -> None:
        """The last configuration that was trained, without a form."""
        configs = self.last_configs()
        if configs:
            self.submit(configs)

    def last_configs(self) -> list[dict[str, Any]]:
        """What was trained last from here; else the newest training that there is."""
        kept = self._context.settings.get(_LAST)
        if kept:
            return list(kept)
        newest = next((run for run in self._context.runs if not is_evaluation(run)), None)
        group = self._context.runs.group_of(newest.run_id) if newest else None
        return [again_config(run.config, run.run_id) for run in group.runs.values()] if group else []

    def train_first(self, failed: Callable[[Exception], object]) -> None:
        """The training of the empty window, with its picture on."""
        # Loading the catalog and looking up the environment take a moment.
        self._context.tasks.run(
            lambda: [train_config(**FIRST_RUN, extras={"fastlane_video_mode": "grid"})],  # type: ignore[arg-type]
            lambda configs: self.submit(configs, failed),
            failed,
            owner=self,
        )

    def submit(
        self, configs: Sequence[Mapping[str, Any]], failed: Callable[[Exception], object] | None = None
    ) -> None:
        """Queue runs, all or none, and show the first."""
        link = self._context.link
        self._context.tasks.run(lambda: submit_all(link.client(), configs), self.submitted, failed)

    def submitted(self, runs: Sequence[RunRecord]) -> None:
        """These runs were queued just now, here or by a form."""
        if not runs:
            return
        if not is_evaluation(runs[0]):
            self._context.settings.set(_LAST, [again_config(run.config, run.run_id) for run in runs])
            self._context.tasks.run(self._context.settings.save, lambda _: None, owner=self)
        title = words.title_of(runs[0])
        what = f"{len(runs)} runs of {title} are queued" if len(runs) > 1 else f"{title} is queued"
        self._context.notifications.tell(f"{what}.", "good")
        self.queued.emit(runs[0].run_id)

    def open_folder(self, run: RunRecord) -> None:
        open_path(Path(run.run_dir), self._context.notifications)

    def open_log(self) -> None:
        open_path(self._context.link.var / "logs" / "gym_gui.log", self._context.notifications)

    def copy_ids(self, runs: Sequence[RunRecord]) -> None:
        QGuiApplication.clipboard().setText("\n".join(run.run_id for run in runs))
        what = f"{runs[0].run_id} is" if len(runs) == 1 else f"{len(runs)} ids are"
        self._context.notifications.tell(f"{what} in the clipboard.")

    def _removed(self, count: int, freed: int) -> None:
        what = "The run is" if count == 1 else f"{count} runs are"
        self._context.notifications.tell(f"{what} removed, {bytes_text(freed)} are free again.", "good")

    def _each(self, ids: Sequence[str], call: Callable[[Client, str], RunRecord]) -> None:
        link = self._context.link
        self._context.tasks.run(
            lambda: [call(link.client(), run_id) for run_id in ids], lambda _: None, owner=self
        )
