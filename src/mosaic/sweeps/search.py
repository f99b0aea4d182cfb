"""The study that a sweep works on: asked for trials and told of them, safe against crashes in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.errors import StorageError
from mosaic.sweeps.optuna_records import REASON, RUNS, STATES, study_record, trial_record
from mosaic.sweeps.samplers import directions, is_used_up, make_pruner, make_sampler, suggest
from mosaic.sweeps.spec import JOURNAL, SQLITE, SweepSpec
from mosaic.sweeps.storage import DATABASE, copy_study, open_storage, optuna, shown_storage, told_of
from mosaic.sweeps.study import COMPLETE, FAILED, Study, Trial

OWNER, FORMAT, BEFORE, PAUSED = "mosaic:sweep", "mosaic:format", "mosaic:before", "mosaic:paused"
"""What a study says of its sweep: which it is, how many trials there were before, which runs it paused."""
FORMAT_NUMBER = 1
PRUNED_AT, INTERRUPTED, AGAIN = "pruned_at", "interrupted", "again"
"""What a trial says: at which step it was pruned, that its sweep ended before it, which one it repeats."""
_TO_OPTUNA = {name: state for state, name in STATES.items()}


class Search:
    """The study of one sweep. Every call leaves the storage so that a crash after it loses nothing."""

    def __init__(
        self,
        spec: SweepSpec,
        sweep: str,
        folder: Path,
        environment: Mapping[str, str],
        continues: tuple[str, Path] | None = None,
        has_ended: Callable[[str], bool] = lambda sweep: False,
    ) -> None:
        """Open or make the study. A StorageError tells that another sweep works on it.

        With `continues`, the id and folder of a sweep that has ended, its study goes on. `has_ended` tells
        of a sweep whether it is known to have done so, though it has not released its study.
        """
        self.spec = spec
        self._sweep = sweep
        self._trials: dict[int, Any] = {}
        self._before = self._asked = self._done = 0
        self._best: float | None = None
        self._used_up = False
        self._has_ended = has_ended
        if continues is not None and spec.storage in (JOURNAL, SQLITE):
            copy_study(spec.storage, continues[1] / DATABASE, folder / DATABASE)
        self.name = spec.study or sweep
        self.storage = open_storage(spec.storage, folder, environment)
        with told_of(shown_storage(spec.storage)):
            self.study = self._open()
            self._claim(continues[0] if continues else "")
            self._count()

    def _open(self) -> Any:
        how: dict[str, Any] = {"storage": self.storage, "pruner": make_pruner(self.spec)}
        try:
            return optuna.create_study(study_name=self.name, directions=directions(self.spec), **how)
        except optuna.exceptions.DuplicatedStudyError:
            study = optuna.load_study(study_name=self.name, **how)
        found = [one.name.lower() for one in study.directions]
        if found != directions(self.spec):
            raise StorageError(
                f"The study '{self.name}' is to {' and '.join(found)}, and this sweep to "
                f"{' and '.join(directions(self.spec))}: correct [objective], or name another study."
            )
        return study

    def _count(self) -> None:
        trials = self.study.get_trials(deepcopy=False)
        self._before = int(self.study.user_attrs[BEFORE])
        self._asked = sum(one.state != optuna.trial.TrialState.WAITING for one in trials)
        self._done = sum(one.state.is_finished() for one in trials)
        for one in trials:
            if one.state == optuna.trial.TrialState.COMPLETE:
                self._keep_best(one.values)
        self.study.sampler = make_sampler(self.spec, len(trials))

    def _keep_best(self, values: Sequence[float]) -> None:
        pick = max if self.spec.objectives[0].sign > 0 else min
        self._best = values[0] if self._best is None else pick(values[0], self._best)

    def _claim(self, continues: str) -> None:
        attrs = self.study.user_attrs
        if attrs.get(FORMAT, FORMAT_NUMBER) != FORMAT_NUMBER:
            raise StorageError(
                f"The study '{self.name}' was made by another version of MOSAIC (format {attrs[FORMAT]}, "
                f"here {FORMAT_NUMBER}): name another study."
            )
        owner = attrs.get(OWNER)
        if owner == self._sweep:
            return
        if owner not in (None, "", continues) and self._has_ended(owner):
            continues = owner
        if owner not in (None, "", continues):
            raise StorageError(
                f"The study '{self.name}' is in use by {owner}: cancel that sweep, or name another study."
            )
        live = self._frozen(optuna.trial.TrialState.RUNNING)
        if live and not continues:
            raise StorageError(
                f"The study '{self.name}' is in use: {len(live)} of its trials are running elsewhere. "
                "Wait for them, or name another study."
            )
        for one in live:
            # Its sweep has ended without a word.
            self._trials[one.number] = optuna.trial.Trial(self.study, one._trial_id)
            self.tell(one.number, FAILED, reason="its sweep had ended", interrupted=True)
        self.again(self.interrupted())
        trials = self.study.get_trials(deepcopy=False)
        if not trials:
            for params in self.spec.try_first:
                self.study.enqueue_trial(dict(params), skip_if_exists=True)
        begun = sum(one.state != optuna.trial.TrialState.WAITING for one in trials)
        self.study.set_user_attr(FORMAT, FORMAT_NUMBER)
        self.study.set_user_attr(BEFORE, begun)
        self.study.set_user_attr(OWNER, self._sweep)

    def release(self) -> None:
        """The sweep has ended: another one may go on with the study."""
        self.study.set_user_attr(OWNER, "")

    @property
    def wanted(self) -> int:
        """How many trials there will be, with those that the study had before."""
        return self._before + self.spec.trials

    @property
    def spent(self) -> bool:
        """Whether all trials have been asked for, or there is nothing left to try."""
        return self._asked >= self.wanted or self._used_up

    @property
    def has_values(self) -> bool:
        return self._best is not None

    def progress(self) -> tuple[int, float | None]:
        """How many trials have ended, and the best value of the first objective."""
        return self._done, self._best

    def ask(self) -> Trial:
        """A new trial, in the storage before anything is started for it."""
        trial = self.study.ask()
        self._asked += 1
        return self._complete(trial)

    def paused_runs(self) -> list[str]:
        """The runs that the sweep has paused."""
        return list(self.study.user_attrs.get(PAUSED, ()))

    def note_paused(self, runs: Sequence[str]) -> None:
        self.study.set_user_attr(PAUSED, list(runs))

    def pruned_at(self, number: int) -> int | None:
        """At which step a trial was pruned, whose runs may just be ending."""
        found = self._look(number).user_attrs.get(PRUNED_AT)
        return None if found is None else int(found)

    def open_trials(self) -> list[Trial]:
        """The trials that were asked for and not told, each with all its parameters, also after a crash."""
        found = self._frozen(optuna.trial.TrialState.RUNNING)
        return [self._complete(optuna.trial.Trial(self.study, one._trial_id)) for one in found]

    def _complete(self, trial: Any) -> Trial:
        suggest(self.spec.space, trial)
        self._trials[trial.number] = trial
        return self._record(self._look(trial.number))

    def set_runs(self, number: int, runs: Sequence[str]) -> None:
        self._trials[number].set_user_attr(RUNS, list(runs))

    def report(self, number: int, value: float, step: int) -> bool:
        """Tell what a trial has reached at a step; whether it is to be pruned."""
        trial = self._trials[number]
        trial.report(value, step)
        return bool(trial.should_prune())

    def mark_pruned(self, number: int, step: int) -> None:
        """Before its runs are cancelled, so that after a crash it is known why they were."""
        self._trials[number].set_user_attr(PRUNED_AT, step)

    def tell(
        self,
        number: int,
        state: str,
        values: Sequence[float] | None = None,
        reason: str = "",
        interrupted: bool = False,
    ) -> Trial:
        """How a trial has ended, once."""
        trial = self._trials.pop(number)
        if reason:
            trial.set_user_attr(REASON, reason)
        if interrupted:
            trial.set_user_attr(INTERRUPTED, True)
        try:
            self.study.tell(trial, None if state != COMPLETE else list(values or ()), state=_TO_OPTUNA[state])
        except RuntimeError as error:
            # A grid that is used up says so after it has taken the result.
            if not is_used_up(error):
                raise
            self._used_up = True
        self._done += 1
        if state == COMPLETE:
            self._keep_best(list(values or ()))
        return self._record(self._look(number))

    def again(self, trials: Sequence[Trial]) -> None:
        """Put these parameters in front of what the sampler would ask for."""
        for one in trials:
            self.study.enqueue_trial(dict(one.params), user_attrs={AGAIN: one.number}, skip_if_exists=False)

    def interrupted(self) -> list[Trial]:
        """Trials that ended with an earlier sweep on this study, and were not tried again yet."""
        frozen = self.study.get_trials(deepcopy=False)
        repeated = {one.user_attrs.get(AGAIN) for one in frozen}
        return [
            self._record(one)
            for one in frozen
            if one.user_attrs.get(INTERRUPTED) and one.number not in repeated
        ]

    def record(self) -> Study:
        """All that the study has."""
        return study_record(self.study, self.spec, self.wanted, self._sweep)

    def _look(self, number: int) -> Any:
        return self.study.get_trials(deepcopy=False)[number]

    def _frozen(self, state: Any) -> list[Any]:
        return list(self.study.get_trials(deepcopy=False, states=(state,)))

    def _record(self, frozen: Any) -> Trial:
        return trial_record(frozen)
