"""What several runs say together, before anybody draws it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mosaic.analytics import statistics
from mosaic.analytics.report_data import Comparison, MeasuredGroup, by_task, compare_runs, methods_of
from mosaic.client import Client
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths
from support.ended_runs import EndedRun


def compared(var: Path, *made: EndedRun, metric: str | None = None) -> Comparison:
    for one in made:
        one.write(VarPaths(var))
    with Client.connect(var) as client:
        return compare_runs([client.get(one.run_id) for one in made], metric)


def test_seeds_are_one_group_with_the_interval_of_their_means(var: Path) -> None:
    found = compared(var, *(EndedRun(seed=seed, top=100.0 + 20 * seed) for seed in (1, 2, 3)))
    (group,) = found.groups
    assert found.metric == "charts/episodic_return" and len(group.finals) == 3
    assert group.finals == pytest.approx([114, 134, 153], abs=6)
    final = group.final()
    assert final is not None and final == statistics.interval([group.finals])
    assert min(group.finals) <= final.low < final.value < final.high <= max(group.finals)
    assert (group.of(lambda one: one.speed), group.of(lambda one: one.steps)) == (50.0, 1000)
    assert group.of(lambda one: one.seconds) == pytest.approx(60)


def test_a_curve_is_the_mean_of_its_runs_and_its_band_is_theirs(var: Path) -> None:
    low, high = EndedRun(seed=1, top=50.0), EndedRun(seed=2, top=150.0)
    (group,) = compared(var, low, high).groups
    curve = group.curve(smooth=0.0, points=50)
    assert curve is not None and curve.runs == 2
    lines = [MeasuredGroup(group.group, (one,)).curve(smooth=0.0, points=50) for one in group.members]
    assert all(line is not None for line in lines)
    mean = np.mean([line.value for line in lines if line is not None], axis=0)
    np.testing.assert_allclose(curve.value, mean)
    assert np.all(curve.low <= curve.value) and np.all(curve.value <= curve.high)
    assert np.all(curve.high - curve.low > 1)


def test_a_run_that_ends_early_takes_no_part_in_what_comes_after(var: Path) -> None:
    short, long = EndedRun(seed=1, top=10.0, points=100), EndedRun(seed=2, top=1000.0, points=300)
    (group,) = compared(var, short, long).groups
    curve = group.curve(smooth=0.0)
    assert curve is not None and curve.places[-1] > 890
    late = curve.places > 310
    # Of a single run there is no interval.
    np.testing.assert_array_equal(curve.low[late], curve.high[late])
    assert np.all(curve.value[late] > 700)


def test_values_that_are_not_numbers_are_left_out(var: Path) -> None:
    one = EndedRun(points=200)
    run = one.write(VarPaths(var))
    one.points, one.top = 100, float("nan")
    one.write_curve(run.event_files / "two")
    with Client.connect(var) as client:
        (group,) = compare_runs([client.get(one.run_id)]).groups
    assert len(group.members[0].series) == 200
    assert group.curve() is not None and group.finals[0] == pytest.approx(93, abs=4)


def test_the_return_of_other_scripts_is_compared_with_ours(var: Path) -> None:
    ours, other = EndedRun(), EndedRun(algo="/x/mine.py", tag="rollout/ep_rew_mean", top=60.0)
    found = compared(var, ours, other)
    assert found.metric == "charts/episodic_return"
    assert [len(group.finals) for group in found.groups] == [1, 1]
    # It is a mean already: the last one counts.
    assert found.groups[1].finals[0] == found.groups[1].members[0].series.values[-1]


def test_a_metric_that_no_run_has_is_refused_with_the_nearest(var: Path) -> None:
    with pytest.raises(UserError, match="No run has the metric 'charts/episodic_retrun'; did you mean"):
        compared(var, EndedRun(), metric="charts/episodic_retrun")


def test_a_method_is_known_again_in_every_environment(var: Path) -> None:
    made = [
        EndedRun(env_id=env_id, params={"learning_rate": rate})
        for env_id in ("CartPole-v1", "Acrobot-v1")
        for rate in (0.1, 0.2)
    ]
    found = compared(var, *made)
    methods = [methods_of(found)[group.label] for group in found.groups]
    assert [method.number for method in methods] == [0, 1, 0, 1]
    assert {method.label for method in methods} == {"learning_rate 0.1", "learning_rate 0.2"}
    assert {task: len(part.groups) for task, part in by_task(found).items()} == {
        "CartPole-v1": 2,
        "Acrobot-v1": 2,
    }
    assert sorted(row.name for row in found.differ) == ["env_id", "learning_rate"]


def test_a_run_that_measured_nothing_stands_beside_the_others(var: Path) -> None:
    found = compared(var, EndedRun(params={"a": 1}), EndedRun(params={"a": 2}, points=0, outcome="failed"))
    assert [len(group.finals) for group in found.groups] == [1, 0]
    assert found.groups[1].final() is None and found.groups[1].curve() is None
