"""Optuna for a sweep: its storage, its samplers and pruners by name, and trials that survive any crash.

This is the only module here that imports Optuna.
"""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError, UserError, closest
from mosaic.contract.secrets import referred
from mosaic.sweeps.space import ALGO, Parameter
from mosaic.sweeps.spec import JOURNAL, SQLITE, Choice, SweepSpec
from mosaic.sweeps.study import COMPLETE, FAILED, PRUNED, RUNNING, WAITING, Study, Trial

try:
    import optuna
    from optuna.storages.journal import JournalFileBackend
    from optuna.storages.journal._file import BaseJournalFileLock
except ImportError as error:
    raise UserError("Sweeps need Optuna: `./mosaic extras install sweeps`.") from error

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="optuna")

DATABASE = "optuna_db"
"""The study's file in the sweep's folder."""
OWNER, FORMAT, BEFORE, PAUSED = "mosaic:sweep", "mosaic:format", "mosaic:before", "mosaic:paused"
"""What a study says of the sweep that works on it, how many trials it had before, which runs that has paused."""
FORMAT_NUMBER = 1
RUNS, REASON, PRUNED_AT, INTERRUPTED = "runs", "reason", "pruned_at", "interrupted"
"""What a trial says besides what Optuna knows of it."""
_STATES = {
    optuna.trial.TrialState.WAITING: WAITING,
    optuna.trial.TrialState.RUNNING: RUNNING,
    optuna.trial.TrialState.COMPLETE: COMPLETE,
    optuna.trial.TrialState.PRUNED: PRUNED,
    optuna.trial.TrialState.FAIL: FAILED,
}
_TO_OPTUNA = {name: state for state, name in _STATES.items()}
_FIXED_SEQUENCE = ("grid", "qmc", "bruteforce")
"""Samplers that must begin with the same seed each time, for they go on in one sequence."""
_BLIND = ("random", "grid", "qmc", "bruteforce")
"""Samplers that learn nothing from results, so that asking early costs nothing."""
_DRIVERS = {"postgresql": "psycopg2", "mysql": "MySQLdb", "mariadb": "MySQLdb"}
_OWN_DRIVERS = {"psycopg2": "psycopg", "MySQLdb": "pymysql"}


def _plain(name: str) -> str:
    for ending in ("Sampler", "Pruner"):
        name = name.removesuffix(ending)
    return name.lower().replace("-", "").replace("_", "")


def _classes(kind: str) -> dict[str, Any]:
    module = optuna.samplers if kind == "sampler" else optuna.pruners
    base = optuna.samplers.BaseSampler if kind == "sampler" else optuna.pruners.BasePruner
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        _plain(name): one
        for name, one in found.items()
        if inspect.isclass(one) and issubclass(one, base) and not inspect.isabstract(one)
    } | ({"none": optuna.pruners.NopPruner} if kind == "pruner" else {})


def _made(kind: str, choice: Choice, more: Mapping[str, Any]) -> Any:
    """What a name and its options stand for; a UserError tells what is wrong with them."""
    known = _classes(kind)
    name = _plain(choice.name)
    if name not in known:
        raise UserError(
            f"'{choice.name}' is not a {kind} of Optuna{closest(name, known) or '.'} "
            f"There are {', '.join(sorted(known))}."
        )
    takes = [one for one in inspect.signature(known[name]).parameters if one != "self"]
    for option in choice.options:
        if option not in takes:
            hint = closest(option, takes) or (
                f"; it takes {', '.join(takes)}." if takes else "; it takes none."
            )
            raise UserError(f"The {kind} {choice.name} has no option '{option}'{hint}")
    options = {one: value for one, value in more.items() if one in takes} | dict(choice.options)
    try:
        return known[name](**options)
    except (ImportError, ModuleNotFoundError) as error:
        raise UserError(
            f"The {kind} {choice.name} needs the package {getattr(error, 'name', None) or _package(error)}: "
            f"install it, or choose another {kind}."
        ) from error
    except (ValueError, TypeError) as error:
        raise UserError(f"The {kind} {choice.name} refuses its options: {_sentence(error)}") from error


