"""Studies and trials of Optuna as plain values, wherever they were made; and which parameters matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mosaic.contract.errors import UserError, closest
from mosaic.contract.secrets import referred
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.storage import holds_studies, open_storage, optuna, shown_storage, told_of
from mosaic.sweeps.study import COMPLETE, FAILED, PRUNED, RUNNING, WAITING, Study, Trial

RUNS, REASON = "runs", "reason"
"""What a trial says besides what Optuna knows of it."""
STATES = {
    optuna.trial.TrialState.WAITING: WAITING,
    optuna.trial.TrialState.RUNNING: RUNNING,
    optuna.trial.TrialState.COMPLETE: COMPLETE,
    optuna.trial.TrialState.PRUNED: PRUNED,
    optuna.trial.TrialState.FAIL: FAILED,
}


def trial_record(frozen: Any) -> Trial:
    """A trial of Optuna's as a plain value."""
    return Trial(
        number=frozen.number,
        state=STATES[frozen.state],
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
    # Of a sweep they are known before the first trial is.
    distributions: dict[str, Any] = {one.key: one.distribution() for one in spec.space} if spec else {}
    for one in frozen if spec is None else ():
        distributions |= {name: _distribution(dist) for name, dist in one.distributions.items()}
    seeds = spec.runs_per_trial if spec else 1
    directions = tuple(one.name.lower() for one in study.directions)
    names = tuple(one.words(seeds) for one in spec.objectives) if spec else tuple(study.metric_names or ())
    if not names:
        several = len(directions) > 1
        names = tuple(f"value {number}" if several else "value" for number in range(len(directions)))
    return Study(
        name=study.study_name,
        objectives=names,
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
    is_url = "://" in where or referred(where) is not None
    if is_url and not holds_studies(where, environment):
        raise UserError(f"There is no study in {shown_storage(where)}.")
    storage = open_storage(where, None, environment)
    with told_of(shown_storage(where)):
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
                f"There is no study '{name}' in {shown_storage(where)}"
                + (closest(name, names) or f"; it holds {', '.join(names[:5])}.")
            )
        return study_record(optuna.load_study(study_name=name or names[0], storage=storage), None)


def importance(study: Study) -> dict[str, float]:
    """How much each parameter matters for the first objective, the most important first (PED-ANOVA).

    Empty while there is too little to say.
    """
    made = optuna.create_study(directions=list[Any](study.directions[:1]))
    distributions = {name: _to_optuna(told) for name, told in study.distributions.items()}
    try:
        for one in study.with_state(COMPLETE):
            if not one.values or not math.isfinite(one.values[0]):
                continue
            own = {name: distributions[name] for name in one.params if name in distributions}
            params = {name: one.params[name] for name in own}
            made.add_trial(optuna.trial.create_trial(params=params, distributions=own, value=one.values[0]))
        found = optuna.importance.get_param_importances(made)
    except (ValueError, RuntimeError):
        # A study made elsewhere may have changed its space on the way.
        return {}
    return {name: float(share) for name, share in sorted(found.items(), key=lambda item: -item[1])}


def _to_optuna(told: Mapping[str, Any]) -> Any:
    if "choices" in told:
        return optuna.distributions.CategoricalDistribution(tuple(told["choices"]))
    kind = optuna.distributions.IntDistribution if told["whole"] else optuna.distributions.FloatDistribution
    step = {} if told["step"] is None else {"step": told["step"]}
    return kind(told["low"], told["high"], log=told["log"], **step)
