"""A sweep at work: it keeps trials running until the budget is spent, tells Optuna what became of each, and
finds all of them again after any crash.

What a crash may interrupt is done in this order. A trial is in the storage, with all its parameters, before a
run is submitted for it. A run is submitted under a name made of sweep, trial, environment and seed, for which
the daemon makes one run, however often it is asked. That a trial is pruned is noted before its runs are
cancelled. How a trial has ended is told once its runs have, and a trial that was told is not told again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from mosaic.client import Client, HistoryEntry
from mosaic.contract.errors import MosaicError, StorageError, UnavailableError, UserError
from mosaic.contract.fsm import RunStatus
from mosaic.sweeps.space import ALGO, params_for
from mosaic.sweeps.spec import SweepSpec, Template
from mosaic.sweeps.study import COMPLETE, ENDED, FAILED, PRUNED, RUNNING, StudyWriter, Trial
from mosaic.sweeps.trials import Flight, TrialRun, TrialRuns, wait_for_news

if TYPE_CHECKING:
    from mosaic.sweeps.benchmark import Cells
    from mosaic.sweeps.generations import Generations
    from mosaic.sweeps.search import Search

MOST_FAILURES = 10
"""So many failed trials in a row end a sweep."""
LOOK_SECONDS = 1.0
"""How often the curves of trials that may be pruned are read."""
IDLE_LOOK_SECONDS = 10.0
"""The same where nothing depends on it but the picture that people see."""
_TICK_SECONDS = 15.0
_AWAY_SECONDS = 2.0
_BY_SWEEP = "its sweep was cancelled"
_ANOTHER = "another run of its trial has ended"


@dataclass(frozen=True)
class Ending:
    """How a sweep ended: `completed`, `cancelled`, or `failed` with the cause."""

    status: str
    cause: str = ""


class Wishes:
    """What others want of the sweep: signals and the daemon write it, the engine reads it."""

    def __init__(self) -> None:
        self.news: SimpleQueue[Any] = SimpleQueue()
        self.cancelled = False
        self.paused = False

    def cancel(self) -> None:
        self.cancelled = True
        self.news.put(None)

    def pause(self, wanted: bool) -> None:
        self.paused = wanted
        self.news.put(None)


class Engine:
    """One sweep, from start or restart to its end."""

    name_another = "Name one of them in [objective]."
    """What to do when the first trial has not logged what it is judged by."""

    def __init__(
        self,
        spec: SweepSpec,
        sweep: str,
        client: Client,
        search: Search | Cells | Generations,
        mirror: StudyWriter,
        wishes: Wishes,
        beat: Callable[[bool, dict[str, Any]], None],
    ) -> None:
        """`beat` is told, often, whether the sweep is paused, and how far it is."""
        self._spec = spec
        self._client = client
        self._search = search
        self._mirror = mirror
        self._wishes = wishes
        self._beat = beat
        self._folder = client.paths.runs
        self._runs = TrialRuns(client, sweep, wishes.news)
        self._flights: dict[int, Flight] = {}
        self._paused: set[str] | None = None
        self._paused_at = 0.0
        self._left_over = False
        self._failures: list[str] = []
        self._deadline = math.inf
        self._looked_at = 0.0
        self._parallel = spec.parallel or self._as_many_as_fit()
        self._most = self._parallel + self._ahead()
        self._prunes = spec.prunes

    def run(self, seconds_left: float | None = None) -> Ending:
        """Work until the budget is spent or something ends the sweep."""
        if seconds_left is not None:
            self._deadline = time.monotonic() + seconds_left
        try:
            return self._run()
        except _Over as over:
            self._stop_trials("its sweep has ended")
            with suppress(StorageError):
                self._search.release()
            return Ending("failed", str(over))
        finally:
            self._runs.close()

    def _run(self) -> Ending:
        self._insist(self._recover)
        while not self._wishes.cancelled:
            if self._wishes.paused != (self._paused is not None):
                self._insist(self._set_paused)
            if self._paused is None:
                self._insist(self._fill)
            if not self._flights and self._spent():
                self._tell_progress()
                self._search.release()
                return Ending("completed")
            self._tell_progress()
            news = wait_for_news(self._wishes.news, self._patience())
            self._insist(lambda found=news: self._take(found))  # type: ignore[misc]
            self._insist(self._look)
        self._stop_trials(_BY_SWEEP)
        self._search.release()
        return Ending("cancelled")

    def _insist(self, work: Callable[[], None]) -> None:
        """Do it, and again while the daemon is away: all of it may be done twice."""
        while not self._wishes.cancelled:
            try:
                work()
                return
            except (UnavailableError, StorageError):
                # A daemon that is away comes back, and so does room on its disk.
                self._tell_progress()
                time.sleep(_AWAY_SECONDS)

    def _patience(self) -> float:
        lives = any(run.lives and not run.ended for flight in self._flights.values() for run in flight.runs)
        if not lives or self._paused is not None:
            return _TICK_SECONDS
        return LOOK_SECONDS if self._prunes else IDLE_LOOK_SECONDS

    # Starting

    def _recover(self) -> None:
        """Take up every trial that was asked for and not told, and end runs that nobody waits for."""
        self._left_over = False
        for trial in self._search.open_trials():
            if trial.number not in self._flights:
                self._submit(trial)
                flight = self._flights.get(trial.number)
                if flight is not None and self._search.pruned_at(trial.number) is not None:
                    self._prune(flight)
        wanted = {run.run_id for flight in self._flights.values() for run in flight.runs}
        for run_id in list(self._runs.live()):
            if run_id not in wanted:
                self._runs.cancel([run_id], "its trial had ended")
        record = self._search.record()
        self._mirror.begin(record)
        self._failures.clear()
        for trial in sorted(record.with_state(*ENDED), key=lambda one: one.ended_at or 0):
            self._count_failure(trial)
        if paused := self._search.paused_runs():
            # Those that an earlier start has paused wait for us.
            for run_id in paused:
                self._runs.pause(run_id, False)
            self._search.note_paused([])

    def _as_many_as_fit(self) -> int:
        cpus = max(int(one.config["resources"].get("cpus") or 1) for one in self._spec.templates)
        slots, runs = self._client.health().cpus // cpus, self._spec.runs_per_trial
        # Where a trial has several runs, another one fills the slots while its last ones train.
        return max(1, math.ceil(slots / runs) + (runs > 1))

    def _ahead(self) -> int:
        """How many trials more than train at once can be asked for without loss."""
        from mosaic.sweeps.samplers import looks_ahead

        return 1 if looks_ahead(self._spec) else 0

    def _spent(self) -> bool:
        return self._search.spent or time.monotonic() > self._deadline

    def _fill(self) -> None:
        if self._left_over:
            self._recover()
        while len(self._flights) < self._most and not self._spent() and not self._wishes.cancelled:
            self._submit(self._search.ask())

    def _submit(self, trial: Trial) -> None:
        """Runs for a trial, each of which may be there already."""
        params, places = self._places(trial)
        flight = Flight(trial.number, [], reported=max(trial.intermediate, default=0))
        try:
            for number, (template, seed) in enumerate(places):
                if number < len(trial.runs):
                    flight.runs.append(self._runs.find(trial.runs[number], template.env_id, seed))
                    continue
                flight.runs.append(
                    self._runs.submit(
                        trial.number, number, template, seed, params, self._name(template, trial)
                    )
                )
        except (UnavailableError, StorageError):
            # The trial stays in the storage, and is taken up with the next try.
            self._left_over = True
            raise
        except MosaicError as error:
            # What the worker does not take, such as sizes that do not fit each other, no run can try.
            self._runs.cancel([run.run_id for run in flight.runs], "another run of its trial was refused")
            self._tell(trial.number, FAILED, reason=str(error), trial=trial)
            return
        if not trial.runs:
            self._search.set_runs(trial.number, [run.run_id for run in flight.runs])
        self._flights[trial.number] = flight
        self._mirror.add(
            trial.number,
            state=RUNNING,
            params=dict(trial.params),
            runs=[run.run_id for run in flight.runs],
            started_at=trial.started_at,
        )
        for run in flight.runs:
            if run.ended:
                self._wishes.news.put(_Ended(run.run_id))

    def _places(self, trial: Trial) -> tuple[dict[str, Any], list[tuple[Template, int]]]:
        """The parameters of a trial, and on what and with which seeds it trains."""
        algo = str(trial.params.get(ALGO, self._spec.algos[0]))
        templates = [one for one in self._spec.templates if one.algo == algo]
        places = [(template, seed) for template in templates for seed in self._spec.seeds]
        return params_for(self._spec.space, trial.params, algo), places

    def _name(self, template: Template, trial: Trial) -> str:
        return f"{template.config['run_name']}-trial-{trial.number}"

    # Watching

    def _take(self, news: Sequence[Any]) -> None:
        """State changes of runs; what has ended is told."""
        by_id = {run.run_id: (flight, run) for flight in self._flights.values() for run in flight.runs}
        for entry in news:
            if not isinstance(entry, HistoryEntry | _Ended) or entry.run_id not in by_id:
                continue
            flight, run = by_id[entry.run_id]
            if isinstance(entry, HistoryEntry):
                run.status, run.outcome, run.reason = entry.status, entry.outcome, entry.reason
            if run.status == RunStatus.EXEC and self._paused is not None and run.run_id not in self._paused:
                self._paused.add(run.run_id)
                self._search.note_paused(sorted(self._paused))
                self._runs.pause(run.run_id, True)
            if run.ended:
                self._run_ended(flight, run)

    def _run_ended(self, flight: Flight, run: TrialRun) -> None:
        if not flight.told and run.outcome != "completed":
            self._end_runs(flight, _ANOTHER)
        if not flight.ended:
            return
        if not flight.told:
            self._judge(flight)
        self._flights.pop(flight.number, None)

    def _judge(self, flight: Flight) -> None:
        """All runs of a trial have ended: tell what came of it."""
        bad = min((run for run in flight.runs if run.outcome != "completed"), key=_blame, default=None)
        pruned_at = self._search.pruned_at(flight.number)
        if pruned_at is not None:
            self._tell(flight.number, PRUNED, reason=f"pruned at step {pruned_at:,}")
        elif bad is not None:
            by_user = bad.outcome == "cancelled"
            self._tell(flight.number, FAILED, reason=str(bad.reason or bad.outcome), by_user=by_user)
        else:
            self._judge_complete(flight)

    def _judge_complete(self, flight: Flight) -> None:
        for run in flight.runs:
            run.read(self._folder)
        self._report(flight)
        values = []
        for objective in self._spec.objectives:
            found = {
                env_id: [
                    objective.of_run(run.series(objective.metric))
                    for run in flight.runs
                    if run.env_id == env_id
                ]
                for env_id in dict.fromkeys(run.env_id for run in flight.runs)
            }
            if any(value is None for values_of in found.values() for value in values_of):
                tags = sorted({tag for run in flight.runs for tag in run.names})
                sentence = objective.missing(tags)
                if not self._search.has_values:
                    self._tell(flight.number, FAILED, reason=sentence)
                    raise _Over(f"{sentence} {self.name_another}")
                self._tell(flight.number, FAILED, reason=sentence)
                return
            known = {env_id: [float(v) for v in vs if v is not None] for env_id, vs in found.items()}
            values.append(objective.of_trial(known, self._spec.scores))
        if not all(map(math.isfinite, values)):
            self._tell(flight.number, FAILED, reason="its value is not a number")
            return
        self._tell(flight.number, COMPLETE, values)

    def _look(self) -> None:
        """Read the curves of live trials, and prune those that do badly."""
        if time.monotonic() - self._looked_at < (LOOK_SECONDS if self._prunes else IDLE_LOOK_SECONDS) - 0.1:
            return
        self._looked_at = time.monotonic()
        for flight in list(self._flights.values()):
            if flight.told or flight.ended or len(self._spec.objectives) > 1:
                continue
            # Each is asked, although one has nothing new.
            news = [run.read(self._folder) for run in flight.runs if run.lives]
            if any(news) and len(news) == len(flight.runs) and self._report(flight):
                self._prune(flight)

    def _report(self, flight: Flight) -> bool:
        """Tell what a trial has reached at each step that it has passed; whether it is to be pruned."""
        if len(self._spec.objectives) > 1:
            return False
        objective, every = self._spec.objectives[0], self._spec.report_every
        curves = [(run, run.series(objective.metric)) for run in flight.runs]
        reached = min((int(series.steps[-1]) if len(series) else 0 for _, series in curves), default=0)
        for step in range(flight.reported + every, reached + 1, every):
            flight.reported = step
            found: dict[str, list[float]] = {}
            for run, series in curves:
                value = objective.of_run(series, step)
                if value is not None:
                    found.setdefault(run.env_id, []).append(value)
            if sum(map(len, found.values())) < len(curves):
                continue
            value = objective.of_trial(found, self._spec.scores)
            if not math.isfinite(value):
                continue
            self._mirror.add(flight.number, intermediate={step: value})
            if self._search.report(flight.number, value, step) and not flight.ended:
                return True
        return False

    def _prune(self, flight: Flight) -> None:
        self._search.mark_pruned(flight.number, flight.reported)
        self._end_runs(flight, f"pruned at step {flight.reported:,}: others were better there")
        self._tell(flight.number, PRUNED, reason=f"pruned at step {flight.reported:,}")
        flight.told = True

    # Telling

    def _tell(
        self,
        number: int,
        state: str,
        values: Sequence[float] | None = None,
        reason: str = "",
        trial: Trial | None = None,
        by_user: bool = False,
        interrupted: bool = False,
    ) -> None:
        told = self._search.tell(number, state, values, reason, interrupted)
        news: dict[str, Any] = {"state": told.state, "values": list(told.values), "reason": told.reason}
        if trial is not None:
            news |= {"params": dict(trial.params), "started_at": trial.started_at}
        self._mirror.add(number, **news, ended_at=told.ended_at)
        flight = self._flights.get(number)
        if flight is not None:
            flight.told = True
        if not by_user and not interrupted:
            self._count_failure(told)
            self._check_failures()

    def _count_failure(self, trial: Trial) -> None:
        if trial.state == FAILED:
            self._failures.append(trial.reason)
        else:
            self._failures.clear()

    def _check_failures(self) -> None:
        if len(self._failures) >= MOST_FAILURES:
            raise _Over(
                f"{len(self._failures)} trials in a row have failed, the last because: {self._failures[-1]}"
            )

    def _end_runs(self, flight: Flight, reason: str) -> None:
        self._runs.cancel([run.run_id for run in flight.runs if not run.ended], reason)

    def _stop_trials(self, reason: str) -> None:
        """End all trials, as far as the daemon can be reached."""
        for flight in list(self._flights.values()):
            if not flight.told:
                self._tell(flight.number, FAILED, reason=reason, interrupted=True)
        for _ in range(5):
            try:
                for flight in self._flights.values():
                    self._end_runs(flight, reason)
                break
            except UnavailableError:
                time.sleep(_AWAY_SECONDS)
        self._tell_progress()

    def _set_paused(self) -> None:
        """Pausing a sweep pauses its trials; those that it has paused go on with it."""
        runs = [run for flight in self._flights.values() for run in flight.runs if not run.ended]
        if self._wishes.paused:
            self._paused = {run.run_id for run in runs if run.status == RunStatus.EXEC}
            self._paused_at = time.monotonic()
            self._search.note_paused(sorted(self._paused))
            self._tell_progress()
            for run_id in self._paused:
                self._runs.pause(run_id, True)
            return
        for run_id in self._paused or ():
            self._runs.pause(run_id, False)
        self._search.note_paused([])
        self._deadline += time.monotonic() - self._paused_at
        self._paused = None

    def _tell_progress(self) -> None:
        done, best = self._search.progress()
        told = {
            "trials": done,
            "total_trials": self._search.wanted,
            "running_trials": len(self._flights),
            "mean_return": best,
            "progress": min(1.0, done / self._search.wanted),
        }
        self._beat(self._paused is not None, told)


@dataclass(frozen=True)
class _Ended:
    """Says of a run that it had ended already."""

    run_id: str


class _Over(UserError):
    """Why a sweep cannot go on."""


def _blame(run: TrialRun) -> tuple[bool, bool]:
    """Which of the runs that did not complete was the first: those after it were cancelled by us."""
    return run.reason == _ANOTHER, run.outcome == "cancelled"