def _package(error: Exception) -> str:
    words = str(error).replace("`", "'").split("'")
    return words[1] if len(words) > 2 else str(error)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."


def make_sampler(spec: SweepSpec, trials: int = 0) -> Any:
    """The sampler; after a restart with other random numbers than those that were used up."""
    name = _plain(spec.sampler.name)
    seed = spec.search_seed + (0 if name in _FIXED_SEQUENCE else trials)
    more: dict[str, Any] = {"seed": seed}
    if name == "grid":
        more["search_space"] = {one.key: _grid(one) for one in spec.space}
    return _made("sampler", spec.sampler, more)


def _grid(one: Parameter) -> list[Any]:
    values = one.values()
    if values is None:
        raise UserError(
            f"The sampler grid needs a step or choices for every parameter: '{one.key}' has neither."
        )
    if one.when or one.algo:
        raise UserError(f"The sampler grid cannot have conditions, as '{one.key}' has: choose another.")
    return values


def make_pruner(spec: SweepSpec) -> Any:
    if spec.pruner is None:
        return optuna.pruners.NopPruner()
    options = dict(spec.pruner.options)
    wrapped = options.get("wrapped_pruner")
    if isinstance(wrapped, str | Mapping):
        inner = {"name": wrapped} if isinstance(wrapped, str) else dict(wrapped)
        options["wrapped_pruner"] = _made("pruner", Choice(inner.pop("name", "median"), inner), {})
    return _made("pruner", Choice(spec.pruner.name, options), {})


def looks_ahead(spec: SweepSpec) -> bool:
    """Whether a trial more than run at once can be asked for without loss."""
    return _plain(spec.sampler.name) in _BLIND


def check_search(spec: SweepSpec) -> None:
    """Try sampler, pruner and space on a study in memory; a UserError tells what will not work."""
    prunes = spec.pruner is not None and _plain(spec.pruner.name) not in ("none", "nop")
    if len(spec.objectives) > 1 and prunes:
        raise UserError("A pruner can judge one objective only: leave [pruner] out, or keep one objective.")
    pruner, sampler = make_pruner(spec), make_sampler(spec)
    study = optuna.create_study(directions=_directions(spec), sampler=sampler, pruner=pruner)
    try:
        for number in range(2):
            trial = study.ask()
            suggest(spec.space, trial)
            if prunes:
                trial.report(0.0, spec.report_every)
                trial.should_prune()
            study.tell(trial, [float(number)] * len(spec.objectives))
    except (ImportError, ModuleNotFoundError) as error:
        raise UserError(f"The sampler {spec.sampler.name} needs the package {_package(error)}.") from error
    except (ValueError, TypeError, NotImplementedError, RuntimeError) as error:
        if _stops(error):
            return
        if len(spec.objectives) > 1 and "multi" in str(error).lower():
            raise UserError(
                f"The sampler {spec.sampler.name} cannot search for several objectives: take tpe, nsgaii or "
                "random, or keep one objective."
            ) from error
        raise UserError(f"The sampler {spec.sampler.name} cannot search this: {_sentence(error)}") from error


def _stops(error: BaseException) -> bool:
    """Whether it is a grid that has nothing left to try, which Optuna says so."""
    return isinstance(error, RuntimeError) and "Study.stop" in str(error).replace("`", "")


def _directions(spec: SweepSpec) -> list[str]:
    return [one.direction for one in spec.objectives]


