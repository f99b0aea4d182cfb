"""What can be done with runs, and what the daemon tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.listing import with_titles
from gym_gui.models.run_table import before_in_queue
from gym_gui.models.words import is_evaluation, is_sweep
from gym_gui.services.sparklines import Sparklines
from gym_gui.services.tasks import timer
from gym_gui.ui.presenters.window import Labels, changes_for, machine_words
from gym_gui.ui.widgets.basics import open_path
from gym_gui.ui.widgets.hub_cards import PushCard
from mosaic.client import Client, RunRecord, train_config
from mosaic.client.configs import again_config
from mosaic.contract.errors import ConflictError, MosaicError
from mosaic.contract.outside import bytes_text
from mosaic.hub.account import require_account
from mosaic.hub.uploads import read_upload, start_upload

FIRST_RUN = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 250_000}
_LAST = "last_configs"
_USAGE_MS = 2000
_TOGETHER_MS = 600
"""Runs that end within so long are told of in one sentence."""
_KINDS = {"completed": "good", "failed": "bad", "timed_out": "bad", "cancelled": "info"}

_WORST = ("bad", "good", "info")


def submit_all(client: Client, configs: Sequence[Mapping[str, Any]]) -> list[RunRecord]:
    """Submit all configs or none: when one is refused, those before it are cancelled."""
    runs: list[RunRecord] = []
    try:
        for config in configs:
            runs.append(client.submit(config))
    except MosaicError:
        for run in runs:
            try:
                client.cancel(run.run_id, "another run of the same submission was refused")
            except ConflictError:
                continue
        raise
    return runs


class RunActions(QObject):
    """Pause, go on, cancel, train again, remove: for one run or for the seeds of a group."""

    queued = Signal(str)
    """The first of the runs that were queued just now."""
    written = Signal(str, object)
    """A `report`, a `plot` or an `export` is wanted of these runs."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context

    def do(self, name: str, run: RunRecord, meant: Sequence[RunRecord]) -> None:
        """Do what a button or an entry says: with `run`, or with all those that are meant."""
        named = {"run_id": run.run_id, "run_dir": run.run_dir}
        doing: dict[str, Callable[[], None]] = {
            "pause": lambda: self._each(meant, "EXEC", Client.pause),
            "go_on": lambda: self._each(meant, "PAUSE", Client.resume),
            "cancel": lambda: self._each(meant, None, Client.cancel, "requested in the window"),
            "first": lambda: self.start_next(meant),
            "again": lambda: self.again(meant),
            "remove": lambda: self.remove(meant),
            "evaluate": lambda: self._context.open_form("policy", named),
            "resume_training": lambda: self._context.open_form("resume", named),
            "change": lambda: self._change(run),
            "folder": lambda: open_path(Path(run.run_dir), self._context.notifications),
            "copy_id": lambda: self.copy_ids(meant),
            **dict.fromkeys(("report", "plot", "export"), lambda: self.written.emit(name, meant)),
        }
        doing[name]()

    def _change(self, run: RunRecord) -> None:
        """Open the form that would ask for the same."""
        purpose, prefill = ("sweep", {"sweep": run}) if is_sweep(run) else ("train", {"config": run.config})
        self._context.open_form(purpose, prefill)

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
        what = "The run is" if len(ids) == 1 else f"{len(ids)} runs are"

        def tell(freed: int) -> None:
            self._context.notifications.tell(f"{what} removed, {bytes_text(freed)} are free again.", "good")

        self._context.tasks.run(lambda: sum(map(link.remove, ids)), tell)

    def label(self, runs: Sequence[RunRecord], before: Labels, after: Labels) -> None:
        """Give runs another name, other tags or other notes."""
        link, changes = self._context.link, changes_for(runs, before, after)

        def work() -> None:
            for run_id, one in changes.items():
                link.client().label(run_id, one.name, one.tags, one.notes)

        self._context.tasks.run(work, lambda _: None, owner=self)

    def ask_push(self, run: RunRecord, card: PushCard) -> None:
        """Ask where the model of a run is to go, with the name that it had the last time."""
        self._context.tasks.run(
            lambda: read_upload(Path(run.run_dir)), lambda before: card.ask(run, before), owner=card
        )

    def push(self, run: RunRecord, to: str, private: bool) -> None:
        """Upload the model of a run, beside the window; its overview tells how that stands."""

        def work() -> None:
            require_account()
            start_upload(Path(run.run_dir), to, private)

        text = f"The model of {words.title_of(run)} is being uploaded to Hugging Face."
        self._context.tasks.run(work, lambda _: self._context.notifications.tell(text), owner=self)

    def again(self, runs: Sequence[RunRecord]) -> None:
        """Submit the same configurations as new runs."""
        self.submit([again_config(run.config, run.run_id) for run in runs])

    def train_again(self) -> None:
        """What was trained last from here, without a form; else the newest training that there is."""
        kept = self._context.settings.get(_LAST)
        own = (run for run in self._context.runs if not is_sweep(run) and not run.sweep)
        newest = next((run for run in own if not is_evaluation(run)), None)
        group = self._context.runs.group_of(newest.run_id) if newest else None
        if kept:
            self.submit(kept)
        elif group:
            self.again(list(group.runs.values()))

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
        if not is_evaluation(runs[0]) and not is_sweep(runs[0]):
            self._context.settings.set(_LAST, [again_config(run.config, run.run_id) for run in runs])
            self._context.tasks.run(self._context.settings.save, lambda _: None, owner=self)
        title = words.title_of(runs[0])
        what = f"{len(runs)} runs of {title} are queued" if len(runs) > 1 else f"{title} is queued"
        self._context.notifications.tell(f"{what}.", "good")
        self.queued.emit(runs[0].run_id)

    def copy_ids(self, runs: Sequence[RunRecord]) -> None:
        QGuiApplication.clipboard().setText("\n".join(run.run_id for run in runs))
        what = f"{runs[0].run_id} is" if len(runs) == 1 else f"{len(runs)} ids are"
        self._context.notifications.tell(f"{what} in the clipboard.")

    def _each(
        self, runs: Sequence[RunRecord], status: str | None, call: Callable[..., RunRecord], *why: str
    ) -> None:
        """Ask the daemon for something about each of these runs that lives, in this status or in any."""
        ids = [run.run_id for run in runs if not run.ended and status in (None, run.status)]
        link = self._context.link
        self._context.tasks.run(
            lambda: [call(link.client(), run_id, *why) for run_id in ids], lambda _: None, owner=self
        )


