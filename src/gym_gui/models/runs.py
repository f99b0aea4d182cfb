"""All runs that the window knows, newest first, with the seeds of one configuration together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gym_gui.models.filters import RunFilter, search_text
from gym_gui.models.words import BEHIND, behind, is_sweep
from mosaic.client import RunRecord
from mosaic.client.configs import settings_of

_TOGETHER_SECONDS = 60.0
"""Runs of one configuration that were submitted within so long of each other belong together."""


@dataclass
class RunGroup:
    """Runs that differ in their seed only and were submitted together; most groups are of one run.

    A sweep and its trials are a group of another kind.
    """

    key: str
    """The id of the run that was submitted first; it stays while the group lives."""
    config: str
    runs: dict[str, RunRecord] = field(default_factory=dict)
    """By id, in the order of their seeds."""
    is_sweep: bool = False
    """Whether it is a sweep, whose id is the key, with its trials."""

    @property
    def seeds(self) -> list[int | None]:
        return [run.worker_config.get("seed") for run in self.runs.values()]

    @property
    def first(self) -> RunRecord:
        """The run that stands for the group: one that lives before one that has ended, or the sweep."""
        if self.is_sweep and self.key in self.runs:
            return self.runs[self.key]
        return next((run for run in self.runs.values() if not run.ended), next(iter(self.runs.values())))

    @property
    def told(self) -> list[RunRecord]:
        """The runs that the group's row tells of: all of them, or the sweep alone where it is known."""
        return [self.first] if self.is_sweep and self.key in self.runs else list(self.runs.values())

    @property
    def within(self) -> list[str]:
        """The runs that have rows of their own when the group is opened; of a sweep newer trials first."""
        if self.is_sweep:
            return sorted(self.runs.keys() - {self.key}, reverse=True)
        return list(self.runs) if len(self.runs) > 1 else []

    def takes(self, run: RunRecord) -> bool:
        """Whether a new run of the same configuration belongs here."""
        newest = max(one.submitted_at for one in self.runs.values())
        near = abs(run.submitted_at - newest) <= _TOGETHER_SECONDS
        return near and run.worker_config.get("seed") not in self.seeds

    def add(self, run: RunRecord) -> None:
        self.runs[run.run_id] = run
        if self.is_sweep:
            return
        self.runs = dict(sorted(self.runs.items(), key=lambda item: _seed_order(item[1])))