def suggest(space: Sequence[Parameter], trial: Any) -> dict[str, Any]:
    """A value for each parameter that is wanted, by its name in the study."""
    chosen: dict[str, Any] = {}
    for one in space:
        if not one.is_wanted(chosen):
            continue
        if one.choices:
            chosen[one.key] = trial.suggest_categorical(one.key, list(one.choices))
        elif one.whole:
            step = {} if one.step is None else {"step": int(one.step)}
            chosen[one.key] = trial.suggest_int(
                one.key, int(one.low or 0), int(one.high or 0), log=one.log, **step
            )
        else:
            low, high = float(one.low or 0), float(one.high or 0)
            chosen[one.key] = trial.suggest_float(one.key, low, high, log=one.log, step=one.step)
    return chosen


def params_for(space: Sequence[Parameter], chosen: Mapping[str, Any], algo: str) -> dict[str, Any]:
    """The parameters of an algorithm among what was chosen, by their own names."""
    return {
        one.name: chosen[one.key]
        for one in space
        if one.key in chosen and one.key != ALGO and one.algo in ("", algo)
    }


class _FlockLock(BaseJournalFileLock):
    """A lock that ends with its process, where Optuna's own would stand for half a minute after a kill."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.flock"
        self._descriptor = -1

    def acquire(self) -> bool:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        os.close(self._descriptor)


def mend_journal(path: Path) -> None:
    """Cut off the last line of a journal that a crash has left without its end: it never happened."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        data = file.read()
        if data and not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)


def open_storage(where: str, folder: Path | None, environment: Mapping[str, str]) -> Any:
    """The storage that a sweep names, or that lies at a path or URL; a StorageError tells what is wrong."""
    variable = referred(where)
    if variable is not None:
        where = environment.get(variable, "")
        if not where:
            raise UserError(
                f"The storage's URL is in the variable {variable}, which is not set here: set it."
            )
    shown = shown_storage(where)
    with _told_of(shown):
        if where in (JOURNAL, SQLITE):
            assert folder is not None
            path = folder / DATABASE
            if where == SQLITE:
                return _relational(f"sqlite:///{path}")
            mend_journal(path)
            return _journal(path)
        if "://" in where:
            return _relational(where)
        path = Path(where).expanduser()
        if not path.is_file():
            raise UserError(f"There is no study in {where}: it is not a file.")
        with path.open("rb") as file:
            is_sqlite = file.read(15) == b"SQLite format 3"
        return _relational(f"sqlite:///{path.resolve()}") if is_sqlite else _journal(path)


def _journal(path: Path) -> Any:
    return optuna.storages.JournalStorage(JournalFileBackend(str(path), _FlockLock(str(path))))


def _relational(url: str) -> Any:
    scheme, separator, rest = url.partition("://")
    dialect, _, driver = scheme.partition("+")
    usual = _DRIVERS.get(dialect)
    if usual is not None and not driver:
        # The drivers that our optional set brings.
        url = f"{'mysql' if usual == 'MySQLdb' else dialect}+{_OWN_DRIVERS[usual]}{separator}{rest}"
    how: dict[str, Any] = {"engine_kwargs": {"pool_pre_ping": True}} if dialect != "sqlite" else {}
    return optuna.storages.RDBStorage(url, **how)


def shown_storage(where: str) -> str:
    """A storage as it may be told: without a password."""
    before, separator, after = where.partition("://")
    return f"{before}{separator}{after.rpartition('@')[2]}" if separator else where


@contextmanager
def _told_of(shown: str) -> Iterator[None]:
    """Errors of a storage as sentences that name it, and no password."""
    import sqlalchemy.exc

    try:
        yield
    except (UserError, StorageError):
        raise
    except ModuleNotFoundError as error:
        raise UserError(
            f"The storage {shown} needs the driver {error.name}: `./mosaic extras install sweeps_sql`."
        ) from error
    except sqlalchemy.exc.ArgumentError as error:
        raise UserError(f"The storage '{shown}' is not a URL of a database: {_sentence(error)}") from error
    except sqlalchemy.exc.SQLAlchemyError as error:
        reason = _sentence(getattr(error, "orig", None) or error)
        raise StorageError(f"The storage {shown} cannot be used: {reason}") from error
    except RuntimeError as error:
        raise StorageError(
            f"The storage {shown} was made by another version of Optuna than {optuna.__version__}: "
            f"`optuna storage upgrade --storage URL` brings it up, or choose another storage."
        ) from error
    except (json.JSONDecodeError, KeyError, ValueError) as error:
        raise StorageError(
            f"The storage {shown} is not one of Optuna's, or is damaged: {_sentence(error)}"
        ) from error
    except OSError as error:
        raise StorageError(f"The storage {shown} cannot be used ({error.strerror}): correct that.") from error