class News(QObject):
    """Keeps the book of runs, and says when one that was seen alive has ended."""

    usage = Signal(object)
    """The `machine_words`."""

    def __init__(self, context: Context, sparklines: Sparklines) -> None:
        super().__init__()
        self._context = context
        self._sparklines = sparklines
        self._timer = timer(self, _USAGE_MS, self._read_usage)
        self._timer.start()
        self._ended: list[RunRecord] = []
        self._telling = timer(self, _TOGETHER_MS, self._tell_ends, once=True)
        self._read_usage()

    def take(self, records: Sequence[RunRecord]) -> set[str]:
        """Take runs in; gives the groups that changed."""
        for run in records:
            before = self._context.runs.get(run.run_id)
            # Of trials the sweep tells.
            if before is not None and run.ended and not before.ended and not run.sweep:
                self._ended.append(run)
                self._telling.start()
            self._sparklines.take(run)
        return self._context.runs.update(records)

    def forget(self, run_ids: Sequence[str]) -> set[str]:
        self._sparklines.forget(run_ids)
        return self._context.runs.remove(run_ids)

    def again_words(self) -> str | None:
        """What `Train again` would train; None when it cannot know."""
        kept = self._context.settings.get("last_configs")
        if kept:
            asked = kept[0]["metadata"]["worker"]["config"]
            seeds = {one["metadata"]["worker"]["config"].get("seed") for one in kept}
            several = f", {len(seeds)} seeds" if len(seeds) > 1 else ""
            return f"{asked.get('algo')} on {asked.get('env_id')}{several}"
        return "The newest training" if len(self._context.runs) else None

    def close(self) -> None:
        self._timer.stop()
        self._telling.stop()

    def _tell_ends(self) -> None:
        ended, self._ended = self._ended, []
        worst = min(ended, key=lambda run: _WORST.index(_KINDS.get(run.outcome or "", "info")))
        text = self._ending(worst)
        if len(ended) > 1:
            counts = Counter(words.state_of(run).word.lower() for run in ended)
            told = ", ".join(f"{count} {state}" for state, count in counts.most_common())
            text = f"{len(ended)} runs ended: {told}"
        action = ("Show", lambda: self._context.select_run(worst.run_id))
        kind = _KINDS.get(worst.outcome or "", "info")
        self._context.notifications.tell(f"{text}.", kind, action, aside=True)

    def _ending(self, run: RunRecord) -> str:
        """How one run has ended, in words."""
        value = run.headline.get("mean_return")
        text = f"{words.title_of(run)} {words.state_of(run).word.lower()}"
        if run.outcome == "completed" and value is not None:
            what = "; the best trial has reached" if is_sweep(run) else " with a return of"
            text += f"{what} {words.number(value)}"
        elif run.outcome in ("failed", "timed_out") and run.reason:
            text += f": {with_titles(run.reason, self._context.runs.get).rstrip('.')}"
        return text

    def _read_usage(self) -> None:
        self._context.tasks.run(machine_words, self.usage.emit, lambda _: None, owner=self)