class RunBook:
    """The runs by id, and their groups. It knows no Qt and asks nobody."""

    def __init__(self) -> None:
        self._groups: dict[str, RunGroup] = {}
        """By key, newest last."""
        self._group_of: dict[str, str] = {}
        self._newest_of_config: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._defaults: dict[str, Mapping[str, Any]] = {}
        self._queue: dict[str, tuple[int, float, str]] = {}
        """What decides the place of each run that waits."""
        self._ordered = True
        self.whole_queue = True
        """Whether every run that waits is known."""

    def __len__(self) -> int:
        return len(self._group_of)

    def __iter__(self) -> Iterator[RunRecord]:
        """Every run, those of the newest group first."""
        return (run for group in reversed(self._groups.values()) for run in group.runs.values())

    def update(self, records: Iterable[RunRecord]) -> set[str]:
        """Take in new and changed runs; gives the keys of the groups that changed."""
        changed = set()
        queue = dict(self._queue)
        for run in sorted(records, key=lambda run: (run.submitted_at, run.run_id)):
            self._take_place(run)
            key = self._group_of.get(run.run_id)
            if key is None:
                key = self._place(run)
            else:
                before, self._groups[key].runs[run.run_id] = self._groups[key].runs[run.run_id], run
                if _labels(before) != _labels(run):
                    self._texts[run.run_id] = search_text(run)
            changed.add(key)
        self._keep_order()
        return changed if queue == self._queue else changed | self._count_queue()

    def queue(self) -> list[str]:
        """The runs that wait, the first to start first."""
        return sorted(self._queue, key=self._queue.__getitem__)

    def _take_place(self, run: RunRecord) -> None:
        if run.status == "INIT":
            self._queue[run.run_id] = (-run.priority, run.place, run.run_id)
        else:
            self._queue.pop(run.run_id, None)

    def _count_queue(self) -> set[str]:
        """Say anew how many runs each waits behind: the daemon tells it when it is asked, and not again."""
        changed: set[str] = set()
        for ahead, run_id in enumerate(self.queue() if self.whole_queue else ()):
            group = self._groups[self._group_of[run_id]]
            run = group.runs[run_id]
            if ahead and (run.reason or "").startswith(BEHIND) and run.reason != behind(ahead):
                group.runs[run_id] = replace(run, reason=behind(ahead))
                changed.add(group.key)
        return changed

    def remove(self, run_ids: Iterable[str]) -> set[str]:
        """Forget runs; gives the keys of their groups, some of which are gone now."""
        changed = set()
        for run_id in run_ids:
            key = self._group_of.pop(run_id, None)
            if key is None:
                continue
            changed.add(key)
            self._queue.pop(run_id, None)
            self._settings.pop(run_id, None)
            del self._groups[key].runs[run_id], self._texts[run_id]
            if not self._groups[key].runs:
                config = self._groups.pop(key).config
                if self._newest_of_config[config] == key:
                    del self._newest_of_config[config]
        return changed

    def get(self, run_id: str) -> RunRecord | None:
        group = self.group_of(run_id)
        return group.runs.get(run_id) if group else None

    def group_of(self, run_id: str) -> RunGroup | None:
        """The group that a run is in."""
        return self._groups.get(self._group_of.get(run_id, ""))

    def is_default(self, run: RunRecord, name: str) -> bool:
        """Whether a setting of a run is that of everybody who asks for nothing."""
        usual = self._defaults.get(str(run.worker_config.get("algo")), {})
        return name in usual and usual[name] == self.settings(run).get(name)

    def text_of(self, run_id: str) -> str:
        """What words may find of a run."""
        return self._texts.get(run_id, "")

    def group(self, key: str) -> RunGroup | None:
        return self._groups.get(key)

    def group_keys(self) -> list[str]:
        """The keys of all groups, newest first."""
        return list(reversed(self._groups))

    def finds(self, wanted: RunFilter, run: RunRecord) -> bool:
        """Whether the conditions of a filter hold for a run of the book."""
        return wanted.finds(run, self._texts[run.run_id], lambda: self.settings(run))

    def settings(self, run: RunRecord) -> Mapping[str, Any]:
        """What decides what a run learns, by name: what was asked for, and the defaults of its algorithm."""
        known = self._settings.get(run.run_id)
        if known is None:
            usual = self._defaults.get(str(run.worker_config.get("algo")), {})
            known = self._settings[run.run_id] = {**usual, **settings_of(run)}
        return known

    def unknown_algorithms(self, runs: Iterable[RunRecord]) -> list[RunRecord]:
        """Of these runs one of each algorithm whose defaults were never told."""
        first = {str(run.worker_config.get("algo")): run for run in runs}
        return [run for algo, run in first.items() if algo not in self._defaults]

    def set_defaults(self, defaults: Mapping[str, Mapping[str, Any]]) -> None:
        """The defaults of some algorithms' parameters."""
        self._defaults |= defaults
        self._settings.clear()

    def _place(self, run: RunRecord) -> str:
        sweep = run.run_id if is_sweep(run) else run.sweep
        config = f"sweep {sweep}" if sweep else _config_key(run)
        known = self._groups.get(self._newest_of_config.get(config, ""))
        if known is None or not (sweep or known.takes(run)):
            key = sweep or run.run_id
            self._ordered = self._ordered and key > next(reversed(self._groups), "")
            known = self._groups[key] = RunGroup(key, config, is_sweep=bool(sweep))
            self._newest_of_config[config] = key
        known.add(run)
        self._group_of[run.run_id] = known.key
        self._texts[run.run_id] = search_text(run)
        return known.key

    def _keep_order(self) -> None:
        """Groups stand in the order of their keys, which is that of time; late ones are put in place."""
        if not self._ordered:
            self._groups = dict(sorted(self._groups.items()))
            self._ordered = True


def _labels(run: RunRecord) -> tuple[object, ...]:
    return run.run_name, run.tags, run.notes


def _seed_order(run: RunRecord) -> tuple[float, float]:
    seed = run.worker_config.get("seed")
    return float("inf") if seed is None else float(seed), run.submitted_at


def _config_key(run: RunRecord) -> str:
    """The configuration without what differs from seed to seed."""
    metadata: Mapping[str, Any] = run.config.get("metadata", {})
    worker = dict(metadata.get("worker", {}))
    asked = {
        name: value for name, value in worker.get("config", {}).items() if name not in ("seed", "run_id")
    }
    whole = {**run.config, "metadata": {"worker": {**worker, "config": asked}}}
    return json.dumps(whole, sort_keys=True).replace(run.run_id, "")