def _copy_study(kind: str, source: Path, copy: Path) -> None:
    """The study of another sweep in a file of our own, whole or not at all."""
    if copy.exists():
        return
    if not source.exists():
        raise StorageError(f"There is no study in {source.parent}: it was removed, or never made.")
    if kind == JOURNAL:
        data = source.read_bytes()
        write_atomic(copy, data[: data.rfind(b"\n") + 1])
        return
    part = copy.with_name(f".{copy.name}.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new)
    part.replace(copy)


class Search:
    """The study of one sweep. Every call leaves the storage so that a crash after it loses nothing."""

    def __init__(
        self,
        spec: SweepSpec,
        sweep: str,
        folder: Path,
        environment: Mapping[str, str],
        continues: tuple[str, Path] | None = None,
    ) -> None:
        """Open or make the study. A StorageError tells that another sweep works on it.

        With `continues`, the id and folder of a sweep that has ended, its study goes on.
        """
        self.spec = spec
        self._sweep = sweep
        self._trials: dict[int, Any] = {}
        self._before = self._asked = self._done = 0
        self._best: float | None = None
        if continues is not None and spec.storage in (JOURNAL, SQLITE):
            _copy_study(spec.storage, continues[1] / DATABASE, folder / DATABASE)
        self.name = spec.study or sweep
        self.storage = open_storage(spec.storage, folder, environment)
        with _told_of(shown_storage(spec.storage)):
            self.study = self._open()
            self._claim(continues[0] if continues else "")
            self._count()

    def _open(self) -> Any:
        how: dict[str, Any] = {"storage": self.storage, "pruner": make_pruner(self.spec)}
        try:
            return optuna.create_study(study_name=self.name, directions=_directions(self.spec), **how)
        except optuna.exceptions.DuplicatedStudyError:
            study = optuna.load_study(study_name=self.name, **how)
        found = [one.name.lower() for one in study.directions]
        if found != _directions(self.spec):
            raise StorageError(
                f"The study '{self.name}' is to {' and '.join(found)}, and this sweep to "
                f"{' and '.join(_directions(self.spec))}: correct [objective], or name another study."
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
        if owner not in (None, "", continues):
            raise StorageError(
                f"The study '{self.name}' is in use by sweep {owner}: cancel that one, or name another study."
            )
        live = self._frozen(optuna.trial.TrialState.RUNNING)
        if live and not continues:
            raise StorageError(
                f"The study '{self.name}' is in use: {len(live)} of its trials are running elsewhere. Wait for "
                "them, or name another study."
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
        """Whether all trials have been asked for."""
        return self._asked >= self.wanted

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
            if not _stops(error):
                raise
        self._done += 1
        if state == COMPLETE:
            self._keep_best(list(values or ()))
        return self._record(self._look(number))

    def again(self, trials: Sequence[Trial]) -> None:
        """Put these parameters in front of what the sampler would ask for."""
        for one in trials:
            self.study.enqueue_trial(dict(one.params), user_attrs={"again": one.number}, skip_if_exists=False)

    def interrupted(self) -> list[Trial]:
        """Trials that ended with an earlier sweep on this study, and were not tried again yet."""
        frozen = self.study.get_trials(deepcopy=False)
        repeated = {one.user_attrs.get("again") for one in frozen}
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


def trial_record(frozen: Any) -> Trial:
    """A trial of Optuna's as a plain value."""
    return Trial(
        number=frozen.number,
        state=_STATES[frozen.state],
        params=dict(frozen.params) or dict(frozen.system_attrs.get("fixed_params", {})),
        values=tuple(frozen.values or ()),
        intermediate=dict(frozen.intermediate_values),
        runs=tuple(frozen.user_attrs.get(RUNS, ())),
        reason=str(frozen.user_attrs.get(REASON, frozen.system_attrs.get("fail_reason", ""))),
        started_at=frozen.datetime_start.timestamp() if frozen.datetime_start else None,
        ended_at=frozen.datetime_complete.timestamp() if frozen.datetime_complete else None,
    )


def study_record(study: Any, spec: SweepSpec | None, wanted: int | None = None, sweep: str = "") -> Study:
    """A study of Optuna's as a plain value."""
    frozen = study.get_trials(deepcopy=False)
    distributions: dict[str, Any] = {}
    for one in frozen:
        distributions |= {name: _distribution(dist) for name, dist in one.distributions.items()}
    seeds = spec.runs_per_trial if spec else 1
    names = tuple(one.words(seeds) for one in spec.objectives) if spec else tuple(study.metric_names or ())
    directions = tuple(one.name.lower() for one in study.directions)
    return Study(
        name=study.study_name,
        objectives=names
        or tuple(f"value {number}" if len(directions) > 1 else "value" for number in range(len(directions))),
        directions=directions,
        distributions=distributions,
        trials=tuple(map(trial_record, frozen)),
        wanted=wanted,
        sweep=sweep,
    )


def _distribution(dist: Any) -> dict[str, Any]:
    if isinstance(dist, optuna.distributions.CategoricalDistribution):
        return {"choices": list(dist.choices)}
    whole = isinstance(dist, optuna.distributions.IntDistribution)
    return {"low": dist.low, "high": dist.high, "log": dist.log, "step": dist.step, "whole": whole}


def read_elsewhere(where: str, name: str, environment: Mapping[str, str]) -> Study:
    """A study at a path or URL, made with whatever uses Optuna."""
    storage = open_storage(where, None, environment)
    with _told_of(shown_storage(where)):
        names = optuna.get_all_study_names(storage)
        if not names:
            raise UserError(f"There is no study in {shown_storage(where)}.")
        if not name and len(names) > 1:
            raise UserError(
                f"{shown_storage(where)} holds {len(names)} studies: name one with --study, "
                f"such as {', '.join(names[:5])}."
            )
        if name and name not in names:
            raise UserError(
                f"There is no study '{name}' in {shown_storage(where)}{closest(name, names) or '.'}"
            )
        return study_record(optuna.load_study(study_name=name or names[0], storage=storage), None)


def importance(study: Study) -> dict[str, float]:
    """How much each parameter matters for the first objective, the most important first (PED-ANOVA).

    Empty while there is too little to say.
    """
    made = optuna.create_study(direction=study.directions[0])
    distributions = {name: _to_optuna(told) for name, told in study.distributions.items()}
    for one in study.with_state(COMPLETE):
        own = {name: distributions[name] for name in one.params if name in distributions}
        params = {name: one.params[name] for name in own}
        made.add_trial(optuna.trial.create_trial(params=params, distributions=own, value=one.values[0]))
    try:
        found = optuna.importance.get_param_importances(made)
    except (ValueError, RuntimeError):
        return {}
    return {name: float(share) for name, share in sorted(found.items(), key=lambda item: -item[1])}


def _to_optuna(told: Mapping[str, Any]) -> Any:
    if "choices" in told:
        return optuna.distributions.CategoricalDistribution(tuple(told["choices"]))
    kind = optuna.distributions.IntDistribution if told["whole"] else optuna.distributions.FloatDistribution
    step = {} if told["step"] is None else {"step": told["step"]}
    return kind(told["low"], told["high"], log=told["log"], **step)
