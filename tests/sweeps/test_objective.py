"""What a trial is judged by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mosaic.analytics.store import NO_POINTS, MetricSeries
from mosaic.sweeps.objective import Objective
from mosaic.sweeps.study import COMPLETE, PRUNED, Study, Trial

VALUES = [1.0, 9.0, 2.0, 3.0, 4.0]


def series(*values: float) -> MetricSeries:
    steps = np.arange(1, len(values) + 1, dtype=np.int64) * 10
    return MetricSeries(steps, np.array(values), np.zeros(len(values)))


@pytest.mark.parametrize(
    ("take", "points", "direction", "expected"),
    [
        ("last", 1, "maximize", 4.0),
        ("mean", 2, "maximize", 3.5),
        ("mean", 100, "maximize", 3.8),
        ("best", 1, "maximize", 9.0),
        ("best", 2, "maximize", 5.5),
        ("best", 1, "minimize", 1.0),
        ("best", 2, "minimize", 2.5),
    ],
)
def test_a_run_has_a_value(take: str, points: int, direction: str, expected: float) -> None:
    objective = Objective(take=take, points=points, direction=direction)
    assert objective.of_run(series(*VALUES)) == pytest.approx(expected)


def test_a_run_had_a_value_at_a_step() -> None:
    objective = Objective(take="last")
    assert [objective.of_run(series(*VALUES), until) for until in (5, 10, 25, 1000)] == [None, 1.0, 9.0, 4.0]
    assert objective.of_run(NO_POINTS) is None


def test_runs_are_put_together_over_seeds() -> None:
    runs = {"E": [1.0, 2.0, 3.0, 100.0]}
    assert Objective(over_seeds="mean").of_trial(runs, {}) == 26.5
    assert Objective(over_seeds="iqm").of_trial(runs, {}) == 2.5
    lower = Objective(over_seeds="lower").of_trial(runs, {})
    upper = Objective(over_seeds="lower", direction="minimize").of_trial(runs, {})
    assert lower < 26.5 < upper
    assert Objective(over_seeds="lower").of_trial({"E": [7.0]}, {}) == 7.0
    assert math.isnan(Objective().of_trial({"E": [1.0, math.nan]}, {}))


def test_environments_are_put_together_as_scores() -> None:
    runs = {"A": [50.0], "B": [-100.0]}
    assert Objective().of_trial(runs, {"A": (0, 100), "B": (-200, 0)}) == 0.5


def test_what_is_not_logged_is_told_with_what_is() -> None:
    sentence = Objective(metric="charts/episodic_retrun").missing(["charts/SPS", "charts/episodic_return"])
    assert "did you mean 'charts/episodic_return'?" in sentence
    assert "They log charts/SPS" in sentence


def trial(number: int, *values: float, state: str = COMPLETE) -> Trial:
    return Trial(number, state, {}, values)


def test_the_best_trial_and_the_front() -> None:
    one = Study(
        "s", ("r",), ("maximize",), trials=(trial(0, 1.0), trial(1, 3.0), trial(2, 9.0, state=PRUNED))
    )
    assert one.best is not None
    assert one.best.number == 1
    low = Study("s", ("r",), ("minimize",), trials=one.trials)
    assert low.best is not None
    assert low.best.number == 0
    many = Study(
        "s",
        ("r", "t"),
        ("maximize", "minimize"),
        trials=(trial(0, 1.0, 1.0), trial(1, 2.0, 2.0), trial(2, 1.5, 3.0), trial(3, 2.0, 2.0)),
    )
    assert many.best is None
    assert [one.number for one in many.front] == [0, 1, 3]
